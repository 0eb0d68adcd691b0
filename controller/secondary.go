package controller

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/source"
)

// Secondary is an informer that the calls of a controller read besides its primary, with the keys
// that each of its changes leads to. Make one with [Owns], [References], [Maps] or [Reads].
type Secondary interface {
	// open adds the secondary to a controller.
	open(c opener) (*caches.Informer, error)
}

// opener is a [Controller] of any type, as its secondaries see it.
type opener interface {
	Name() string
	objectType() reflect.Type
	primaryInformer() any          // the *tidings.Informer of that type
	knownPrimary() source.Resource // during a run; it may change later
	present() *intake              // of the present run
}

// SecondaryOf is a [Secondary] with objects of type S. Its methods return another one.
type SecondaryOf[S tidings.Object] struct {
	informer *tidings.Informer[S]
	// prepare is called once for the controller.
	prepare  func(c opener) (mapperFor[S], error)
	failures *caches.Failures // of the function of References; nil for others
	ignore   func(old, new S) bool
	optional bool
}

// Optional lets calls begin before the informer is synced, for a type that the server may not
// serve. Every key is called once when the informer is synced. If the informer has Slots.Held and
// was synced once, a slot that comes later waits for its objects, and is not served while the
// server refuses to list them.
func (s SecondaryOf[S]) Optional() SecondaryOf[S] {
	s.optional = true
	return s
}

// Ignore leaves out the updates for which the function returns true, as a new heartbeat in a status:
// they lead to no call. As with Options.Ignore, an update that begins or ends a deletion, or
// replaces the object, is never left out.
func (s SecondaryOf[S]) Ignore(ignored func(old, new S) bool) SecondaryOf[S] {
	s.ignore = ignored
	return s
}

// mapper calls add with the keys that a state of a secondary object leads to. mapperFor makes it at
// the beginning of a run, when the resource of the primary's informer is known. Later, that
// resource may change.
type (
	mapper[S tidings.Object]    func(object S, add func(key string))
	mapperFor[S tidings.Object] func(primary func() source.Resource) (mapper[S], error)
)

var errNoSecondary = errors.New("the secondary is empty: make it with Owns, References, Maps or Reads")

func (s SecondaryOf[S]) open(c opener) (*caches.Informer, error) {
	if s.prepare == nil {
		return nil, errNoSecondary
	}
	f, err := caches.New(s.informer)
	if err != nil {
		return nil, fmt.Errorf("a secondary: %w", err)
	}
	mapperOf, err := s.prepare(c)
	if err != nil {
		return nil, err
	}
	f.Optional = s.optional
	if s.failures != nil {
		f.Failures = s.failures
	}
	f.Subscribe = func() (*tidings.Registration, error) {
		in := c.present()
		m, err := mapperOf(c.knownPrimary)
		if err != nil {
			return nil, err
		}
		return addHandler(s.informer, c.Name(), 0, func(e tidings.Event[S]) {
			changedSecondary(in, f, e, m, s.ignore)
		})
	}
	return f, nil
}

// Owns leads from an object to its controller, by its owner reference: the group, the kind and the
// name, and the namespace of the object unless the owners have none. It adds the index of owners to
// the informer, so that Controlled of a lister visits the objects of one owner alone.
func Owns[S tidings.Object](informer *tidings.Informer[S]) SecondaryOf[S] {
	return SecondaryOf[S]{informer: informer, prepare: func(opener) (mapperFor[S], error) {
		return ownerMapper[S], informer.IndexOwners()
	}}
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
// objects that a primary mentions, as in "namespace/name"; New returns an error if it takes other
// objects than the controller's. An index of the primary's informer finds the primaries by the
// objects that they mention, so that no change of a secondary visits all of them.
func References[T, S tidings.Object](
	informer *tidings.Informer[S], names func(primary T) []string,
) SecondaryOf[S] {
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
	prepare := func(c opener) (mapperFor[S], error) {
		primary, ok := c.primaryInformer().(*tidings.Informer[T])
		switch {
		case names == nil:
			return nil, errors.New("References: the function is nil")
		case !ok:
			return nil, fmt.Errorf("References: the function takes %v, and the controller is one of %v: "+
				"give a function that takes these", reflect.TypeFor[T](), c.objectType())
		}
		if err := primary.AddIndex(index); err != nil {
			return nil, err
		}
		referring := primary.Lister()
		return fixed(func(object S, add func(string)) {
			for _, mentioned := range [...]string{keyOf(object), anything} {
				for key := range referring.ByIndex(index, mentioned) {
					add(key)
				}
			}
		}), nil
	}
	return SecondaryOf[S]{informer: informer, prepare: prepare, failures: failed}
}

// anything is the index value of an object for which the function has panicked: each change leads
// to it.
const anything = "*"

// Maps leads from an object to the keys that keys returns. It is called with the states before and
// after each change.
func Maps[S tidings.Object](
	informer *tidings.Informer[S], keys func(S) iter.Seq[string],
) SecondaryOf[S] {
	return SecondaryOf[S]{informer: informer, prepare: func(opener) (mapperFor[S], error) {
		if keys == nil {
			return nil, errors.New("Maps: the function is nil")
		}
		return fixed(func(object S, add func(string)) {
			for key := range keys(object) {
				add(key)
			}
		}), nil
	}}
}

// Reads leads to no key: calls read the objects, and their changes lead to no calls.
func Reads[S tidings.Object](informer *tidings.Informer[S]) SecondaryOf[S] {
	return SecondaryOf[S]{informer: informer, prepare: func(opener) (mapperFor[S], error) {
		return fixed(func(S, func(string)) {}), nil
	}}
}

// fixed returns a mapper that does not depend on the primary's resource.
func fixed[S tidings.Object](m mapper[S]) mapperFor[S] {
	return func(func() source.Resource) (mapper[S], error) { return m, nil }
}
