package controller

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
	"unique"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/lead/written"
	"github.com/tidings-go/tidings/internal/see/histogram"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/source"
)

// follower is an informer that a controller follows: that of its own objects, or a secondary.
type follower[T tidings.Object] struct {
	inspect.Informer
	informer informer
	number   uint32
	optional bool
	// removed is a context that ends when the secondary is removed.
	removed context.Context
	remove  context.CancelFunc
	// resolved is the informer's resource. It is set in the first run, when the server has answered.
	// The server is asked again when the informer has listed more often than listed: a definition may
	// have come back otherwise. asking is true meanwhile.
	resolved atomic.Pointer[source.Resource]
	listed   atomic.Uint64
	asking   atomic.Bool
	// admitted is set once its cache is known to show what was written before it could be read, or keys
	// are held back until it does.
	admitted atomic.Bool
	// subscribe adds the handler that queues keys.
	subscribe func(r *run[T]) (*tidings.Registration, error)
	failures  *failures
	lag       histogram.Histogram // from the sending of a write until the cache holds it
	// Only the checks of the present run use the rest.
	logged   *failure          // of failures, the last one that was logged
	versions map[string]string // by namespace, the last versions of the cache
}

// informer is a *tidings.Informer of any type.
type informer interface {
	Health() tidings.Health
	HasSynced() bool
	Synced() <-chan struct{}
	Namespaces() []string
	WaitFor(ctx context.Context, version string) error
	WaitForSync(ctx context.Context) error
}

func newFollower[T, S tidings.Object](informer *tidings.Informer[S]) (*follower[T], error) {
	inspected, err := inspect.Of(informer)
	if err != nil {
		return nil, err
	}
	if err := inspected.Over(); err != nil {
		return nil, fmt.Errorf("informer %s: %w", inspected.Name(), err)
	}
	f := &follower[T]{
		Informer: inspected, informer: informer, failures: &failures{}, versions: map[string]string{},
	}
	f.removed, f.remove = context.WithCancel(context.Background())
	return f, nil
}

// resolve returns the informer's resource. It may ask the server for it.
func (f *follower[T]) resolve(ctx context.Context) (source.Resource, error) {
	if known := f.resolved.Load(); known != nil {
		return *known, nil
	}
	lists := f.informer.Health().Lists
	resource, err := f.Resolve(ctx)
	if err == nil {
		f.listed.Store(lists)
		f.resolved.Store(&resource)
	}
	return resource, err
}

// resolveAnew asks for the informer's resource again if it has listed since. It reports whether
// the resource has changed. While the server does not have it, each list leads to a question.
func (f *follower[T]) resolveAnew(ctx context.Context) bool {
	lists := f.informer.Health().Lists
	resource, err := f.Resolve(ctx)
	if err != nil && !apierrors.IsNotFound(err) {
		return false
	}
	f.listed.Store(lists)
	if err != nil || resource == *f.resolved.Load() {
		return false
	}
	f.resolved.Store(&resource)
	return true
}

// resource returns the informer's resource, under the name that it reads at present; empty before its cache
// can be read.
func (f *follower[T]) resource() schema.GroupVersionResource {
	present, known := f.Resource(), f.resolved.Load()
	switch {
	case known != nil:
		return known.GroupVersion().WithResource(cmp.Or(present.Name, known.Name))
	case !f.informer.HasSynced() || present.Name == "":
		return schema.GroupVersionResource{}
	}
	return present.GroupVersion().WithResource(present.Name)
}

// namespaces returns the namespaces that the informer watches separately; "" for a watch of all.
func (f *follower[T]) namespaces() []string {
	if names := f.informer.Namespaces(); len(names) > 0 {
		return names
	}
	return []string{""}
}

// part names what one watch of the informer shows: a resource, as "deployments.apps", and how it is
// narrowed. Versions are those of parts, as a watch of one need not show the changes of another one.
func (f *follower[T]) part(namespace string) string {
	part := f.resource().GroupResource().String()
	if len(f.informer.Namespaces()) > 0 {
		part += " in " + namespace
	}
	if labels, fields := f.Selectors(); labels+fields != "" {
		part += fmt.Sprintf(" with %q and %q", labels, fields)
	}
	if f.Slots() != nil {
		part += " held"
	}
	return part
}

// awaitVersion waits until the watch of a namespace, as namespaces returns it, has reached a version.
func (f *follower[T]) awaitVersion(ctx context.Context, namespace, version string) bool {
	if namespace == "" {
		return f.informer.WaitFor(ctx, version) == nil
	}
	for f.Over() == nil {
		if reached, held := f.Reached(namespace); !held || written.Reaches(reached, version) {
			return true
		}
		select {
		case <-time.After(partPeriod):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// awaitSync waits until the informer has its first complete list. A namespace that is added later holds
// up its own keys alone, however long it cannot be read.
func (f *follower[T]) awaitSync(ctx context.Context) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-f.informer.Synced():
			cancel()
		case <-waiting.Done():
		}
	}()
	err := f.informer.WaitForSync(waiting)
	if ctx.Err() == nil && f.informer.HasSynced() && f.Over() == nil {
		return nil
	}
	return err
}

