package builtin

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a built-in resource in one version.
type Resource struct {
	Group, Version string
	Resource       string // the plural in URLs, such as "networkpolicies"
	Kind           string
	Namespaced     bool
	HasStatus      bool   // there is a subresource "status"
	Removed        string // the release that no longer serves this version, such as "1.16"; "" while it is served
}

// GVR returns the group, the version and the plural.
func (r Resource) GVR() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// GVK returns the group, the version and the kind.
func (r Resource) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

// All returns every built-in resource in every version, ordered by group, version and plural.
func All() []Resource { return slices.Clone(table[:]) }

// ForGVK returns the resource of a kind.
func ForGVK(gvk schema.GroupVersionKind) (Resource, bool) {
	return find(func(r *Resource) bool {
		return r.Kind == gvk.Kind && r.Version == gvk.Version && r.Group == gvk.Group
	})
}

// ForGVR returns the resource of a plural.
func ForGVR(gvr schema.GroupVersionResource) (Resource, bool) {
	return find(func(r *Resource) bool {
		return r.Resource == gvr.Resource && r.Version == gvr.Version && r.Group == gvr.Group
	})
}

func find(is func(*Resource) bool) (Resource, bool) {
	for i := range table {
		if is(&table[i]) {
			return table[i], true
		}
	}
	return Resource{}, false
}
