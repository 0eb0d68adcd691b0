package controller

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/source"
)

// Secondary is an informer that the calls of a controller read besides its primary, with the keys
// that each of its changes leads to. Make one with [Owns], [References], [Maps] or [Reads].
type Secondary[T tidings.Object] struct {
	open     func(c *Controller[T]) (*caches.Informer, error)
	failures *caches.Failures // of the function of References; nil for others
	optional bool
}

// Optional lets calls begin before the informer is synced, for a type that the server may not
// serve. Every key is called once when the informer is synced. If the informer has Slots.Held and
// was synced once, a slot that comes later waits for its objects, and is not served while the
// server refuses to list them.
func (s Secondary[T]) Optional() Secondary[T] {
	s.optional = true
	return s
}

// mapper calls add with the keys that a state of a secondary object leads to. mapperFor makes it at
// the beginning of a run, when the resource of the primary's informer is known. Later, that
// resource may change.
type (
	mapper[S tidings.Object]    func(object S, add func(key string))
	mapperFor[S tidings.Object] func(primary func() source.Resource) (mapper[S], error)
)

// Owns leads from an object to its controller, by its owner reference: the group, the kind and the
// name, and the namespace of the object unless the owners have none. It adds the index of owners to
// the informer, so that Controlled of a lister visits the objects of one owner alone.
func Owns[T, S tidings.Object](informer *tidings.Informer[S]) Secondary[T] {
	return newSecondary(informer, func(*Controller[T]) (mapperFor[S], error) {
		return ownerMapper[S], informer.IndexOwners()
	})
}

// ownerMapper needs the kind of the owners, which handlers.add has asked for before.
func ownerMapper[S tidings.Object](primary func() source.Resource) (mapper[S], error) {
	if primary().Kind == "" {
		return nil, errors.New("the kind of the owners is not known: " +
			"make their informer with a factory")
	}
	return func(object S, add func(string)) {
		refs, owners := object.GetOwnerReferences(), primary()
		i := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool {
			return r.Controller != nil && *r.Controller
		})
		if i < 0 || refs[i].Kind != owners.Kind {
			return
		}
		ref := &refs[i]
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil || gv.Group != owners.Group {
			return
		}
		namespace := object.GetNamespace()
		if owners.Scope == source.ScopeCluster {
			namespace = ""
		}
		add(source.Key(namespace, ref.Name))
	}, nil
}

// References leads from an object to the primaries that mention it. names returns the keys of the
// objects that a primary mentions, as in "namespace/name". An index of the primary's informer finds
// the primaries by the objects that they mention, so that no change of a secondary visits all of
// them.
func References[T, S tidings.Object](
	informer *tidings.Informer[S], names func(T) []string,
) Secondary[T] {
	failed := &caches.Failures{}
	index := tidings.NewIndex("references", func(object T) (keys []string) {
		defer func() {
			if value := recover(); value != nil {
				failed.Add("References", keyOf(object), value)
				keys = []string{anything}
			}
		}()
		return names(object)
	})
	s := newSecondary(informer, func(c *Controller[T]) (mapperFor[S], error) {
		if names == nil {
			return nil, errors.New("References: the function is nil")
		}
		if err := c.primary.AddIndex(index); err != nil {
			return nil, err
		}
		referring := c.primary.Lister()
		return fixed(func(object S, add func(string)) {
			for _, mentioned := range [...]string{keyOf(object), anything} {
				for key := range referring.ByIndex(index, mentioned) {
					add(key)
				}
			}
		}), nil
	})
	s.failures = failed
	return s
}

// anything is the index value of an object for which the function has panicked: each change leads
// to it.
const anything = "*"

// Maps leads from an object to the keys that keys returns. It is called with the states before and
// after each change.
func Maps[T, S tidings.Object](
	informer *tidings.Informer[S], keys func(S) iter.Seq[string],
) Secondary[T] {
	return newSecondary(informer, func(*Controller[T]) (mapperFor[S], error) {
		if keys == nil {
			return nil, errors.New("Maps: the function is nil")
		}
		return fixed(func(object S, add func(string)) {
			for key := range keys(object) {
				add(key)
			}
		}), nil
	})
}

// Reads leads to no key: calls read the objects, and their changes lead to no calls.
func Reads[T, S tidings.Object](informer *tidings.Informer[S]) Secondary[T] {
	return newSecondary(informer, func(*Controller[T]) (mapperFor[S], error) {
		return fixed(func(S, func(string)) {}), nil
	})
}

// fixed returns a mapper that does not depend on the primary's resource.
func fixed[S tidings.Object](m mapper[S]) mapperFor[S] {
	return func(func() source.Resource) (mapper[S], error) { return m, nil }
}

// newSecondary returns a secondary. prepare is called once for the controller.
func newSecondary[T, S tidings.Object](
	informer *tidings.Informer[S],
	prepare func(c *Controller[T]) (mapperFor[S], error),
) Secondary[T] {
	return Secondary[T]{open: func(c *Controller[T]) (*caches.Informer, error) {
		f, err := caches.New(informer)
		if err != nil {
			return nil, fmt.Errorf("a secondary: %w", err)
		}
		mapperOf, err := prepare(c)
		if err != nil {
			return nil, err
		}
		f.Subscribe = func() (*tidings.Registration, error) {
			r := c.running.Load()
			m, err := mapperOf(c.informers.Primary().Known)
			if err != nil {
				return nil, err
			}
			return addHandler(informer, &c.o, f, func(e tidings.Event[S]) {
				changedSecondary(r.intake, f, e, m)
			})
		}
		return f, nil
	}}
}
