package apisim

import (
	"slices"

	validate "k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
)

// These rules are those of the strategies in Kubernetes' registry, which differ by type.

// isBuiltin reports whether the resource is a built-in one of these names: plurals with their
// group, such as "pods" and "deployments.apps", or "*.apps" for all of a group.
func (r *resource) isBuiltin(names ...string) bool {
	return r.typed && (slices.Contains(names, r.groupResource().String()) ||
		r.Group != "" && slices.Contains(names, "*."+r.Group))
}

func (r *resource) countsGenerations() bool {
	if r.isBuiltin("controllerrevisions.apps", "ipaddresses.networking.k8s.io",
		"resourceclaims.resource.k8s.io") {
		return false
	}
	return !r.typed || r.isBuiltin("pods", "podtemplates", "replicationcontrollers",
		"*.admissionregistration.k8s.io", "*.apps", "*.batch", "*.discovery.k8s.io",
		"*.flowcontrol.apiserver.k8s.io", "*.networking.k8s.io", "*.policy", "*.resource.k8s.io",
		"*.scheduling.k8s.io", "csidrivers.storage.k8s.io")
}

// annotationsCount reports whether a change of annotations begins a generation: the
// deployment controller copies them to replica sets.
func (r *resource) annotationsCount() bool { return r.isBuiltin("deployments.apps") }

func (r *resource) createsOnUpdate() bool {
	return r.isBuiltin("endpoints", "events", "limitranges", "podtemplates", "services",
		"leases.coordination.k8s.io", "*.events.k8s.io", "*.rbac.authorization.k8s.io")
}

func (r *resource) needsVersion() bool {
	return !r.typed || r.isBuiltin("*.admissionregistration.k8s.io", "*.coordination.k8s.io",
		"*.node.k8s.io", "*.policy", "csidrivers.storage.k8s.io", "csinodes.storage.k8s.io",
		"volumeattachments.storage.k8s.io")
}

// keepsStatusOnCreate reports whether a new object may have a status. A kubelet registers its node
// with one.
func (r *resource) keepsStatusOnCreate() bool { return r.isBuiltin("nodes") }

// statusHasMetadata reports whether a write of the status may also change labels, annotations,
// finalizers and owners, as with the oldest types.
func (r *resource) statusHasMetadata() bool {
	return r.typed && r.Group == "" || r.isBuiltin("*.apps", "*.autoscaling", "*.batch", "*.policy",
		"ingresses.networking.k8s.io")
}

// returnsDeleted reports whether the answer to a finished delete is the object, not a Status.
func (r *resource) returnsDeleted() bool {
	return !r.isBuiltin("csistoragecapacities.storage.k8s.io") && r.isBuiltin(
		"persistentvolumeclaims", "persistentvolumes", "pods", "podtemplates", "resourcequotas",
		"serviceaccounts", "services", "*.resource.k8s.io", "*.storage.k8s.io")
}

// nameRule returns the rule for names: a DNS label for namespaces and services, any segment of a
// path for access control, and a DNS subdomain for most others.
func (r *resource) nameRule() validation.ValidateNameFunc {
	switch {
	case r.isBuiltin("namespaces"):
		return validation.ValidateNamespaceName
	case r.isBuiltin("services"):
		return validation.NameIsDNSLabel
	case r.isBuiltin("*.rbac.authorization.k8s.io"):
		return func(name string, prefix bool) []string {
			if prefix {
				return validate.IsPathSegmentPrefix(name)
			}
			return validate.IsPathSegmentName(name)
		}
	default:
		return validation.NameIsDNSSubdomain
	}
}
