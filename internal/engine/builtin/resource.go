package builtin

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a built-in resource in one version.
type Resource struct {
	Group, Version string
	Resource       string // the plural in URLs, such as "networkpolicies"
	Kind           string
	Namespaced     bool
	HasStatus      bool // there is a subresource "status"
	// Removed is the first release without this version, such as "1.16"; "" while it is
	// served.
	Removed string
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
	resources := of(gvk.GroupVersion())
	i := slices.IndexFunc(resources, func(r Resource) bool { return r.Kind == gvk.Kind })
	if i < 0 {
		return Resource{}, false
	}
	return resources[i], true
}

// ForGVR returns the resource of a plural.
func ForGVR(gvr schema.GroupVersionResource) (Resource, bool) {
	resources := of(gvr.GroupVersion())
	byName := func(r Resource, name string) int { return cmp.Compare(r.Resource, name) }
	i, found := slices.BinarySearchFunc(resources, gvr.Resource, byName)
	if !found {
		return Resource{}, false
	}
	return resources[i], true
}

func of(gv schema.GroupVersion) []Resource {
	byVersion := func(r Resource, gv schema.GroupVersion) int {
		return cmp.Or(cmp.Compare(r.Group, gv.Group), cmp.Compare(r.Version, gv.Version))
	}
	first, found := slices.BinarySearchFunc(table[:], gv, byVersion)
	if !found {
		return nil
	}
	end := first
	for end < len(table) && table[end].Group == gv.Group && table[end].Version == gv.Version {
		end++
	}
	return table[first:end]
}
