package apisim

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings/internal/engine/builtin"
)

// Resource describes a resource that is not built in, for [Server.Register].
type Resource struct {
	// Group, Version and Name, the plural, form the path of the resource; Kind is the kind of its
	// objects.
	Group, Version, Name, Kind string
	// Singular is the name of one object; the default is Kind in lower case.
	Singular string
	// ShortNames are abbreviations, Categories are groups such as "all".
	ShortNames, Categories []string
	// Namespaced reports whether the objects have a namespace.
	Namespaced bool
	// HasStatus reports whether the resource has a status subresource.
	HasStatus bool
}

// resource is a collection in one of its versions. It does not change.
type resource struct {
	Resource
	*collection
	typed    bool                // objects are Go types of the scheme, not maps
	listKind string              // "" is the kind with the suffix List
	storedAs schema.GroupVersion // the version of stored maps
	columns  []printerColumn
	fields   []string // paths of custom fields that objects can be selected by
	scale    *scalePaths
	isReview bool // the objects are reviews: answered, and not stored
}

func (r *resource) gv() schema.GroupVersion {
	return schema.GroupVersion{Group: r.Group, Version: r.Version}
}

func (r *resource) gvr() schema.GroupVersionResource { return r.gv().WithResource(r.Name) }

func (r *resource) gvk() schema.GroupVersionKind { return r.gv().WithKind(r.Kind) }

func (r *resource) groupResource() schema.GroupResource { return r.gvr().GroupResource() }

func (r *resource) listGVK() schema.GroupVersionKind {
	if r.listKind != "" {
		return r.gv().WithKind(r.listKind)
	}
	return r.gv().WithKind(r.Kind + "List")
}

func (r *resource) newObject() (object, error) {
	if !r.typed {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(r.gvk())
		return u, nil
	}
	obj, err := scheme.Scheme.New(r.gvk())
	if err != nil {
		return nil, err
	}
	return obj.(object), nil
}

// builtinResources returns the built-in resources of current servers.
func builtinResources() map[schema.GroupVersionResource]*resource {
	resources := make(map[schema.GroupVersionResource]*resource)
	for _, b := range builtin.All() {
		if b.Removed != "" || !scheme.Scheme.Recognizes(b.GVK()) {
			continue
		}
		r := &resource{typed: true, collection: newCollection(), columns: defaultColumns()}
		r.Resource = Resource{
			Group: b.Group, Version: b.Version, Name: b.Resource, Kind: b.Kind,
			Singular: b.Singular(), ShortNames: b.ShortNames(), Categories: b.Categories(),
			Namespaced: b.Namespaced, HasStatus: b.HasStatus,
		}
		r.scale = builtinScale(r)
		resources[b.GVR()] = r
	}
	for _, r := range reviewResources() {
		resources[r.gvr()] = r
	}
	resources[definitions] = definitionsResource()
	return resources
}

// Register adds a resource whose objects are maps, like a custom resource.
func (s *Server) Register(r Resource) error {
	if r.Version == "" || r.Name == "" || r.Kind == "" {
		return fmt.Errorf("apisim: a resource needs a version, a name and a kind, got %+v", r)
	}
	r.Singular = cmp.Or(r.Singular, strings.ToLower(r.Kind))
	added := &resource{Resource: r, columns: defaultColumns(), collection: newCollection()}
	added.storedAs = added.gv()
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists := s.resources[added.gvr()]; exists {
		return fmt.Errorf("apisim: the resource %v exists already", added.gvr())
	}
	added.floor = s.version
	s.resources[added.gvr()] = added
	return nil
}
