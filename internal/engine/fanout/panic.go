package fanout

import (
	"fmt"
	"runtime/debug"
)

// Panic is a report of a handler that panicked. It is also the value of the panic with which
// the process crashes.
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

// Unwrap returns the value if it is an error, as that of a runtime error is.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// guard is deferred around calls. A handler that panicked is reported; then the
// panic goes on with the report as its value, or the notification counts as lost if panics
// are isolated. A handler that called runtime.Goexit, as a failing test does, has not panicked:
// it is reported, the notification counts as lost, and delivery goes on with
// the next one on a new goroutine.
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
