package listwatch

import (
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/source"
)

const (
	// maxStates is the number of states that a history holds before it forgets the older half.
	maxStates = 1024
	// maxObjects is the number of events that it holds with their objects. It is small, because
	// the history may be all that keeps these objects in memory.
	maxObjects = 16
)

// state identifies a state of an object.
type state struct {
	key, uid, version string
	deleted           bool
}

func stateOf(item *source.Item[any], deleted bool) state {
	return state{item.Key, item.UID, item.Version, deleted}
}

// before reports whether the other state of the object is known to be later. The zero value
// is not before any.
func (s state) before(other state) bool {
	order, ok := delta.CompareDecimal(s.version, other.version)
	return ok && order < 0
}

// history has the last states that a source has delivered. They may not have reached the cache
// yet, or be replaced there, or deleted.
type history struct {
	young, old generation
	objects    [maxObjects]stateWithObject // a ring
	next       int                         // the index of the next place in the ring
}

type generation struct {
	states map[state]bool
	last   map[string]state // the last state of each key
}

type stateWithObject struct {
	state
	object any
}

func (h *history) addEvent(e *source.Event[any]) {
	s := stateOf(&e.Item, e.Type == source.Deleted)
	h.add(s)
	h.objects[h.next] = stateWithObject{s, e.Object}
	h.next = (h.next + 1) % maxObjects
}

func (h *history) add(s state) {
	if h.young.states == nil || len(h.young.states) >= maxStates/2 {
		h.old = h.young
		h.young = generation{make(map[state]bool), make(map[string]state)}
	}
	h.young.states[s] = true
	if last := h.last(s.key); !s.before(last) || s.uid != last.uid {
		h.young.last[s.key] = s
	}
}

func (h *history) has(s state) bool { return h.young.states[s] || h.old.states[s] }

// last returns the last state of a key, the zero value if it is not known.
func (h *history) last(key string) state {
	if s, ok := h.young.last[key]; ok {
		return s
	}
	return h.old.last[key]
}

// object returns the object of a state, nil if it is not known.
func (h *history) object(s state) any {
	for i := range h.objects {
		if h.objects[i].state == s {
			return h.objects[i].object
		}
	}
	return nil
}
