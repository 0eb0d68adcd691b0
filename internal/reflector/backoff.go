package reflector

import (
	"math/rand/v2"
	"time"
)

// Backoff says how long to wait between attempts. Its zero value is ready.
type Backoff struct {
	// Initial is the wait after the first failure, a millisecond or more; 0 means 800 ms.
	Initial time.Duration
	// Max is the longest wait before jitter, a millisecond or more; 0 means 30 s. A server that
	// asks for a longer one is obeyed for up to 5 minutes.
	Max time.Duration
	// Jitter is how far a wait is moved at random, as a part of it: 0.5 moves
	// it to between 0.5 and 1.5 of itself. 0 means 0.5; a negative value means
	// none. The most is 1.
	Jitter float64
}

// The first and the longest wait are those that client-go's reflector has had
// since v0.19, which API servers are dimensioned for.
const (
	defaultInitialBackoff = 800 * time.Millisecond
	defaultMaxBackoff     = 30 * time.Second
	defaultJitter         = 0.5
)

// maxRetryAfter is the longest wait that a server is obeyed in, before jitter. API servers
// ask for seconds; what asks for more is a proxy, or broken, and would keep a cache stale for
// as long as it likes.
const maxRetryAfter = 5 * time.Minute

func (b Backoff) withDefaults() Backoff {
	b.Initial = orDefault(b.Initial, defaultInitialBackoff)
	b.Max = orDefault(b.Max, defaultMaxBackoff)
	b.Jitter = orDefault(b.Jitter, defaultJitter)
	return b
}

// delay returns the wait after so many failures in a row, at least 1. It is
// never shorter than atLeast, which is what the server asked for: jitter comes
// on top of it, and in proportion to it, so that those who were told the same do not
// come back together.
func (b Backoff) delay(failures int, atLeast time.Duration) time.Duration {
	wait := min(b.Initial, b.Max)
	for range failures - 1 {
		if wait = min(sum(wait, wait), b.Max); wait == b.Max {
			break
		}
	}
	if b.Jitter > 0 {
		wait = part(wait, 1+b.Jitter*(2*rand.Float64()-1))
	}
	if atLeast > wait {
		return sum(atLeast, part(max(atLeast, b.Initial), max(b.Jitter, 0)*rand.Float64()))
	}
	return wait
}

// jitter returns a part of d at random.
func jitter(d time.Duration) time.Duration { return rand.N(d) }