// isAbsent reports whether calls do without the objects of a namespace, as namespaces returns it: the
// informer is optional, and the server may not serve its type.
func (f *follower[T]) isAbsent(namespace string) bool {
	return f.optional && (f.Lacks(namespace) || f.failsForLong(namespace))
}

// failsForLong reports whether the list and watch of a namespace has failed for longer than a key of a
// slot in order may wait. A watch that runs has ended the failures, even if it has brought nothing yet.
func (f *follower[T]) failsForLong(namespace string) bool {
	w := f.WatchOf(namespace)
	return w.Failures > 0 && w.State != tidings.StateWatching && time.Since(w.FailingSince) > lateAfter
}

// isCutOff reports whether calls need the objects of a namespace, and they are missing or their list and
// watch fails for long.
func (f *follower[T]) isCutOff(namespace string) bool {
	return f.isMissing(namespace) || !f.optional && f.failsForLong(namespace)
}

// isMissing reports whether calls need the objects of a namespace that was added to the informer, and are
// not listed yet.
func (f *follower[T]) isMissing(namespace string) bool {
	return !f.optional && f.informer.HasSynced() && f.Lacks(namespace)
}

// isSilent reports whether a namespace has received nothing for longer than d, 0 being no limit. Of an
// optional type that the server does not serve there is nothing to receive.
func (f *follower[T]) isSilent(namespace string, d time.Duration) bool {
	if d == 0 {
		return false
	}
	w := f.WatchOf(namespace)
	if f.optional && w.State == tidings.StateNoSuchResource {
		return false
	}
	// LastEvent is zero while the first list is being applied.
	return !w.LastEvent.IsZero() && time.Since(w.LastEvent) > d
}

// wentBack reports whether a part of the cache has a lower version than at the last call, as it follows a
// new history of the server.
func (f *follower[T]) wentBack() (back bool) {
	versions := map[string]string{}
	for _, namespace := range f.namespaces() {
		version, _ := f.Reached(namespace)
		order, ok := delta.CompareDecimal(version, f.versions[namespace])
		back = back || ok && order < 0
		versions[namespace] = version // "" of one that was removed and added
	}
	f.versions = versions
	return back
}

// holds reports whether the informer holds the objects of a group and resource.
func (f *follower[T]) holds(r schema.GroupResource) bool {
	return f.resource().GroupResource() == r
}

// addHandler adds a handler that loses no change, however long its backlog is.
func addHandler[T, S tidings.Object](
	informer *tidings.Informer[S], r *run[T], f *follower[T], handle func(tidings.Event[S]),
) (*tidings.Registration, error) {
	o := tidings.HandlerOptions{
		Name: "controller " + r.c.o.Name, Policy: tidings.PolicyUnbounded,
	}
	if f.number == 0 {
		o.Resync = r.c.o.Resync
	}
	return informer.AddHandler(tidings.HandlerFunc[S](func(e tidings.Event[S]) {
		if !e.Moved { // the object exists, and another process calls for it
			handle(e)
		}
	}), o)
}

// failure is the panic of a function of Maps or References, or of Options: Ignore, Flow,
// RateLimiter, Metrics or Tracer.
type failure struct {
	function, object string
	at               time.Time
	value            any
	stack            []byte
	// everything reports whether the change may concern any key.
	everything bool
}

func (f *failure) Error() string { return fmt.Sprintf("%s panicked: %v", f.function, f.value) }

// failures has the last failure of the functions that belong to an informer. It is logged later,
// as functions of indexes run under a lock of the cache.
type failures struct{ last atomic.Pointer[failure] }

func (s *failures) add(function, object string, value any) {
	s.last.Store(&failure{
		function: function, object: object, at: time.Now(), value: value, stack: debug.Stack(),
		everything: function == "Maps",
	})
}

// keyOf returns the key of an object.
func keyOf(object metav1.Object) string {
	return source.Key(object.GetNamespace(), object.GetName())
}

func (f *follower[T]) id() uint32 { return f.number }

func (f *follower[T]) observeLag(d time.Duration) { f.lag.Observe(d) }

// why is the form in which the queue keeps a reason.
type why struct {
	key      string
	manager  unique.Handle[string] // the zero value if it is not known
	informer uint32
	cause    Cause
	own      bool
}

// textOf returns the text of a handle, "" of the zero value.
func textOf(handle unique.Handle[string]) string {
	if handle == (unique.Handle[string]{}) {
		return ""
	}
	return handle.Value()
}

// managerOf returns the field manager of the last write of an object.
func managerOf(object metav1.Object) (manager unique.Handle[string]) {
	var last *metav1.ManagedFieldsEntry
	entries := object.GetManagedFields()
	for i := range entries {
		at := entries[i].Time
		if at != nil && (last == nil || !at.Before(last.Time)) {
			last = &entries[i]
		}
	}
	if last == nil {
		return manager
	}
	return unique.Make(last.Manager)
}
