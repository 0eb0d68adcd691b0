package tidingstest

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/source"
)

const (
	// labelNumber has the number of the write that made a state. Numbers only grow, so
	// that states are told apart, and ordered, without versions.
	labelNumber = "n"
	// labelSuite has the name of the test's first namespace: informers select by it.
	labelSuite = "tidingstest"
	// labelFault makes the index function fail.
	labelFault = "fault"
)

// stateOf returns what the tests know of an object: number@version.
func stateOf(obj tidings.Object) string {
	return obj.GetLabels()[labelNumber] + "@" + obj.GetResourceVersion()
}

// number returns the number of a state.
func number(state string) int {
	text, _, _ := strings.Cut(state, "@")
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1
	}
	return n
}

func keyOf(obj tidings.Object) string { return source.Key(obj.GetNamespace(), obj.GetName()) }

// told is an event as the tests compare it.
type told struct {
	Event
	key, old, new  string // states
	oldUID, newUID string
}

// String returns the event with the numbers of its states.
func (e told) String() string {
	text := fmt.Sprintf("%v %s", e.Type, e.key)
	switch {
	case e.Initial:
		text += " initial"
	case e.Tombstone:
		text += " tombstone"
	case e.Resync:
		text += " resync"
	}
	switch e.Type {
	case tidings.Added:
		return fmt.Sprintf("%s %d", text, number(e.new))
	case tidings.Deleted:
		return fmt.Sprintf("%s %d", text, number(e.old))
	default:
		return fmt.Sprintf("%s %d→%d", text, number(e.old), number(e.new))
	}
}

func describe(e Event) told {
	d := told{Event: e, key: e.Key()}
	if e.Old != nil {
		d.old, d.oldUID = stateOf(e.Old), string(e.Old.GetUID())
	}
	if e.New != nil {
		d.new, d.newUID = stateOf(e.New), string(e.New.GetUID())
	}
	return d
}

// follower is a handler that adds up what it is told and notes what the contract does
// not allow.
type follower struct {
	name string
	// act is called with each event before it is noted; nil does nothing.
	act func(told)
	// after is called when an event was noted.
	after func()

	registration Registration
	running      atomic.Bool

	mu      sync.Mutex // guards the rest
	state   map[string]string
	uids    map[string]string
	events  []told
	broken  []string
	settled bool // it was told of an add that is not initial
	ended   bool // it must not be called any more
	rewound bool // states may go back, as the server's do
}

// brokenLimit bounds how many breaches a follower keeps.
const brokenLimit = 10

func (f *follower) breach(format string, args ...any) {
	if len(f.broken) < brokenLimit {
		f.broken = append(f.broken, fmt.Sprintf(format, args...))
	}
}

// handle is the handler.
func (f *follower) handle(e Event) {
	if !f.running.CompareAndSwap(false, true) {
		f.mu.Lock()
		f.breach("P04: %v came while another call was running", describe(e))
		f.mu.Unlock()
	} else {
		defer f.running.Store(false)
	}
	d := describe(e)
	if f.act != nil {
		f.act(d)
	}
	f.note(d)
	f.after()
}

// note checks an event against what was told before, and adds it up.
func (f *follower) note(e told) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		f.breach("P09: %v came after the end", e)
	}
	f.events = append(f.events, e)
	last, known := f.state[e.key]
	switch e.Type {
	case tidings.Added:
		switch {
		case known:
			f.breach("P05: %v, which was there as %s", e, last)
		case e.Initial && f.settled:
			f.breach("P05: %v is marked as initial, after one that was not", e)
		}
		f.settled = f.settled || !e.Initial
	case tidings.Updated:
		f.checkUpdate(e, last, known)
	case tidings.Deleted:
		switch {
		case !known:
			f.breach("P04: %v, which was not there", e)
		case number(e.old) < number(last) && !f.rewound:
			f.breach("P02: %v, which was there as %s", e, last)
		}
		delete(f.state, e.key)
		delete(f.uids, e.key)
		return
	}
	f.state[e.key], f.uids[e.key] = e.new, e.newUID
}

func (f *follower) checkUpdate(e told, last string, known bool) {
	switch {
	case !known:
		f.breach("P04: %v, which was not there", e)
	case e.old != last || e.oldUID != f.uids[e.key]:
		f.breach("P04: %v, which was there as %s", e, last)
	case number(e.new) < number(last) && !f.rewound:
		f.breach("P02: %v goes back", e)
	}
}

// end says that no call may follow.
func (f *follower) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
}

// mayGoBack says that the server goes back to an earlier state.
func (f *follower) mayGoBack() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rewound = true
}

// holds returns what the events add up to.
func (f *follower) holds() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.state)
}

// has returns the state of a key, "" if there is none.
func (f *follower) has(key string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state[key]
}

// take returns the events since the last call.
func (f *follower) take() []told {
	f.mu.Lock()
	defer f.mu.Unlock()
	events := f.events
	f.events = nil
	return events
}

// breaches returns what was not allowed.
func (f *follower) breaches() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.broken...)
}
