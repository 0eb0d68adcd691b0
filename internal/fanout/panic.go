package fanout

import "runtime/debug"

// Panic is a report of a handler that panicked.
type Panic struct {
	// Handler is the subscription's name.
	Handler string
	// Key is the key of the object whose notification it was called with.
	Key string
	// Value is what it panicked with: ErrGoexit if it called runtime.Goexit.
	Value any
	// Stack is the goroutine's stack, from the panic down.
	Stack []byte
}

// guard is deferred around calls. A handler that panicked is reported; then the
// panic goes on, or the notification counts as lost if panics are isolated. A
// handler that called runtime.Goexit, as a failing test does, has not panicked:
// it is reported, the notification counts as lost, and delivery goes on with
// the next one on a new goroutine.
func (s *Subscription[T]) guard() {
	if !s.inCall {
		return
	}
	v := recover()
	s.inCall = false
	s.exited = v == nil
	s.panics.Add(1)
	if s.onPanic != nil {
		key := s.run.calls[s.made].Key
		report := Panic{Handler: s.name, Key: key, Value: v, Stack: debug.Stack()}
		if s.exited {
			report.Value = ErrGoexit
		}
		s.onPanic(report)
	}
	if !s.exited && !s.isolate {
		panic(v)
	}
	s.called()
}
