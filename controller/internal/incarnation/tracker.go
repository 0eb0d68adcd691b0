package incarnation

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// Tracker tracks the objects that calls were made for, by key.
type Tracker[T tidings.Object] struct {
	mu sync.Mutex // guards the rest
	// called has the object of the last call, by key.
	called map[string]called
	// ended has the last states of called objects that are gone, by key.
	ended map[string]T
}

// called is an object that a call was made for.
type called struct {
	uid types.UID
	// version is the version of the state that the last successful call began with; "" before such a
	// call.
	version string
}

// New returns a tracker without objects.
func New[T tidings.Object]() *Tracker[T] {
	return &Tracker[T]{called: map[string]called{}, ended: map[string]T{}}
}

// Next is the state of the object that the next call of a key is made for.
type Next uint8

// The states of the object of the next call.
const (
	Nothing    Next = iota // there is no such object, and there was none
	Present                // the cached state
	Ended                  // the end of an object
	EndPending             // an object has ended, and the handler has not received its last state yet
)

// Begin returns the object of the next call of a key, and the kind of the call. cached reads the
// cache. It is called with the lock that Event takes, so that no end is missed in between.
func (t *Tracker[T]) Begin(key string, cached func() (T, bool)) (T, Next) {
	t.mu.Lock()
	defer t.mu.Unlock()
	object, ok := cached()
	earlier, was := t.called[key]
	if was && ok && earlier.uid != "" && object.GetUID() == earlier.uid {
		delete(t.ended, key) // it had left the selection, and is back
		return object, Present
	}
	last, ended := t.ended[key]
	switch {
	case ended:
		return last, Ended
	case was && (!ok || written.Another(object.GetUID(), earlier.uid)):
		return object, EndPending
	}
	if !ok {
		return object, Nothing
	}
	if !was {
		t.called[key] = called{uid: object.GetUID()}
	}
	return object, Present
}

// Event records the last state of an object whose end an event reports. It reports whether it did:
// a call may wait for that state.
func (t *Tracker[T]) Event(key string, e tidings.Event[T]) bool {
	if e.Type == tidings.Added ||
		e.Type == tidings.Updated && !written.Another(e.Old.GetUID(), e.New.GetUID()) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	earlier, called := t.called[key]
	if !called || written.Another(earlier.uid, e.Old.GetUID()) {
		return false
	}
	t.ended[key] = e.Old
	return true
}

// UID returns the UID of the object that calls of a key were made for.
func (t *Tracker[T]) UID(key string) (uid types.UID, called bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, called := t.called[key]
	return of.uid, called
}

// Gone returns the keys of objects that have ended and whose end has had no successful call.
func (t *Tracker[T]) Gone() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Keys(t.ended))
}

// Forget forgets the objects that calls were made for and that has reports. It returns their keys.
func (t *Tracker[T]) Forget(has func(key string, uid types.UID) bool) (keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, of := range t.called {
		if has(key, of.uid) {
			keys = append(keys, key)
			delete(t.called, key)
			delete(t.ended, key)
		}
	}
	return keys
}

// End forgets an object that is gone: its last call has succeeded, or failed for good.
func (t *Tracker[T]) End(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.called, key)
	delete(t.ended, key)
}

// Succeeded records the version that a successful call began with.
func (t *Tracker[T]) Succeeded(key, version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if called, ok := t.called[key]; ok {
		called.version = version
		t.called[key] = called
	}
}

// Reconciled returns the version that the last successful call of the key began with, and reports
// whether calls were made for an object of the key.
func (t *Tracker[T]) Reconciled(key string) (version string, called bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, called := t.called[key]
	return of.version, called
}
