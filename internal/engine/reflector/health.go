package reflector

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/lograte"
	"github.com/tidings-go/tidings/source"
)

// heartbeat is the time after which a failure that goes on is logged again.
const heartbeat = 10 * time.Minute

// keptStates is the number of states in the history.
const keptStates = 16

// healthRecorder holds a health.Watch and logs its changes.
type healthRecorder struct {
	mu      sync.Mutex // guards health and history
	health  health.Watch
	history []health.Transition

	log      *slog.Logger
	level    slog.Level // of failures
	onChange func()
	// transforms limits the lines about transforms that failed.
	transforms lograte.Limiter
	// undecodable limits those about objects that cannot be decoded.
	undecodable lograte.Limiter

	slotsLoggedAt time.Time // of the last line about slots; only filling.run uses it

	// Only the goroutine of Run uses the rest.

	loggedState  health.State // of the last warning, "" since the last recovery
	loggedAt     time.Time    // of the last warning
	failingSince time.Time
}

func newHealthRecorder(failures slog.Level, onChange func()) *healthRecorder {
	r := &healthRecorder{level: failures, onChange: onChange}
	r.health.State, r.health.Since = health.StatePending, time.Now()
	r.remember()
	return r
}

func (r *healthRecorder) snapshot() health.Watch {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.health
	h.History = slices.Clone(r.history)
	return h
}

// present returns the state, its beginning and the version that was reached. A copy of the whole
// health would make the stack of each reflector grow for good.
func (r *healthRecorder) present() (state health.State, since time.Time, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.health.State, r.health.Since, r.health.Version
}

// change applies f under the lock.
func (r *healthRecorder) change(f func(*health.Watch)) {
	r.mu.Lock()
	f(&r.health)
	r.mu.Unlock()
}

// enter moves to a state and calls onChange if that is another one.
func (r *healthRecorder) enter(state health.State) {
	r.mu.Lock()
	changed := r.health.State != state
	if changed {
		r.health.State, r.health.Since = state, time.Now()
		r.remember()
	}
	if !state.Failing() {
		r.health.RetryAt = time.Time{}
	}
	r.mu.Unlock()
	if changed {
		r.log.Debug("state changed", "state", string(state))
		r.onChange()
	}
}

// remember adds the present state to the history. Attempts between failures are left out.
func (r *healthRecorder) remember() {
	now, n := health.Transition{State: r.health.State, At: r.health.Since}, len(r.history)
	retries := now.State == health.StateListing && r.health.Failures > 0
	if retries || n > 0 && r.history[n-1].State == now.State {
		return
	}
	if n == keptStates {
		r.history = slices.Delete(r.history, 0, 1)
	}
	r.history = append(r.history, now)
}

// failed records a failure and moves to a state. It logs once per change of state, and then at
// every heartbeat.
func (r *healthRecorder) failed(state health.State, err error, retryAt time.Time) {
	now := time.Now()
	err = source.Bound(err)
	r.change(func(h *health.Watch) {
		h.LastError, h.LastErrorAt, h.RetryAt = err, now, retryAt
		if h.Failures++; h.Failures == 1 {
			h.FailingSince = now
		}
	})
	r.enter(state)
	if r.loggedState == "" {
		r.failingSince = now
	}
	if state != r.loggedState || now.Sub(r.loggedAt) >= heartbeat {
		r.loggedState, r.loggedAt = state, now
		r.log.Log(context.Background(), r.level, "list and watch failed",
			"state", string(state), "error", err,
			"retryIn", retryAt.Sub(now).Round(time.Millisecond))
	}
}

// slotsFailed records that the objects of slots that have come could not be listed, for a number of
// times in a row. It logs the first failure, and then one at every heartbeat.
func (r *healthRecorder) slotsFailed(failures int, err error, retryAt time.Time) {
	now := time.Now()
	r.noteError(err)
	if failures == 1 || now.Sub(r.slotsLoggedAt) >= heartbeat {
		r.slotsLoggedAt = now
		r.log.Log(context.Background(), r.level,
			"the objects of slots that have come could not be listed",
			"error", source.Bound(err), "retryIn", retryAt.Sub(now).Round(time.Millisecond))
	}
}

// recovered logs the end of failures that were logged. Of a watch, the first event is the proof
// that it works, which a quiet collection receives much later: the failures ended when the watch
// began.
func (r *healthRecorder) recovered() {
	if r.loggedState == "" {
		return
	}
	until := time.Now()
	if state, since, _ := r.present(); state == health.StateWatching {
		until = since
	}
	r.log.Info("list and watch recovered", "after", until.Sub(r.failingSince).Round(time.Millisecond))
	r.loggedState = ""
}

// noteError records an error that is answered at once.
func (r *healthRecorder) noteError(err error) {
	err = source.Bound(err) // not every source bounds its errors
	r.change(func(h *health.Watch) { h.LastError, h.LastErrorAt = err, time.Now() })
}

// listCount is the number of objects of a list that health counts. A list of slots has its own,
// beside a list of Run.
type listCount struct {
	recorder *healthRecorder
	n        int
}

// set sets the number.
func (c *listCount) set(n int) {
	c.recorder.change(func(h *health.Watch) { h.Listed += n - c.n })
	c.n = n
}
