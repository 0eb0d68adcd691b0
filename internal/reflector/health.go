package reflector

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/source"
)

// State is what a reflector is doing.
type State string

// The states of a reflector.
const (
	// Pending has not been started.
	Pending State = "Pending"
	// Listing reads the collection.
	Listing State = "Listing"
	// Watching follows the changes.
	Watching State = "Watching"
	// BackingOff waits after a failure; Health.LastError says which.
	BackingOff State = "Backoff"
	// Forbidden waits as BackingOff does: the credentials are not accepted or may
	// not list and watch. It goes on by itself once they may.
	Forbidden State = "Forbidden"
	// NoSuchResource waits as BackingOff does: the server does not serve the
	// resource. It goes on by itself once the server does.
	NoSuchResource State = "NoSuchResource"
	// Silent tore down a watch that outlived its own timeout, or that was quiet for
	// several times as long as between its bookmarks, and resumes.
	Silent State = "Silent"
	// Stopped has returned from Run.
	Stopped State = "Stopped"
)

// Failing reports whether the state is one that needs something from outside:
// a server that answers, a permission, a definition.
func (s State) Failing() bool {
	return s == BackingOff || s == Forbidden || s == NoSuchResource
}

// Health is what a reflector says of itself. It is a value: it does not change
// after it was returned.
type Health struct {
	// State is what the reflector does, Since when it began to.
	State State
	Since time.Time
	// Version is the resource version up to which everything was handed on.
	Version string
	// LastEvent is the time of the last event, bookmark or list.
	LastEvent time.Time
	// LastError is the last failure and LastErrorAt its time. They stay when
	// the reflector has recovered.
	LastError   error
	LastErrorAt time.Time
	// Failures counts the failures in a row; 0 is healthy.
	Failures int
	// RetryAt is when the present wait ends; zero while nothing waits. A server's Retry-After is obeyed for
	// up to 5 minutes, with jitter on top; LastError says when a server asked for more.
	RetryAt time.Time
	// Lists and Watches count the lists and watches begun. A list in pages is
	// one.
	Lists, Watches uint64
	// Listed is how many objects the running list has brought, 0 between lists.
	Listed int
	// Dropped counts objects that do not belong to the collection; LastDropped
	// says which was the last and why.
	Dropped     uint64
	LastDropped error
	// TransformErrors counts objects that the transform failed on; their state
	// in the cache is the one before. LastTransformError names the last.
	TransformErrors    uint64
	LastTransformError error
}

// record holds a Health and tells of its changes.
type record struct {
	mu     sync.Mutex // guards health
	health Health

	log       *slog.Logger
	level     slog.Level // of failures
	heartbeat time.Duration
	onChange  func()

	// Below is used by Run's goroutine only.

	loggedState  State     // of the last warning, "" since the last recovery
	loggedAt     time.Time // of the last warning
	failingSince time.Time
}

func (r *record) snapshot() Health {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.health
}

// change applies f under the lock.
func (r *record) change(f func(*Health)) {
	r.mu.Lock()
	f(&r.health)
	r.mu.Unlock()
}

// enter moves to a state and tells the owner.
func (r *record) enter(state State) {
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

// failed moves to the state that err calls for. It logs once per change of
// state and then at every heartbeat.
func (r *record) failed(err error, retryAt time.Time) {
	now := time.Now()
	state := stateOf(err)
	err = source.Bound(err)
	r.change(func(h *Health) {
		h.LastError, h.LastErrorAt, h.RetryAt = err, now, retryAt
		h.Failures++
	})
	r.enter(state)
	if r.loggedState == "" {
		r.failingSince = now
	}
	if state != r.loggedState || now.Sub(r.loggedAt) >= r.heartbeat {
		r.loggedState, r.loggedAt = state, now
		r.log.Log(context.Background(), r.level, "list and watch failed", "state", string(state), "error", err, "retry_in", retryAt.Sub(now).Round(time.Millisecond))
	}
}

// recovered notes that the server is being followed again.
func (r *record) recovered() {
	if r.loggedState != "" {
		r.log.Info("list and watch recovered", "after", time.Since(r.failingSince).Round(time.Millisecond))
		r.loggedState = ""
	}
}

// stateOf says which state a failure leads to.
func stateOf(err error) State {
	switch {
	case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
		return Forbidden
	case apierrors.IsNotFound(err) || errors.Is(err, source.ErrWrongScope):
		return NoSuchResource
	default:
		return BackingOff
	}
}
