package fanout

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrClosed is returned by calls that need an open log.
var ErrClosed = errors.New("the log is closed")

// ErrGoexit is the value reported for a handler that called runtime.Goexit, as
// the FailNow and Fatal methods of a test do.
var ErrGoexit = errors.New("the handler called runtime.Goexit")

// stuckError names each handler whose goroutine runs, by name, with the key of its call and
// the start of that, see Stats.Since. It wraps the cause. It is nil if none runs.
func stuckError[T any](running []*Subscription[T], cause error) error {
	if len(running) == 0 {
		return nil
	}
	var calls []string
	for _, s := range running {
		call := fmt.Sprintf("%q", s.name)
		if st := s.Stats(); !st.Since.IsZero() {
			call += fmt.Sprintf(" (key %q, since %s)", st.Key, st.Since.Format(time.RFC3339Nano))
		}
		calls = append(calls, call)
	}
	slices.Sort(calls)
	return fmt.Errorf("fanout: handlers have not returned "+
		"(give them more time, or make them return): %s: %w", strings.Join(calls, ", "), cause)
}
