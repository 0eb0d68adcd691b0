package apisim

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/builtin"
)

// Resource describes a resource that is not built in, for [Server.Register].
type Resource struct {
	// Group, Version and Name, the plural, are its path; Kind is the kind of its
	// objects.
	Group, Version, Name, Kind string
	// Singular is the name of one object; the default is Kind in lower case.
	Singular string
	// ShortNames are abbreviations, Categories groups such as "all".
	ShortNames, Categories []string
	// Namespaced is whether its objects have a namespace.
	Namespaced bool
	// HasStatus is whether it has a status subresource.
	HasStatus bool
}

// resource is one version in which a collection is served. It is immutable but for
// the mark that it is retired.
type resource struct {
	Resource
	*collection
	typed    bool   // objects are Go types of the scheme, not maps
	listKind string // "" is the kind with List behind it
	// storedAs is the version that objects held as maps are stored in.
	storedAs schema.GroupVersion
	columns  []printerColumn
	fields   []string // paths of custom fields that can be selected by
	scale    *scalePaths

	// retired says that this version is no longer served, or served otherwise. The
	// server's lock guards it.
	retired bool
}

func (r *resource) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Name}
}

func (r *resource) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

func (r *resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Name}
}

func (r *resource) listGVK() schema.GroupVersionKind {
	gvk := r.gvk()
	gvk.Kind += "List"
	if r.listKind != "" {
		gvk.Kind = r.listKind
	}
	return gvk
}

// builtinResources returns the built-in resources that today's servers have and
// whose Go types the scheme knows.
func builtinResources(scheme *runtime.Scheme) map[schema.GroupVersionResource]*resource {
	resources := make(map[schema.GroupVersionResource]*resource)
	for _, b := range builtin.All() {
		if b.Removed == "" && scheme.Recognizes(b.GVK()) {
			resources[b.GVR()] = &resource{typed: true, collection: newCollection(), Resource: Resource{
				Group: b.Group, Version: b.Version, Name: b.Resource, Kind: b.Kind,
				Singular: b.Singular(), ShortNames: b.ShortNames(), Categories: b.Categories(),
				Namespaced: b.Namespaced, HasStatus: b.HasStatus,
			}, scale: builtinScale(b.Group, b.Resource)}
		}
	}
	crds := definitionsResource()
	resources[crds.gvr()] = crds
	return resources
}

// Register adds a resource whose objects are held as maps, which stands for a
// custom resource.
func (s *Server) Register(r Resource) error {
	if r.Version == "" || r.Name == "" || r.Kind == "" {
		return fmt.Errorf("apisim: a resource needs a version, a name and a kind, got %+v", r)
	}
	if r.Singular == "" {
		r.Singular = strings.ToLower(r.Kind)
	}
	added := &resource{Resource: r, columns: defaultColumns(), storedAs: schema.GroupVersion{Group: r.Group, Version: r.Version}, collection: newCollection()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists := s.resources[added.gvr()]; exists {
		return fmt.Errorf("apisim: the resource %v exists already", added.gvr())
	}
	added.floor = s.version
	s.resources[added.gvr()] = added
	return nil
}
