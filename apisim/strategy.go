package apisim

import (
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
)

// The rules that Kubernetes has per type, in its registry's strategies. Custom
// resources have those of the last line of each.

// countsGenerations reports whether objects have a generation.
func (r *resource) countsGenerations() bool {
	if !r.typed {
		return true
	}
	switch r.Group {
	case "":
		return r.Name == "pods" || r.Name == "podtemplates" || r.Name == "replicationcontrollers"
	case "apps":
		return r.Name != "controllerrevisions"
	case "networking.k8s.io":
		return r.Name != "ipaddresses"
	case "resource.k8s.io":
		return r.Name != "resourceclaims"
	case "storage.k8s.io":
		return r.Name == "csidrivers"
	case "admissionregistration.k8s.io", "batch", "discovery.k8s.io", "flowcontrol.apiserver.k8s.io", "policy", "scheduling.k8s.io":
		return true
	default:
		return false
	}
}

// annotationsCount reports whether a change of annotations begins a generation: the
// deployment controller copies them to replica sets.
func (r *resource) annotationsCount() bool { return r.Group == "apps" && r.Name == "deployments" }

// createsOnUpdate reports whether an update of an object that is missing makes it.
func (r *resource) createsOnUpdate() bool {
	if !r.typed {
		return false
	}
	switch r.Group {
	case "":
		switch r.Name {
		case "endpoints", "events", "limitranges", "podtemplates", "services":
			return true
		}
		return false
	case "coordination.k8s.io":
		return r.Name == "leases"
	case "events.k8s.io", "rbac.authorization.k8s.io":
		return true
	default:
		return false
	}
}

// needsVersion reports whether an update must say which version it is of.
func (r *resource) needsVersion() bool {
	if !r.typed {
		return true
	}
	switch r.Group {
	case "admissionregistration.k8s.io", "coordination.k8s.io", "node.k8s.io", "policy":
		return true
	case "storage.k8s.io":
		return r.Name == "csidrivers" || r.Name == "csinodes" || r.Name == "volumeattachments"
	default:
		return false
	}
}

// keepsStatusOnCreate reports whether a new object may bring its status: a kubelet
// registers its node with it.
func (r *resource) keepsStatusOnCreate() bool { return r.typed && r.Group == "" && r.Name == "nodes" }

// statusHasMetadata reports whether a write of the status may change labels,
// annotations, finalizers and owners too, as it may with the oldest types.
func (r *resource) statusHasMetadata() bool {
	if !r.typed {
		return false
	}
	switch r.Group {
	case "", "apps", "autoscaling", "batch", "policy":
		return true
	case "networking.k8s.io":
		return r.Name == "ingresses"
	default:
		return false
	}
}

// returnsDeleted reports whether the answer to a delete that is done is the object,
// and not a Status.
func (r *resource) returnsDeleted() bool {
	if !r.typed {
		return false
	}
	switch r.Group {
	case "":
		switch r.Name {
		case "persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "resourcequotas", "serviceaccounts", "services":
			return true
		}
		return false
	case "resource.k8s.io":
		return true
	case "storage.k8s.io":
		return r.Name != "csistoragecapacities"
	default:
		return false
	}
}

// deletesCollections reports whether all objects may be deleted in one request.
func (r *resource) deletesCollections() bool { return r.gvr() != namespaces }

// nameRule returns what names a resource allows: nearly all a DNS subdomain,
// namespaces and services a DNS label, and those of access control any segment of a
// path.
func (r *resource) nameRule() validation.ValidateNameFunc {
	switch {
	case r.gvr() == namespaces:
		return validation.ValidateNamespaceName
	case r.typed && r.Group == "" && r.Name == "services":
		return validation.NameIsDNSLabel
	case r.Group == "rbac.authorization.k8s.io":
		return func(name string, prefix bool) []string {
			if prefix {
				return content.IsPathSegmentPrefix(name)
			}
			return content.IsPathSegmentName(name)
		}
	default:
		return validation.NameIsDNSSubdomain
	}
}
