package resolve

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// Type is a resource of the server.
type Type struct {
	// Resource and Kind name it to the server.
	Resource schema.GroupVersionResource
	Kind     schema.GroupVersionKind
	// Singular is what one object of it is called, in lower case.
	Singular string
	// Namespaced says whether its objects have a namespace.
	Namespaced bool
}

// Mapper is what a Resolver needs of a REST mapper.
type Mapper = meta.RESTMapper

// Discovery is what a Resolver needs of a discovery client.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
	ServerPreferredResources() ([]*metav1.APIResourceList, error)
}

var _ Discovery = (discovery.DiscoveryInterface)(nil)

// Resolver finds the types of one server.
type Resolver struct {
	mapper    Mapper
	discovery Discovery
}

// New returns a resolver of the names that mapper and discovery know.
func New(mapper Mapper, d Discovery) *Resolver { return &Resolver{mapper, d} }

// UnknownTypeError is a name that the server does not have.
type UnknownTypeError struct {
	// Name is what was typed.
	Name string
	// Near are names that the server has, nearest first; it may be empty.
	Near []string
}

// Error offers the near names.
func (e *UnknownTypeError) Error() string {
	message := fmt.Sprintf("the server has no type %q", e.Name)
	switch len(e.Near) {
	case 0:
		return message + ": `kubectl api-resources` lists those it has"
	case 1:
		return message + ": did you mean " + e.Near[0] + "?"
	default:
		last := len(e.Near) - 1
		return message + ": did you mean " + strings.Join(e.Near[:last], ", ") + " or " + e.Near[last] + "?"
	}
}

// NotWatchableError is a type whose objects cannot be listed and watched.
type NotWatchableError struct {
	// Name is the resource.
	Name string
}

// Error says what is missing.
func (e *NotWatchableError) Error() string {
	return fmt.Sprintf("the server cannot list and watch %s: `kubectl api-resources --verbs=list,watch` lists what it can", e.Name)
}

// Resolve returns the type of a name.
func (r *Resolver) Resolve(name string) (Type, error) {
	kind, resource, err := r.find(name)
	if meta.IsNoMatchError(err) {
		return Type{}, &UnknownTypeError{Name: name, Near: r.near(name)}
	}
	if ambiguous, ok := errors.AsType[*meta.AmbiguousResourceError](err); ok {
		return Type{}, fmt.Errorf("%q means several types: add the group, as in %s", name, groupNames(ambiguous.MatchingResources))
	}
	if err != nil {
		return Type{}, fmt.Errorf("looking for the type %q: %w", name, err)
	}
	mapping, err := r.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return Type{}, fmt.Errorf("looking for the type %q: %w", name, err)
	}
	t := Type{
		Resource: resource, Kind: kind, Singular: strings.ToLower(kind.Kind),
		Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
	}
	return t, r.describe(&t)
}

// describe checks what the server lets one do with a type, and takes over what it
// calls one object.
func (r *Resolver) describe(t *Type) error {
	list, err := r.discovery.ServerResourcesForGroupVersion(t.Resource.GroupVersion().String())
	if err != nil {
		return fmt.Errorf("looking for the verbs of %s: %w", t.Resource.Resource, err)
	}
	for _, served := range list.APIResources {
		if served.Name != t.Resource.Resource {
			continue
		}
		if !watchable(served.Verbs) {
			return &NotWatchableError{Name: t.Resource.Resource}
		}
		t.Namespaced = served.Namespaced
	}
	return nil
}

// find looks a name up as resource.version.group, then as resource.group, then as
// a kind in the same forms.
func (r *Resolver) find(name string) (schema.GroupVersionKind, schema.GroupVersionResource, error) {
	versioned, grouped := schema.ParseResourceArg(strings.ToLower(name))
	partials := []schema.GroupVersionResource{grouped.WithVersion("")}
	if versioned != nil {
		partials = append([]schema.GroupVersionResource{*versioned}, partials...)
	}
	var err error
	for _, partial := range partials {
		var resource schema.GroupVersionResource
		if resource, err = r.mapper.ResourceFor(partial); err != nil {
			if meta.IsNoMatchError(err) {
				continue
			}
			return schema.GroupVersionKind{}, resource, err
		}
		kind, err := r.mapper.KindFor(resource)
		return kind, resource, err
	}
	if kind, resource, ok := r.findKind(name); ok {
		return kind, resource, nil
	}
	return schema.GroupVersionKind{}, schema.GroupVersionResource{}, err
}

func (r *Resolver) findKind(name string) (schema.GroupVersionKind, schema.GroupVersionResource, bool) {
	versioned, grouped := schema.ParseKindArg(name)
	if versioned != nil {
		if mapping, err := r.mapper.RESTMapping(versioned.GroupKind(), versioned.Version); err == nil {
			return mapping.GroupVersionKind, mapping.Resource, true
		}
	}
	mapping, err := r.mapper.RESTMapping(grouped)
	if err != nil {
		return schema.GroupVersionKind{}, schema.GroupVersionResource{}, false
	}
	return mapping.GroupVersionKind, mapping.Resource, true
}

// near looks for names like the one that was not found. A server that answers for
// only a part of its groups still helps.
func (r *Resolver) near(name string) []string {
	lists, err := r.discovery.ServerPreferredResources()
	if err != nil && len(lists) == 0 {
		return nil
	}
	return near(name, candidates(lists))
}

func groupNames(resources []schema.GroupVersionResource) string {
	var names []string
	for _, r := range resources {
		names = append(names, strings.TrimSuffix(r.Resource+"."+r.Group, "."))
	}
	return strings.Join(names, " or ")
}
