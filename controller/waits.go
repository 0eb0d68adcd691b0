package controller

import (
	"cmp"
	"fmt"
	"strings"
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
	// WaitHeldBack: it waits until a cache shows a write of its last call.
	WaitHeldBack WaitState = "HeldBack"
	// WaitRunning: a call of it runs. A change meanwhile leads to another call.
	WaitRunning WaitState = "Running"
	// WaitRequeued: its last call has asked for another one at a time.
	WaitRequeued WaitState = "Requeued"
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
	// Attempt is the number of the next call, or of the running one, since the last success; 1
	// without a failure. LastError is the error of the call before.
	Attempt   int    `json:"attempt"`
	LastError string `json:"lastError,omitempty"`
	// Next is the time of the next attempt, or of the call that was asked for; zero if that is not
	// known.
	Next time.Time `json:"next,omitzero"`
}

// mostWaits bounds the keys of each state in Waits.
const mostWaits = 100

// waitStates are the states of keys in the queue. A key that is idle waits for a requeue.
var waitStates = map[queue.State]WaitState{
	queue.Idle: WaitRequeued, queue.Queued: WaitQueued, queue.Running: WaitRunning,
	queue.Parked: WaitHeldBack, queue.BackingOff: WaitBackingOff,
}

// waits describes keys of the queue: up to mostWaits in each state, or one.
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
		w.Because = r.whyWaits(w, h)
		all = append(all, w)
	}
	return all
}

// whyWaits returns the reason why a key waits.
func (r *run[T]) whyWaits(w Wait, h Health) string {
	switch w.State {
	case WaitRunning:
		return "a call runs"
	case WaitBackingOff:
		return "its last call has failed"
	case WaitRequeued:
		return "its last call has asked for another one"
	case WaitHeldBack:
		held, ok := r.barrier.Held(w.Key)
		switch {
		case !ok:
			return "it is about to be queued"
		case held.Unknown:
			return fmt.Sprintf("its write of %s had no answer, and may still arrive", held.Object)
		}
		return fmt.Sprintf("%s does not show its write of %s", held.Informer, held.Object)
	}
	switch {
	case h.State != StateRunning:
		return fmt.Sprintf("the controller is %s, and waits for %s", h.State,
			cmp.Or(strings.Join(h.WaitingFor, ", "), "its end"))
	case h.RunningCalls >= h.Workers && h.Workers == 1:
		return "the only worker runs a call"
	case h.RunningCalls >= h.Workers:
		return fmt.Sprintf("all %d workers run calls", h.Workers)
	}
	return "its turn comes"
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
