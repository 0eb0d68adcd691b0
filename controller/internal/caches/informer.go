package caches

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/lead/written"
	"github.com/tidings-go/tidings/internal/see/histogram"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/source"
)

const (
	// LateAfter is the time after which the failures of a list and watch are long, and a key is late.
	LateAfter = time.Minute
	// reachPeriod is the period of the checks whether the watch of one namespace has reached a
	// version.
	reachPeriod = 20 * time.Millisecond
)

// Informer is an informer that a controller follows: its primary, or a secondary.
type Informer struct {
	inspect.Informer
	Handle   Handle
	Number   uint32 // 0 is the primary
	Optional bool
	// Subscribe adds the handler that queues keys.
	Subscribe func() (*tidings.Registration, error)
	Failures  *Failures
	Lag       histogram.Histogram // from the sending of a write until the cache holds it
	// Removed ends when the secondary is removed.
	Removed context.Context
	remove  context.CancelFunc
	// resolved is the informer's resource. It is set in the first run, when the server has answered.
	// The server is asked again when the informer has listed more often than listed: the definition of
	// its type may be another one. asking is true meanwhile.
	resolved atomic.Pointer[source.Resource]
	listed   atomic.Uint64
	asking   atomic.Bool
	// Admitted is set once its cache is known to show what was written before it could be read, or
	// keys are held back until it does.
	Admitted atomic.Bool
	versions map[string]string // by namespace, the last versions of the cache, for WentBack
}

// Handle is a *tidings.Informer of any type.
type Handle interface {
	Health() tidings.Health
	HasSynced() bool
	Synced() <-chan struct{}
	Namespaces() []string
	WaitFor(ctx context.Context, version string) error
	WaitForSync(ctx context.Context) error
}

// New returns the informer of a handle that follows the server, or will.
func New(handle Handle) (*Informer, error) {
	inspected, err := inspect.Of(handle)
	if err != nil {
		return nil, err
	}
	if err := inspected.Over(); err != nil {
		return nil, fmt.Errorf("informer %s: %w", inspected.Name(), err)
	}
	f := &Informer{
		Informer: inspected, Handle: handle, Failures: &Failures{}, versions: map[string]string{},
	}
	f.Removed, f.remove = context.WithCancel(context.Background())
	return f, nil
}

// Known returns the resource that Resolved has returned.
func (f *Informer) Known() source.Resource { return *f.resolved.Load() }

// Resolved returns the informer's resource. It may ask the server for it.
func (f *Informer) Resolved(ctx context.Context) (source.Resource, error) {
	if known := f.resolved.Load(); known != nil {
		return *known, nil
	}
	lists := f.Handle.Health().Lists
	resource, err := f.Resolve(ctx)
	if err == nil {
		f.listed.Store(lists)
		f.resolved.Store(&resource)
	}
	return resource, err
}

// ClaimQuestion reports whether the informer has listed since its resource was asked for. The
// caller is then to call ResolveAnew.
func (f *Informer) ClaimQuestion() bool {
	return f.resolved.Load() != nil && f.Handle.Health().Lists != f.listed.Load() &&
		f.asking.CompareAndSwap(false, true)
}

