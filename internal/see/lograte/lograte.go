package lograte

import (
	"sync"
	"time"
)

// Period is the least time between two lines of a limiter.
const Period = time.Minute

// Limiter lets one line pass in each Period. The zero value is ready.
type Limiter struct {
	mu       sync.Mutex // guards the rest
	last     time.Time  // when a line was logged; zero before the first
	unlogged int        // lines that did not pass since
}

// Allow reports whether a line may be logged. more are attributes for the line: the number of lines
// that did not pass since the last one, if any.
func (l *Limiter) Allow() (more []any, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if !l.last.IsZero() && now.Sub(l.last) < Period {
		l.unlogged++
		return nil, false
	}
	if l.unlogged > 0 {
		more = []any{"unlogged", l.unlogged}
	}
	l.last, l.unlogged = now, 0
	return more, true
}
