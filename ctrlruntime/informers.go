package ctrlruntime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/inspect"
)

// ErrNoInformer is the error of WaitFor for an object of which the cache has no informer: nothing
// has asked for its type in its form, or not in its namespace.
var ErrNoInformer = errors.New("the cache has no informer of it: read it once, or watch it")

// Informers returns the informers of a cache of [NewCache], nil for any other cache. Both
// metrics.Collector.Add and the option DropIns of package debug accept the result.
func Informers(c cache.Cache) *InformerSet {
	if w, ok := c.(*wrapper); ok {
		return w.informers
	}
	return nil
}

// InformerSet holds the running informers of a cache.
type InformerSet struct {
	scheme *runtime.Scheme

	mu  sync.Mutex // guards the rest
	all []member   // as they were made
}

// informerKey says which objects an informer holds.
type informerKey struct {
	kind      schema.GroupVersionKind
	form      form
	namespace string // "" is all
	name      string // of the informer, in logs and health; "" is the Go type
}

type member struct {
	informerKey
	informer toolscache.SharedIndexInformer
}

func (s *InformerSet) add(informer toolscache.SharedIndexInformer, key informerKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, member{key, informer})
}

// members returns the informers that have not stopped.
func (s *InformerSet) members() []member {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(m member) bool { return m.informer.IsStopped() })
	return slices.Clone(s.all)
}

// Health describes the informers, in the order in which they were made.
func (s *InformerSet) Health() (all []health.Informer) {
	for _, m := range s.members() {
		if h, ok := tidingscache.HealthOf(m.informer); ok {
			all = append(all, h)
		}
	}
	return all
}

// Inspect returns the views of the informers, for packages of this module.
func (s *InformerSet) Inspect() (all []inspect.View) {
	for _, m := range s.members() {
		if of, ok := m.informer.GetStore().(interface{ Inspect() inspect.View }); ok {
			all = append(all, of.Inspect())
		}
	}
	return all
}

// WaitFor waits until the cache reflects the version of an object that was written, as the answer
// of the write has it. It waits for the informer of the object's type, form and namespace, and
// makes none: the error is ErrNoInformer then. That the object was changed or deleted again makes
// no difference. A selector that hides the object from the informer delays it until the next
// bookmark of the server, a minute or so, and a cache without bookmarks until the next change.
func (s *InformerSet) WaitFor(ctx context.Context, obj client.Object) error {
	if s == nil {
		return errors.New("ctrlruntime: WaitFor: the cache is not one of NewCache")
	}
	version := obj.GetResourceVersion()
	if _, ok := delta.CompareDecimal(version, version); !ok {
		return fmt.Errorf("ctrlruntime: WaitFor: version %q cannot be waited for: "+
			"pass an object as the answer of a write has it", version)
	}
	kind, err := apiutil.GVKForObject(obj, s.scheme)
	if err != nil {
		return fmt.Errorf("ctrlruntime: WaitFor: %w", err)
	}
	of, ok := s.find(kind, formOf(obj), obj.GetNamespace())
	if !ok {
		return fmt.Errorf("ctrlruntime: WaitFor: %v in namespace %q: %w",
			kind, obj.GetNamespace(), ErrNoInformer)
	}
	waiting, ok := of.GetStore().(interface {
		WaitFor(ctx context.Context, version string) error
	})
	if !ok {
		return fmt.Errorf("ctrlruntime: WaitFor: %v: a %T cannot wait", kind, of.GetStore())
	}
	if err := waiting.WaitFor(ctx, version); err != nil {
		h, _ := tidingscache.HealthOf(of)
		return fmt.Errorf("ctrlruntime: waiting for version %s of %v, is at %q and %s: %w",
			version, kind, h.Version, h.State, err)
	}
	return nil
}

// find returns the informer of a namespace, else that of all namespaces.
func (s *InformerSet) find(kind schema.GroupVersionKind, of form, namespace string) (
	found toolscache.SharedIndexInformer, ok bool) {
	for _, m := range s.members() {
		switch {
		case m.kind != kind || m.form != of:
		case m.namespace == namespace:
			return m.informer, true
		case m.namespace == "":
			found, ok = m.informer, true
		}
	}
	return found, ok
}
