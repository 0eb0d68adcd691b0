package simulation

import (
	"fmt"
	"sync"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/delta"
)

// checker is a handler that adds up its events, and checks that each event follows
// from the ones before.
type checker struct {
	handlerOptions
	registration registration
	compares     bool // it may not be taken back to an older version
	audited      bool // it was there at the last audit

	mu      sync.Mutex // guards the rest
	holds   map[string]state
	edges   map[string][]edge // by key, since the last audit
	ended   map[string]string // UIDs since the last audit: the kind of the event that ended it
	calls   int
	blocked chan struct{} // closed when it may go on, nil if it may
	rewound bool          // versions may be any until the next audit
	problem error
	last    []event // the newest events, for the report
}

// edge is the beginning or the end of an object in a scope.
type edge struct {
	begins bool
	uid    string
}

func (e edge) String() string {
	return map[bool]string{true: "+", false: "-"}[e.begins] + e.uid[:min(len(e.uid), 8)]
}

func newChecker(o handlerOptions, compares bool) *checker {
	return &checker{handlerOptions: o, compares: compares, holds: map[string]state{}, edges: map[string][]edge{}, ended: map[string]string{}}
}

func (w *checker) block() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blocked == nil {
		w.blocked = make(chan struct{})
	}
}

func (w *checker) unblock() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.blocked != nil {
		close(w.blocked)
		w.blocked = nil
	}
}

// handle is called by the informer.
func (w *checker) handle(e event) {
	w.mu.Lock()
	blocked := w.blocked
	w.mu.Unlock()
	if blocked != nil {
		<-blocked
	}
	if w.take(e) {
		panic("a handler that panics now and then")
	}
}

// take notes an event and returns whether to panic.
func (w *checker) take(e event) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	if w.last = append(w.last, e); len(w.last) > 30 {
		w.last = w.last[1:]
	}
	if w.problem == nil {
		w.problem = w.judge(e)
	}
	switch e.kind {
	case tidings.Added:
		w.begin(e.key, e.new)
	case tidings.Updated:
		if e.new.uid != e.old.uid {
			w.end(e.key, e.old, "replaced")
			w.begin(e.key, e.new)
		}
		w.holds[e.key] = e.new
	case tidings.Deleted:
		how := "deleted"
		if e.tombstone {
			how = "tombstone"
		}
		// The delete ends the object that it knows, whatever state came with it.
		w.end(e.key, w.holds[e.key], how)
		delete(w.holds, e.key)
	}
	return w.panics && w.calls%7 == 0
}

func (w *checker) begin(key string, s state) {
	w.holds[key] = s
	w.edges[key] = append(w.edges[key], edge{true, s.uid})
	delete(w.ended, s.uid)
}

func (w *checker) end(key string, s state, how string) {
	w.edges[key] = append(w.edges[key], edge{false, s.uid})
	w.ended[s.uid] = how
}

// judge returns what is wrong with an event.
func (w *checker) judge(e event) error {
	before, known := w.holds[e.key]
	switch {
	case known == (e.kind == tidings.Added):
		return fmt.Errorf("received %v, known before: %v", e, known)
	case e.kind == tidings.Updated && e.old != before:
		return fmt.Errorf("received %v, the state before was %v", e, before)
	case e.kind == tidings.Updated && e.resync && e.new != before:
		return fmt.Errorf("received %v, the state before was %v", e, before)
	case e.kind == tidings.Deleted && e.old.uid != before.uid && w.policy != tidings.ConflateState:
		// ConflateState leaves out the update to another incarnation that was before it.
		return fmt.Errorf("received %v, the state before was %v", e, before)
	case e.kind == tidings.Added || w.rewound || !w.compares:
		return nil
	case e.kind == tidings.Updated && !e.resync && e.new == before:
		return fmt.Errorf("received %v without a change", e)
	}
	now := e.new
	if e.kind == tidings.Deleted {
		now = e.old
	}
	if order, ok := delta.CompareDecimal(now.version, before.version); !ok || order < 0 {
		return fmt.Errorf("received %v, which goes back from %v", e, before)
	}
	return nil
}
