package reflector

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errSuspected is a watch that was ended by SuspectWatch.
var errSuspected = errors.New("the server has shown another state than its watch, " +
	"which may be that of a server that lags: the watch is begun anew")

// leastWatched is how long a watch goes on in any case.
const leastWatched = 30 * time.Second

// suspicion is what SuspectWatch needs of the running watch.
type suspicion struct {
	mu     sync.Mutex // guards the rest
	cancel context.CancelCauseFunc
	opened time.Time
	older  lastChange // what a read has shown an older state of
}

// watches notes the running watch.
func (s *suspicion) watches(cancel context.CancelCauseFunc, opened time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel, s.opened = cancel, opened
}

// take returns what a read has shown an older state of.
func (s *suspicion) take() lastChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	older := s.older
	s.older = lastChange{}
	return older
}

// SuspectWatch says that a consistent read has shown another state of the object of a key than the
// watch has brought. The watch ends, unless it began less than half a minute ago, and is begun anew:
// with several servers, maybe at one that does not lag. If the read has shown a state before version,
// which was cached before the read, the server may have been set back, and is checked before the next
// watch. version is "" otherwise. It may be called from any goroutine.
func (r *Reflector[T]) SuspectWatch(key, version string) {
	s := &r.suspicion
	s.mu.Lock()
	defer s.mu.Unlock()
	if version != "" {
		s.older = lastChange{key: key, version: version}
	}
	if s.cancel == nil || time.Since(s.opened) < leastWatched {
		return
	}
	s.cancel(errSuspected)
	s.cancel = nil
}
