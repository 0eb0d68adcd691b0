package follow

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/engine/delta"
)

// Follower is a handler that adds up its events. Its zero value is ready.
type Follower struct {
	// InitialFirst requires that no initial add comes after another event.
	InitialFirst bool
	// Repeats allows updates that change nothing: an informer cannot tell that of objects whose
	// versions its transform has removed.
	Repeats bool
	// Before reports whether a state is older than another one of the same key. Nil compares
	// versions, as far as they are decimals.
	Before func(state, than string) bool
	// Act is called with each event before it is added up. Nil does nothing.
	Act func(Event)

	running atomic.Bool

	mu       sync.Mutex // guards the rest
	held     map[string]string
	events   []Event
	wrong    []string
	calls    int
	replaced int
	settled  bool // it has received an add that is not initial
	ended    bool
	rewound  bool
	blocked  chan struct{} // closed when calls may go on, nil if they may
}

// wrongLimit bounds how many wrong events a Follower keeps.
const wrongLimit = 10

// Handle is the handler.
func (f *Follower) Handle(e Event) {
	if !f.running.CompareAndSwap(false, true) {
		f.mu.Lock()
		f.refuseLocked("P04: %v came during another call", e)
		f.mu.Unlock()
	} else {
		defer f.running.Store(false)
	}
	f.mu.Lock()
	blocked := f.blocked
	f.mu.Unlock()
	if blocked != nil {
		<-blocked
	}
	if f.Act != nil {
		f.Act(e)
	}
	f.note(e)
}

func (f *Follower) note(e Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	f.events = append(f.events, e)
	held, known := f.held[e.Key]
	f.checkLocked(e, held, known)
	f.settled = f.settled || e.Type == tidings.Added && !e.Initial
	if e.Type == tidings.Deleted {
		delete(f.held, e.Key)
		return
	}
	if known && UID(held) != UID(e.New) {
		f.replaced++
	}
	if f.held == nil {
		f.held = map[string]string{}
	}
	f.held[e.Key] = e.New
}

// checkLocked checks that an event follows from the state that is held of its key.
func (f *Follower) checkLocked(e Event, held string, known bool) {
	newest := e.New
	if e.Type == tidings.Deleted {
		newest = e.Old
	}
	switch {
	case f.ended:
		f.refuseLocked("P09: %v came after the end", e)
	case e.Type == tidings.Added && known:
		f.refuseLocked("P05: %v, which was there as %s", e, held)
	case e.Type == tidings.Added && e.Initial && f.settled && f.InitialFirst:
		f.refuseLocked("P05: %v is marked as initial, after one that was not", e)
	case e.Type == tidings.Added:
	case !known:
		f.refuseLocked("P04: %v, which was not there", e)
	case e.Type == tidings.Updated && e.Old != held, e.Resync && e.New != held:
		f.refuseLocked("P04: %v from %s to %s, which was there as %s", e, e.Old, e.New, held)
	case e.Type == tidings.Deleted && UID(e.Old) != UID(held):
		f.refuseLocked("P19: %v with the UID %s, which was there as %s", e, UID(e.Old), held)
	case f.rewound:
	case e.Type == tidings.Updated && e.New == held && !e.Resync && !f.Repeats:
		f.refuseLocked("P12: %v is no change of %s", e, held)
	case f.before(newest, held):
		f.refuseLocked("P02: %v goes back from %s to %s", e, held, newest)
	}
}

func (f *Follower) before(state, than string) bool {
	if f.Before != nil {
		return f.Before(state, than)
	}
	order, ok := delta.CompareDecimal(Version(state), Version(than))
	return ok && order < 0
}

func (f *Follower) refuseLocked(format string, args ...any) {
	if len(f.wrong) < wrongLimit {
		f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
	}
}

// Block holds up calls until Unblock is called.
func (f *Follower) Block() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blocked == nil {
		f.blocked = make(chan struct{})
	}
}

// Unblock lets calls go on.
func (f *Follower) Unblock() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blocked != nil {
		close(f.blocked)
		f.blocked = nil
	}
}

// End makes any later call an error.
func (f *Follower) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
}

// Rewind allows the server to go back to earlier states, or forbids it.
func (f *Follower) Rewind(may bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rewound = may
}

// Held returns the states that the events add up to, by key.
func (f *Follower) Held() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := map[string]string{}
	maps.Copy(held, f.held)
	return held
}

// Take returns the events since the last call.
func (f *Follower) Take() []Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.events
	f.events = nil
	return events
}

// Texts returns the events since the last call of it or Take, as text.
func (f *Follower) Texts() []string {
	var texts []string
	for _, e := range f.Take() {
		texts = append(texts, e.String())
	}
	return texts
}

// Calls returns how many events there were.
func (f *Follower) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Replaced returns how many objects another one has taken the place of without a delete.
func (f *Follower) Replaced() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replaced
}

// Wrong returns the events that the contract does not allow, each with the number of the
// property.
func (f *Follower) Wrong() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.wrong)
}
