package reflector

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

// heartbeat is how often a failure that goes on is logged again.
const heartbeat = 10 * time.Minute

// healthRecorder holds a health.Watch and logs its changes.
type healthRecorder struct {
	mu     sync.Mutex // guards health
	health health.Watch

	log      *slog.Logger
	level    slog.Level // of failures
	onChange func()

	// Only the goroutine of Run uses the rest.

	loggedState  health.State // of the last warning, "" since the last recovery
	loggedAt     time.Time    // of the last warning
	failingSince time.Time
}

func (r *healthRecorder) snapshot() health.Watch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.health
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

// failed records a failure and moves to a state. It logs once per change of state, and then at
// every heartbeat.
func (r *healthRecorder) failed(state health.State, err error, retryAt time.Time) {
	now := time.Now()
	err = source.Bound(err)
	r.change(func(h *health.Watch) {
		h.LastError, h.LastErrorAt, h.RetryAt = err, now, retryAt
		h.Failures++
	})
	r.enter(state)
	if r.loggedState == "" {
		r.failingSince = now
	}
	if state != r.loggedState || now.Sub(r.loggedAt) >= heartbeat {
		r.loggedState, r.loggedAt = state, now
		r.log.Log(context.Background(), r.level, "list and watch failed",
			"state", string(state), "error", err,
			"retry_in", retryAt.Sub(now).Round(time.Millisecond))
	}
}

// recovered logs the end of failures that were logged.
func (r *healthRecorder) recovered() {
	if r.loggedState != "" {
		lasted := time.Since(r.failingSince).Round(time.Millisecond)
		r.log.Info("list and watch recovered", "after", lasted)
		r.loggedState = ""
	}
}
