package fanout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrClosed is returned for what needs a log that is open.
var ErrClosed = errors.New("the log is closed")

// ErrGoexit is the value reported for a handler that called runtime.Goexit, as
// the FailNow and Fatal methods of a test do.
var ErrGoexit = errors.New("the handler called runtime.Goexit")

// StuckError says whose goroutine had not ended when Log.Wait gave up.
type StuckError struct {
	// Calls are those handlers, by name.
	Calls []Call
	// Cause is why the waiting ended: the cause of the context.
	Cause error
}

// Call is a call of a handler that has not returned.
type Call struct {
	// Handler is the subscription's name.
	Handler string
	// Key is the key that the call is about.
	Key string
	// Since is when it began: see Stats.Since. Zero if the handler is not being
	// called and only its goroutine has not ended.
	Since time.Time
}

func newStuckError[T any](running []*Subscription[T], cause error) error {
	if len(running) == 0 {
		return nil
	}
	e := &StuckError{Cause: cause}
	for _, s := range running {
		st := s.Stats()
		e.Calls = append(e.Calls, Call{Handler: s.name, Key: st.Key, Since: st.Since})
	}
	slices.SortFunc(e.Calls, func(a, b Call) int { return strings.Compare(a.Handler, b.Handler) })
	return e
}

// Error names each handler, the key of its call and since when it runs.
func (e *StuckError) Error() string {
	var b strings.Builder
	b.WriteString("fanout: handlers have not returned (give them more time, or make them return): ")
	for i, c := range e.Calls {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", c.Handler)
		if !c.Since.IsZero() {
			fmt.Fprintf(&b, " (key %q, since %s)", c.Key, c.Since.Format(time.RFC3339Nano))
		}
	}
	fmt.Fprintf(&b, ": %v", e.Cause)
	return b.String()
}

// Unwrap returns the cause.
func (e *StuckError) Unwrap() error { return e.Cause }
