package delta

import (
	"slices"
	"strings"
	"sync"
)

// Unusable is the state of an object that cannot be handed on: the known state stays, if it is of
// the same incarnation.
type Unusable struct {
	Key, Version, UID string
	// Err says why. The queue remembers the object until a later state of it can be used, or it is
	// gone. nil is not remembered.
	Err error
}

// unusable remembers the objects whose present state cannot be used. The goroutine that pops writes
// it, and reads it without the lock.
type unusable struct {
	mu    sync.Mutex
	byKey map[string]Unusable
	begun []Unusable // in this batch; the states of the objects before could be used
}

// note notes the state of an object, which is later than one that was noted before.
func (u *unusable) note(state Unusable) {
	if state.Err == nil {
		u.forget(state.Key)
		return
	}
	before, known := u.byKey[state.Key]
	if !known || before.UID != state.UID {
		u.begun = append(u.begun, state)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byKey == nil {
		u.byKey = map[string]Unusable{}
	}
	u.byKey[state.Key] = state
}

// forget forgets an object and reports whether it was noted.
func (u *unusable) forget(key string) bool {
	if _, known := u.byKey[key]; !known {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byKey, key)
	return true
}

// forgetEach forgets the objects that gone selects.
func (u *unusable) forgetEach(gone func(state *Unusable) bool) {
	if len(u.byKey) == 0 {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, state := range u.byKey {
		if gone(&state) {
			delete(u.byKey, key)
		}
	}
}

// notedAfter reports whether a later state of an object than that of a version cannot be used.
func (r *resolver[T]) notedAfter(key, version string) bool {
	state, known := r.unusable.byKey[key]
	return known && r.older(version, state.Version)
}

// stays resolves a state that cannot be used, and reports whether that led to a change: the known
// state of another incarnation ends.
func (r *resolver[T]) stays(state Unusable, before state[T]) bool {
	r.unusable.note(state)
	if !before.exists || !differ(state.UID, before.uid) {
		return false
	}
	r.tombstone(state.Key, before.object, false)
	r.deletes.remember(state.Key, before.version, before.uid)
	return true
}

// noteListed notes the states of a list that cannot be used, in the place of those that were noted
// before.
func (r *resolver[T]) noteListed(l *list[T]) {
	r.unusable.forgetEach(func(u *Unusable) bool {
		_, stays := l.stay(u.Key)
		return !stays && strings.HasPrefix(u.Key, l.partition.prefix) &&
			(l.newHistory || !r.older(l.version, u.Version))
	})
	for _, state := range l.stays {
		i, listed := slices.BinarySearchFunc(l.items, state.Key, func(item Item[T], key string) int {
			return strings.Compare(item.Key, key)
		})
		switch object, known := r.known.Get(state.Key); {
		case listed && !r.older(l.items[i].Version, state.Version):
			r.unusable.forget(state.Key)
		case l.newHistory, !r.notedAfter(state.Key, state.Version) &&
			!(known && r.older(state.Version, r.stateOf(object).version)):
			r.unusable.note(state)
		}
	}
}

// keeps reports whether a known state stays in the place of a listed one that cannot be used.
func (r *resolver[T]) keeps(listed *Unusable, before state[T]) bool {
	return !differ(listed.UID, before.uid) || r.older(listed.Version, before.version)
}

// stay returns the index in stays of a key, and whether it is there.
func (l *list[T]) stay(key string) (i int, ok bool) {
	return slices.BinarySearchFunc(l.stays, key, func(u Unusable, key string) int {
		return strings.Compare(u.Key, key)
	})
}

// differ reports whether two UIDs are known, and those of two incarnations.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// Unusable returns the number of objects with a prefix whose present state cannot be used, and the
// one with the lowest key.
func (q *Queue[T]) Unusable(prefix string) (n int, first Unusable) {
	u := &q.resolver.unusable
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, state := range u.byKey {
		if strings.HasPrefix(key, prefix) {
			if n++; n == 1 || key < first.Key {
				first = state
			}
		}
	}
	return n, first
}

// UnusableState returns the present state of an object that cannot be used.
func (q *Queue[T]) UnusableState(key string) (state Unusable, ok bool) {
	u := &q.resolver.unusable
	u.mu.Lock()
	defer u.mu.Unlock()
	state, ok = u.byKey[key]
	return state, ok
}
