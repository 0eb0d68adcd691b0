package ctrlruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

// ErrNoInformer is the error of WaitFor if the cache has no informer for the type, form and
// namespace of the object.
var ErrNoInformer = errors.New("the cache has no informer of it: read it once, or watch it")

// Informers returns the informers of a cache of [NewCache], nil for any other cache. The
// method Add of metrics.Collector and of debug.Handler accepts the result.
func Informers(c cache.Cache) *InformerSet {
	if w, ok := c.(*wrapper); ok {
		return w.informers
	}
	return nil
}

// InformerSet holds the running informers of a cache.
type InformerSet struct {
	scheme *runtime.Scheme
	// readNewest reports whether new informers read the newest state of the server first.
	readNewest atomic.Bool

	mu      sync.Mutex       // guards the rest
	all     []*member        // as they were made
	unknown map[kindKey]bool // kinds whose reads were logged
}

// kindKey identifies the objects for which a cache has informers of its own.
type kindKey struct {
	kind schema.GroupVersionKind
	form form
}

// informerKey identifies the objects that an informer holds.
type informerKey struct {
	kindKey
	namespace string // "" is all
	name      string // of the informer, in logs and health

	resource       string // "" if it is not known
	labels, fields string // the selectors
	// without has the namespaces that the field selector leaves out.
	without []string
	// fallback says why the informer does less than one of NewCache otherwise does, "" if it does
	// all.
	fallback string
}

// member is an informer of a set.
type member struct {
	informerKey
	progress // nil if nothing tells which writes it shows: then no read waits
	informer toolscache.SharedIndexInformer
}

// progress has the methods by which the store of a clientgo/cache informer reports its state.
type progress interface {
	Await(ctx context.Context, done func() (bool, error)) error
	Over() error
	HasStarted() bool
	Reached(namespace string) (version string, ok bool)
	Cached(key string) (version, uid string, ok bool)
	Received(key string) (version, uid string, ok bool)
	SuspectWatch(key, version, uid string)
	CatchUp(key, version string)
	WaitFor(ctx context.Context, version string) error
}

// Selects reports whether the informer has a selector.
func (m *member) Selects() bool { return m.labels != "" || m.fields != "" }

// Selectors returns the selectors of the informer.
func (m *member) Selectors() (labels, fields string) { return m.labels, m.fields }

// Holds reports true: the informer holds the objects of all slots.
func (m *member) Holds(string, string) bool { return true }

func (m *member) holds() schema.GroupVersionResource {
	return m.kind.GroupVersion().WithResource(m.resource)
}

// shows reports whether the informer may hold the objects of a place.
func (m *member) shows(at place) bool {
	return m.progress != nil && m.holds().GroupResource() == at.resource &&
		(m.namespace == at.namespace || m.namespace == "" && !slices.Contains(m.without, at.namespace))
}

func (s *InformerSet) add(informer toolscache.SharedIndexInformer, key informerKey) {
	of, ok := informer.GetStore().(progress)
	if !ok || key.resource == "" {
		of = nil
		key.fallback += ", and reads of it do not wait for writes"
	}
	if key.fallback != "" {
		logger().Info("Warning: an informer does less than those of NewCache",
			"informer", key.name, "reason", key.fallback)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, &member{key, of, informer})
}

// logger returns the logger of ctrl.SetLogger.
func logger() logr.Logger { return log.Log.WithName("tidings") }

func (s *InformerSet) forget(removed []*member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(m *member) bool { return slices.Contains(removed, m) })
}

func (s *InformerSet) members() []*member {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(s.all, func(m *member) bool { return m.informer.IsStopped() })
	return slices.Clone(s.all)
}

// Health describes the informers, in the order in which they were made.
func (s *InformerSet) Health() (all []health.Informer) {
	for _, m := range s.members() {
		all = append(all, m.Health())
	}
	return all
}

// Health describes the informer. State is "" for one that is not of this project.
func (m *member) Health() health.Informer {
	h, ok := tidingscache.HealthOf(m.informer)
	if !ok {
		h.Name, h.Synced = m.name, m.informer.HasSynced()
		h.Version = m.informer.LastSyncResourceVersion()
		h.Objects = len(m.informer.GetStore().ListKeys())
	}
	h.Fallback = cmp.Or(m.fallback, h.Fallback)
	return h
}

// view is the view of a member, with its health.
type view struct {
	inspect.View
	of *member
}

// Health describes the informer.
func (v view) Health() health.Informer { return v.of.Health() }

// Inspect returns the views of the informers, for packages of this module.
func (s *InformerSet) Inspect() (all []inspect.View) {
	for _, m := range s.members() {
		if of, ok := m.informer.GetStore().(interface{ Inspect() inspect.View }); ok {
			all = append(all, view{of.Inspect(), m})
		}
	}
	return all
}

// WaitFor waits until the cache reflects the version of an object that was written, as the answer
// of the write has it. It waits for the informer of the object's type, form and namespace. If
// there is none, it returns ErrNoInformer. It also returns if the object was changed or deleted
// again. If a selector hides the object from the informer, it waits for the next bookmark of the
// server, for about a minute. A cache without bookmarks then waits for the next change.
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
	if of.progress == nil {
		return fmt.Errorf("ctrlruntime: WaitFor: %v cannot be waited for: %s", kind, of.fallback)
	}
	if err := of.WaitFor(ctx, version); err != nil {
		h := of.Health()
		return fmt.Errorf("ctrlruntime: waiting for version %s of %v, is at %q and %s: %w",
			version, kind, h.Version, h.State, err)
	}
	return nil
}

// find returns the informer of a namespace, else that of all namespaces.
func (s *InformerSet) find(kind schema.GroupVersionKind, of form, namespace string) (
	found *member, ok bool) {
	for _, m := range s.members() {
		switch {
		case m.kind != kind || m.form != of:
		case m.namespace == namespace:
			return m, true
		case m.namespace == "" && !slices.Contains(m.without, namespace):
			found, ok = m, true
		}
	}
	return found, ok
}

// readBy returns the running informers that a read in a namespace uses; "" is all namespaces.
func (s *InformerSet) readBy(kind schema.GroupVersionKind, of form, namespace string) (all []*member) {
	if namespace != "" {
		if m, ok := s.find(kind, of, namespace); ok && m.isAwaited() {
			all = append(all, m)
		}
		return all
	}
	return slices.DeleteFunc(s.members(), func(m *member) bool {
		return m.kind != kind || m.form != of || !m.isAwaited()
	})
}

// checkKnown logs, once, that a read has found no informer of a kind to wait for.
func (s *InformerSet) checkKnown(kind schema.GroupVersionKind, of form) {
	key := kindKey{kind, of}
	if slices.ContainsFunc(s.members(), func(m *member) bool { return m.kindKey == key }) {
		return
	}
	s.mu.Lock()
	wasLogged := s.unknown[key]
	s.unknown[key] = true
	s.mu.Unlock()
	if !wasLogged {
		logger().Info("Warning: a read did not wait for writes, as its informer is not known", "kind", kind)
	}
}

// isAwaited reports whether reads wait for the informer.
func (m *member) isAwaited() bool { return m.progress != nil && m.HasStarted() }
