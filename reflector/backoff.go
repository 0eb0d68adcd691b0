package reflector

import (
	"math/rand/v2"
	"time"
)

// Backoff says how long to wait between attempts. Its zero value is ready.
type Backoff struct {
	// Initial is the wait after the first failure; 0 means 800 ms.
	Initial time.Duration
	// Max is the longest wait before jitter; 0 means 30 s.
	Max time.Duration
	// Jitter is how far a wait is moved at random, as a part of it: 0.5 moves
	// it to between 0.5 and 1.5 of itself. 0 means 0.5; a negative value means
	// none.
	Jitter float64
}

// The first and the longest wait are those that client-go's reflector has had
// since v0.19, which API servers are dimensioned for.
const (
	defaultInitialBackoff = 800 * time.Millisecond
	defaultMaxBackoff     = 30 * time.Second
	defaultJitter         = 0.5
)

func (b Backoff) withDefaults() Backoff {
	if b.Initial <= 0 {
		b.Initial = defaultInitialBackoff
	}
	if b.Max <= 0 {
		b.Max = defaultMaxBackoff
	}
	if b.Jitter == 0 {
		b.Jitter = defaultJitter
	}
	return b
}

// delay returns the wait after so many failures in a row, at least 1. It is
// never shorter than atLeast, which is what the server asked for: jitter comes
// on top of it, and in proportion to it, so that those who were told the same do not
// come back together.
func (b Backoff) delay(failures int, atLeast time.Duration) time.Duration {
	wait := b.Initial
	for range failures - 1 {
		if wait *= 2; wait >= b.Max {
			break
		}
	}
	wait = min(wait, b.Max)
	if b.Jitter > 0 {
		wait = time.Duration(float64(wait) * (1 + b.Jitter*(2*rand.Float64()-1)))
	}
	if atLeast > wait {
		return atLeast + time.Duration(max(b.Jitter, 0)*rand.Float64()*float64(max(atLeast, b.Initial)))
	}
	return wait
}

// jitter returns a part of d at random.
func jitter(d time.Duration) time.Duration { return rand.N(d) }
