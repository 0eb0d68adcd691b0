package caches

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// Failure is the panic of a function of the program that belongs to an informer.
type Failure struct {
	Function, Object string
	At               time.Time
	Value            any
	Stack            []byte
	// Everything reports whether the change may concern any key.
	Everything bool
}

func (f *Failure) Error() string { return fmt.Sprintf("%s panicked: %v", f.Function, f.Value) }

// Failures has the last failure of the functions that belong to an informer. It is logged later, as
// functions of indexes run under a lock of the cache.
type Failures struct {
	last   atomic.Pointer[Failure]
	logged *Failure
}

// Add records the panic of a function for an object. It is called by the function that recovers it.
func (s *Failures) Add(function, object string, value any) {
	s.last.Store(&Failure{
		Function: function, Object: object, At: time.Now(), Value: value, Stack: debug.Stack(),
		Everything: function == "Maps",
	})
}

// Last returns the last failure, nil without one.
func (s *Failures) Last() *Failure { return s.last.Load() }

// Next returns the last failure if it was not returned before, or else nil.
func (s *Failures) Next() *Failure {
	failed := s.last.Load()
	if failed == s.logged {
		return nil
	}
	s.logged = failed
	return failed
}
