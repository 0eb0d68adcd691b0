package listwatch

import (
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

const (
	// mostStates is how many states recentStates has before it forgets the older half.
	mostStates = 1024
	// mostContents is how many events it has with the object: what it holds may be garbage
	// otherwise.
	mostContents = 16
)

// state names a state of an object that a source has told.
type state struct {
	key, uid, version string
	deleted           bool
}

func stateOf(item *source.Item[any], deleted bool) state {
	return state{item.Key, item.UID, item.Version, deleted}
}

// before reports whether another state of the object is known to come later. The zero value
// does not.
func (s state) before(other state) bool {
	order, ok := delta.CompareDecimal(s.version, other.version)
	return ok && order < 0
}

// content is a state with its object.
type content struct {
	state
	object any
}

// recentStates has what a source has told last. It may be on its way to the cache, or
// replaced there, or deleted.
type recentStates struct {
	young, old generation
	contents   [mostContents]content // a ring
	next       int                   // where the ring goes on
}

type generation struct {
	states map[state]bool
	last   map[string]state // the last state of each key
}

// addEvent notes what an event says, with the object.
func (r *recentStates) addEvent(e *source.Event[any]) {
	s := stateOf(&e.Item, e.Type == source.Deleted)
	r.add(s)
	r.contents[r.next] = content{s, e.Object}
	r.next = (r.next + 1) % mostContents
}

// add notes a state.
func (r *recentStates) add(s state) {
	if r.young.states == nil || len(r.young.states) >= mostStates/2 {
		r.young, r.old = generation{make(map[state]bool), make(map[string]state)}, r.young
	}
	r.young.states[s] = true
	if last := r.last(s.key); !s.before(last) || s.uid != last.uid {
		r.young.last[s.key] = s
	}
}

func (r *recentStates) has(s state) bool { return r.young.states[s] || r.old.states[s] }

// last returns the last state of a key, the zero value if it is not known.
func (r *recentStates) last(key string) state {
	if s, ok := r.young.last[key]; ok {
		return s
	}
	return r.old.last[key]
}

// content returns the object of a state, nil if it is not known.
func (r *recentStates) content(s state) any {
	for i := range r.contents {
		if r.contents[i].state == s {
			return r.contents[i].object
		}
	}
	return nil
}
