package controller

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidings-go/tidings/controller/internal/queue"
)

// WaitState says what a key waits for.
type WaitState string

// The states of keys that wait.
const (
	// WaitQueued: it waits for a worker.
	WaitQueued WaitState = "Queued"
	// WaitBackingOff: its last call has failed, and it waits for the next attempt.
	WaitBackingOff WaitState = "BackingOff"
	// WaitHeldBack: no call of it may begin yet, as a cache does not show a write of its last call, an
	// informer is out of contact, or its slot is not served.
	WaitHeldBack WaitState = "HeldBack"
	// WaitRunning: a call of it runs. A change meanwhile leads to another call.
	WaitRunning WaitState = "Running"
	// WaitRequeued: its last call has asked for another one at a time.
	WaitRequeued WaitState = "Requeued"
	// WaitTerminal: its last call has failed with a Terminal error, and it waits for a change.
	WaitTerminal WaitState = "Terminal"
)

// Wait says why a key waits, and until when.
type Wait struct {
	Key   string    `json:"key"`
	State WaitState `json:"state"`
	Since time.Time `json:"since"`
	// Because is a sentence.
	Because string `json:"because"`
	// Band is the band of a queued key: changes, requeues or background. Flow is its flow, and Ahead
	// the number of keys of the flow that start before it, which only Waits of one key counts.
	Band  string `json:"band,omitempty"`
	Flow  string `json:"flow,omitempty"`
	Ahead int    `json:"ahead,omitzero"`
	// Attempt is the number of the next call, or of the running one, since the last success or
	// Terminal error; 1 without a failure. LastError is the error of the call before.
	Attempt   int    `json:"attempt"`
	LastError string `json:"lastError,omitempty"`
	// Next is the time of the next attempt, or of the call that was asked for; zero if that is not
	// known.
	Next time.Time `json:"next,omitzero"`
}

// KeysIn returns the number of keys in a state, 0 for WaitRequeued, whose keys are not counted.
func (h Health) KeysIn(s WaitState) int {
	switch s {
	case WaitQueued:
		return h.Queued.Sum()
	case WaitBackingOff:
		return h.BackingOff
	case WaitHeldBack:
		return h.ParkedKeys
	case WaitRunning:
		return h.RunningCalls
	case WaitTerminal:
		return h.TerminalKeys
	}
	return 0
}

// mostWaits bounds the keys of each state in Waits.
const mostWaits = 100

// waitStates are the states of keys in the queue. A key that is idle waits for a requeue.
var waitStates = map[queue.State]WaitState{
	queue.Idle: WaitRequeued, queue.Queued: WaitQueued, queue.Running: WaitRunning,
	queue.Parked: WaitHeldBack, queue.BackingOff: WaitBackingOff,
}

// waits describes keys: up to mostWaits in each state, or one.
func (r *run[T]) waits(key string, h Health, lastErrors map[string]string) (all []Wait) {
	found := make([]queue.Wait, 0, 1)
	if one, ok := r.queue.Wait(key); key != "" && ok {
		found = append(found, one)
	} else if key == "" {
		found = r.queue.Waits(mostWaits)
	}
	now := time.Now()
	for _, of := range found {
		w := Wait{
			Key: of.Key, State: waitStates[of.State], Since: now.Add(-of.For), Flow: of.Flow,
			Ahead: of.Place, Attempt: of.Failures + 1, LastError: lastErrors[of.Key],
		}
		if of.Timed {
			w.Next = now.Add(of.Next)
		}
		if of.Failures == 0 {
			w.LastError = ""
		}
		if of.State == queue.Queued {
			w.Band = strings.ToLower(of.Band.String())
		}
		w.Because = r.whyWaits(of, &h)
		all = append(all, w)
	}
	isListed := func(w Wait) bool { // its call has ended since the queue was read
		return slices.ContainsFunc(found, func(of queue.Wait) bool { return of.Key == w.Key })
	}
	terminal := r.terminalWaits(key)
	return append(all, slices.DeleteFunc(terminal[:min(len(terminal), mostWaits)], isListed)...)
}

// terminalKeys are the keys whose last call in a run has failed with a Terminal error: up to
// keptCalls.
type terminalKeys struct {
	mu   sync.Mutex // guards keys
	keys map[string]terminalEnd
}

// terminalEnd is the end of such a call.
type terminalEnd struct {
	at   time.Time
	text string
}

// add adds a key whose call has failed with a Terminal error, unless there are too many.
func (t *terminalKeys) add(key string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.keys, key)
	if len(t.keys) < keptCalls {
		if t.keys == nil {
			t.keys = map[string]terminalEnd{}
		}
		t.keys[key] = terminalEnd{time.Now(), err.Error()}
	}
}

// forget forgets a key.
func (t *terminalKeys) forget(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.keys, key)
}

// terminalWaits describes the keys that wait for a change after a Terminal error, or one.
func (r *run[T]) terminalWaits(key string) (all []Wait) {
	for of, failed := range r.waitForChange() {
		if key == "" || key == of {
			all = append(all, Wait{
				Key: of, State: WaitTerminal, Since: failed.at, Attempt: 1, LastError: failed.text,
				Because: "its last call has failed for good: it waits for a change",
			})
		}
	}
	slices.SortFunc(all, func(a, b Wait) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key, b.Key))
	})
	return all
}

// countTerminal returns the number of keys that wait for a change after a Terminal error.
func (r *run[T]) countTerminal() (n int) {
	for range r.waitForChange() {
		n++
	}
	return n
}

// waitForChange iterates over the keys that wait for a change after a Terminal error.
func (r *run[T]) waitForChange() iter.Seq2[string, terminalEnd] {
	return func(yield func(string, terminalEnd) bool) {
		cached := r.c.primary.Lister()
		r.terminal.mu.Lock()
		defer r.terminal.mu.Unlock()
		for key, failed := range r.terminal.keys {
			_, err := cached.Get(key) // the event of its end may be yet to come
			if err == nil && !r.queue.Has(key) && r.isServed(key) && !yield(key, failed) {
				return
			}
		}
	}
}

// whyWaits returns the reason why a key waits.
func (r *run[T]) whyWaits(w queue.Wait, h *Health) string {
	switch w.State {
	case queue.Queued:
		return h.whyQueued(w.Limited)
	case queue.Running:
		return "a call runs"
	case queue.BackingOff:
		return "its last call has failed"
	case queue.Parked:
		return r.whyHeldBack(w.Key)
	}
	return "its last call has asked for another one"
}

// whyHeldBack returns the reason why no call of a key may begin.
func (r *run[T]) whyHeldBack(key string) string {
	if r.serving != nil {
		n, known := r.serving.entryOf(key)
		if _, opened, shut := r.serving.Sets(); known && !opened.Minus(shut).Has(n) {
			return "its slot is not served at present"
		}
	}
	if informer := r.gate.ClosedBy(key); informer != "" {
		return informer + " is out of contact, or does not show what was written before"
	}
	if _, isCalled := r.c.inCall.Load(key); isCalled {
		return "a call of an earlier run has not returned"
	}
	if held, ok := r.barrier.Held(key); ok {
		return Parked(held).Because()
	}
	return "it is about to be queued"
}

// lastErrors returns the last error of each key of the log.
func (l *callLog) lastErrors() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]string{}
	for _, c := range l.failed.newest(nil, "", l.made+1) {
		if _, ok := found[c.Key]; !ok {
			found[c.Key] = c.Error
		}
	}
	return found
}
