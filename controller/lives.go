package controller

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// lives records the objects that calls were made for, so that the end of each is one call (C6).
type lives[T tidings.Object] struct {
	mu sync.Mutex // guards the rest
	// called has the object of the last call, by key.
	called map[string]life
	// ended has the last states of called objects that are gone, by key.
	ended map[string]T
}

// life is an object that a call was made for.
type life struct {
	uid types.UID
	// version is the version of the state that the last successful call began with; "" before
	// such a call.
	version string
}

func newLives[T tidings.Object]() *lives[T] {
	return &lives[T]{called: map[string]life{}, ended: map[string]T{}}
}

// next is the state of the object that the next call of a key is made for.
type next uint8

const (
	nothing  next = iota // there is no such object, and there was none
	theState             // the cached state
	theEnd               // the end of an object
	laterEnd             // an object has ended, and the handler has not received its last state yet
)

// begin returns the object of the next call of a key, and the kind of the call. cached reads the
// cache. It is called with the lock that changed takes, so that no end is missed in between.
func (l *lives[T]) begin(key string, cached func() (T, bool)) (T, next) {
	l.mu.Lock()
	defer l.mu.Unlock()
	object, ok := cached()
	earlier, called := l.called[key]
	if called && ok && earlier.uid != "" && object.GetUID() == earlier.uid {
		delete(l.ended, key) // it had left the selection, and is back
		return object, theState
	}
	last, ended := l.ended[key]
	switch {
	case ended:
		return last, theEnd
	case called && (!ok || written.Another(object.GetUID(), earlier.uid)):
		return object, laterEnd
	}
	if !ok {
		return object, nothing
	}
	if !called {
		l.called[key] = life{uid: object.GetUID()}
	}
	return object, theState
}

// changed records the last state of an object whose end an event reports. It reports whether it
// did: a call may wait for that state.
func (l *lives[T]) changed(key string, e tidings.Event[T]) bool {
	if e.Type == tidings.Added || e.Type == tidings.Updated && !written.Another(e.Old.GetUID(), e.New.GetUID()) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	earlier, called := l.called[key]
	if !called || written.Another(earlier.uid, e.Old.GetUID()) {
		return false
	}
	l.ended[key] = e.Old
	return true
}

// uid returns the UID of the object that calls of a key were made for.
func (l *lives[T]) uid(key string) (uid types.UID, called bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	life, called := l.called[key]
	return life.uid, called
}

// gone returns the keys of objects that have ended and whose end has had no successful call.
func (l *lives[T]) gone() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.ended))
}

// forget forgets the objects that calls were made for and that has reports. It returns their keys.
func (l *lives[T]) forget(has func(key string, uid types.UID) bool) (keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, life := range l.called {
		if has(key, life.uid) {
			keys = append(keys, key)
			delete(l.called, key)
			delete(l.ended, key)
		}
	}
	return keys
}

// over ends a life: its last call has succeeded, or failed for good.
func (l *lives[T]) over(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.called, key)
	delete(l.ended, key)
}

// succeeded records the version that a successful call began with.
func (l *lives[T]) succeeded(key, version string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if called, ok := l.called[key]; ok {
		called.version = version
		l.called[key] = called
	}
}

// reconciled returns the version that the last successful call of the key began with, and reports
// whether calls were made for an object of the key.
func (l *lives[T]) reconciled(key string) (version string, called bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	life, called := l.called[key]
	return life.version, called
}
