package fanout

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// ErrClosed is returned by calls that need an open log.
var ErrClosed = errors.New("the log is closed")

// ErrGoexit is the value reported for a handler that called runtime.Goexit, as the FailNow and
// Fatal methods of a test do.
var ErrGoexit = errors.New("the handler called runtime.Goexit")

// stuckError names each handler whose goroutine runs, by name, with the key of its call and the
// start of that, see Stats.Since. It wraps the cause. It is nil if none runs.
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

// Panic is a report of a handler that panicked. It is also the value of the panic with which the
// process crashes.
type Panic struct {
	// Collection is the name of the log's collection.
	Collection string
	// Handler is the subscription's name.
	Handler string
	// Key is the key of the object whose notification it was called with.
	Key string
	// Value is the value of the panic: ErrGoexit if it called runtime.Goexit.
	Value any
	// Stack is the goroutine's stack, from the panic down.
	Stack []byte
}

// maxKey bounds how much of a key is printed. A key of Kubernetes is shorter.
const maxKey = 512

// Error names the handler, its collection, the key and the value.
func (p *Panic) Error() string {
	return fmt.Sprintf("handler %q of informer %s panicked at object %.*q: %v",
		p.Handler, p.Collection, maxKey, p.Key, p.Value)
}

// Unwrap returns the value if it is an error, as of a runtime error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// guard is deferred around calls. A handler that panicked is reported; then the panic goes on with
// the report as its value, or the notification counts as lost if panics are isolated. A handler
// that called runtime.Goexit, as a failing test does, has not panicked: it is reported, the
// notification counts as lost, and delivery goes on with the next one on a new goroutine.
func (s *reader[T]) guard() {
	if !s.inCall {
		return
	}
	v := recover()
	s.inCall = false
	s.exited = v == nil
	s.panics.Add(1)
	report := Panic{
		Collection: s.log.name(), Handler: s.name, Key: s.run.calls[s.made].Key, Value: v,
		Stack: debug.Stack(),
	}
	if s.exited {
		report.Value = ErrGoexit
	}
	if s.onPanic != nil {
		s.onPanic(report)
	}
	if !s.exited && !s.isolate {
		panic(&report)
	}
	s.called()
}
