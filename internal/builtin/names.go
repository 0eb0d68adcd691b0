package builtin

import "strings"

// Singular returns the name of one object of the resource, as discovery gives it.
func (r Resource) Singular() string { return strings.ToLower(r.Kind) }

// ShortNames returns what people type instead of the plural, such as "po" for pods; nil for most resources.
func (r Resource) ShortNames() []string {
	var names string
	switch r.Group + "/" + r.Resource {
	case "/componentstatuses":
		names = "cs"
	case "/configmaps":
		names = "cm"
	case "/endpoints":
		names = "ep"
	case "/events", "events.k8s.io/events":
		names = "ev"
	case "/limitranges":
		names = "limits"
	case "/namespaces":
		names = "ns"
	case "/nodes":
		names = "no"
	case "/persistentvolumeclaims":
		names = "pvc"
	case "/persistentvolumes":
		names = "pv"
	case "/pods":
		names = "po"
	case "/replicationcontrollers":
		names = "rc"
	case "/resourcequotas":
		names = "quota"
	case "/serviceaccounts":
		names = "sa"
	case "/services":
		names = "svc"
	case "apps/daemonsets", "extensions/daemonsets":
		names = "ds"
	case "apps/deployments", "extensions/deployments":
		names = "deploy"
	case "apps/replicasets", "extensions/replicasets":
		names = "rs"
	case "apps/statefulsets":
		names = "sts"
	case "autoscaling/horizontalpodautoscalers":
		names = "hpa"
	case "batch/cronjobs":
		names = "cj"
	case "certificates.k8s.io/certificatesigningrequests":
		names = "csr"
	case "networking.k8s.io/ingresses", "extensions/ingresses":
		names = "ing"
	case "networking.k8s.io/ipaddresses":
		names = "ip"
	case "networking.k8s.io/networkpolicies", "extensions/networkpolicies":
		names = "netpol"
	case "policy/poddisruptionbudgets":
		names = "pdb"
	case "scheduling.k8s.io/priorityclasses":
		names = "pc"
	case "storage.k8s.io/storageclasses":
		names = "sc"
	case "storage.k8s.io/volumeattributesclasses":
		names = "vac"
	default:
		return nil
	}
	return []string{names}
}

// Categories returns the groups of resources that the resource belongs to. The one that matters is "all", which
// stands for the workloads and services of a namespace.
func (r Resource) Categories() []string {
	switch r.Group + "/" + r.Resource {
	case "/pods", "/replicationcontrollers", "/services",
		"apps/daemonsets", "apps/deployments", "apps/replicasets", "apps/statefulsets",
		"autoscaling/horizontalpodautoscalers", "batch/cronjobs", "batch/jobs":
		return []string{"all"}
	case "admissionregistration.k8s.io/mutatingwebhookconfigurations", "admissionregistration.k8s.io/validatingwebhookconfigurations",
		"admissionregistration.k8s.io/validatingadmissionpolicies", "admissionregistration.k8s.io/mutatingadmissionpolicies":
		return []string{"api-extensions"}
	}
	return nil
}
