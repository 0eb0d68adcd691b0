package builtin

import (
	"slices"
	"strings"
)

// shortNames has the abbreviations of resources.
var shortNames = map[string]string{
	"componentstatuses": "cs", "configmaps": "cm", "endpoints": "ep", "events": "ev",
	"events.events.k8s.io": "ev", "limitranges": "limits", "namespaces": "ns", "nodes": "no",
	"persistentvolumeclaims": "pvc", "persistentvolumes": "pv", "pods": "po",
	"replicationcontrollers": "rc", "resourcequotas": "quota", "serviceaccounts": "sa",
	"services": "svc", "daemonsets.apps": "ds", "daemonsets.extensions": "ds",
	"deployments.apps": "deploy", "deployments.extensions": "deploy", "replicasets.apps": "rs",
	"replicasets.extensions": "rs", "statefulsets.apps": "sts",
	"horizontalpodautoscalers.autoscaling": "hpa", "cronjobs.batch": "cj",
	"certificatesigningrequests.certificates.k8s.io": "csr", "ingresses.networking.k8s.io": "ing",
	"ingresses.extensions": "ing", "ipaddresses.networking.k8s.io": "ip",
	"networkpolicies.networking.k8s.io": "netpol", "networkpolicies.extensions": "netpol",
	"poddisruptionbudgets.policy": "pdb", "priorityclasses.scheduling.k8s.io": "pc",
	"storageclasses.storage.k8s.io": "sc", "volumeattributesclasses.storage.k8s.io": "vac",
}

// categories has the resources of the categories.
var categories = map[string][]string{
	"all": {
		"pods", "replicationcontrollers", "services", "daemonsets.apps", "deployments.apps",
		"replicasets.apps", "statefulsets.apps", "horizontalpodautoscalers.autoscaling",
		"cronjobs.batch", "jobs.batch",
	},
	"api-extensions": {
		"mutatingwebhookconfigurations.admissionregistration.k8s.io",
		"validatingwebhookconfigurations.admissionregistration.k8s.io",
		"validatingadmissionpolicies.admissionregistration.k8s.io",
		"mutatingadmissionpolicies.admissionregistration.k8s.io",
	},
}

func (r Resource) name() string { return r.GVR().GroupResource().String() }

// Singular returns the name of one object of the resource, as in discovery.
func (r Resource) Singular() string { return strings.ToLower(r.Kind) }

// ShortNames returns the abbreviations of the plural, such as "po" for pods; nil for most
// resources.
func (r Resource) ShortNames() []string {
	if short, ok := shortNames[r.name()]; ok {
		return []string{short}
	}
	return nil
}

// Categories returns the categories of the resource: "all", which stands for the workloads
// and services of a namespace, or "api-extensions"; nil for most resources.
func (r Resource) Categories() []string {
	for category, names := range categories {
		if slices.Contains(names, r.name()) {
			return []string{category}
		}
	}
	return nil
}