// ResolveAnew asks for the informer's resource again. It reports whether the resource has changed.
// While the server does not have it, each list leads to a question.
func (f *Informer) ResolveAnew(ctx context.Context) bool {
	defer f.asking.Store(false)
	lists := f.Handle.Health().Lists
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

// GVR returns the informer's resource, under the name that it reads at present; empty before its
// cache can be read.
func (f *Informer) GVR() schema.GroupVersionResource {
	present, known := f.Resource(), f.resolved.Load()
	switch {
	case known != nil:
		return known.GroupVersion().WithResource(cmp.Or(present.Name, known.Name))
	case !f.Handle.HasSynced() || present.Name == "":
		return schema.GroupVersionResource{}
	}
	return present.GroupVersion().WithResource(present.Name)
}

// Namespaces returns the namespaces that the informer watches separately; "" for a watch of all.
func (f *Informer) Namespaces() []string {
	if names := f.Handle.Namespaces(); len(names) > 0 {
		return names
	}
	return []string{""}
}

// Part names what one watch of the informer shows: a resource, as "deployments.apps", and how it is
// narrowed. Versions are kept by part, as a watch of one need not show the changes of another.
func (f *Informer) Part(namespace string) string {
	part := f.GVR().GroupResource().String()
	if len(f.Handle.Namespaces()) > 0 {
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

// AwaitVersion waits until the watch of a namespace, as Namespaces returns it, has reached a
// version.
func (f *Informer) AwaitVersion(ctx context.Context, namespace, version string) bool {
	if namespace == "" {
		return f.Handle.WaitFor(ctx, version) == nil
	}
	for f.Over() == nil {
		if reached, held := f.Reached(namespace); !held || written.Reaches(reached, version) {
			return true
		}
		select {
		case <-time.After(reachPeriod):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// AwaitSync waits until the informer has its first complete list. A namespace that is added later
// holds up its own keys alone, however long it cannot be read.
func (f *Informer) AwaitSync(ctx context.Context) error {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-f.Handle.Synced():
			cancel()
		case <-waiting.Done():
		}
	}()
	err := f.Handle.WaitForSync(waiting)
	if ctx.Err() == nil && f.Handle.HasSynced() && f.Over() == nil {
		return nil
	}
	return err
}

// IsAbsent reports whether calls do without the objects of a namespace, as Namespaces returns it:
// the informer is optional, and the server may not serve its type.
func (f *Informer) IsAbsent(namespace string) bool {
	return f.Optional && (f.Lacks(namespace) || f.FailsForLong(namespace))
}

// FailsForLong reports whether the list and watch of a namespace has failed for longer than a key
// of a slot in order may wait. A watch that runs has ended the failures, even if it has brought
// nothing yet.
func (f *Informer) FailsForLong(namespace string) bool {
	w := f.WatchOf(namespace)
	return w.Failures > 0 && w.State != tidings.StateWatching && time.Since(w.FailingSince) > LateAfter
}

// IsCutOff reports whether calls need the objects of a namespace, and they are missing or their
// list and watch fails for long.
func (f *Informer) IsCutOff(namespace string) bool {
	return f.IsMissing(namespace) || !f.Optional && f.FailsForLong(namespace)
}

// IsMissing reports whether calls need the objects of a namespace that was added to the informer,
// and are not listed yet.
func (f *Informer) IsMissing(namespace string) bool {
	return !f.Optional && f.Handle.HasSynced() && f.Lacks(namespace)
}

// IsSilent reports whether a namespace has received nothing for longer than d, 0 being no limit. An
// informer of an optional type that the server does not serve is not silent.
func (f *Informer) IsSilent(namespace string, d time.Duration) bool {
	if d == 0 {
		return false
	}
	w := f.WatchOf(namespace)
	if f.Optional && w.State == tidings.StateNoSuchResource {
		return false
	}
	// LastEvent is zero while the first list is being applied.
	return !w.LastEvent.IsZero() && time.Since(w.LastEvent) > d
}

// WentBack reports whether a part of the cache has a lower version than at the last call, as it
// follows a new history of the server.
func (f *Informer) WentBack() (back bool) {
	versions := map[string]string{}
	for _, namespace := range f.Namespaces() {
		version, _ := f.Reached(namespace)
		order, ok := delta.CompareDecimal(version, f.versions[namespace])
		back = back || ok && order < 0
		versions[namespace] = version // "" of one that was removed and added
	}
	f.versions = versions
	return back
}

// IsOf reports whether the informer holds the objects of a group and resource.
func (f *Informer) IsOf(r schema.GroupResource) bool {
	return f.GVR().GroupResource() == r
}

// ObjectID names an object of an informer.
type ObjectID struct {
	Informer uint32
	Key      string
}

// State is a new state of an object in a cache.
type State struct {
	ObjectID
	Version string
	Deleted string // the UID of the object, if the state is its end
}

// StateOf returns the state that an event has brought.
func StateOf[S tidings.Object](f *Informer, e tidings.Event[S]) State {
	object := e.Object()
	s := State{ObjectID: ObjectID{f.Number, e.Key()}, Version: object.GetResourceVersion()}
	if e.Type == tidings.Deleted {
		s.Deleted = string(object.GetUID())
		if e.Tombstone { // its version is older than the end
			s.Version = ""
		}
	}
	return s
}

// IsBy reports whether a write has led to the state: one with a version, or a delete of a UID.
func (s State) IsBy(version, uid string, gone bool) bool {
	if gone && uid != "" {
		return uid == s.Deleted
	}
	return version != "" && version == s.Version
}
