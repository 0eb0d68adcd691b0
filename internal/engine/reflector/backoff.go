package reflector

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tidings-go/tidings/source"
)

// withDefaults sets the first and the longest wait of client-go's reflector since v0.19, for which
// API servers are sized.
func withDefaults(b source.Backoff) source.Backoff {
	b.Initial = cmp.Or(b.Initial, 800*time.Millisecond)
	b.Max = cmp.Or(b.Max, 30*time.Second)
	b.Jitter = cmp.Or(b.Jitter, 0.5)
	return b
}

// delay returns the wait after a number of failures in a row, at least 1. It is never shorter than
// atLeast, which the server asked for. Jitter is added to that in proportion, so that clients that
// were given the same answer do not come back together.
func delay(b source.Backoff, failures int, atLeast time.Duration) time.Duration {
	wait := min(b.Initial, b.Max)
	for range failures - 1 {
		if wait = min(sum(wait, wait), b.Max); wait == b.Max {
			break
		}
	}
	if b.Jitter > 0 {
		wait = scale(wait, 1+b.Jitter*(2*rand.Float64()-1))
	}
	if atLeast > wait {
		return sum(atLeast, scale(max(atLeast, b.Initial), max(b.Jitter, 0)*rand.Float64()))
	}
	return wait
}

// sum returns a+b, or the longest duration if that is longer. Both are positive.
func sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// scale returns d*factor, or the longest duration if that is longer.
func scale(d time.Duration, factor float64) time.Duration {
	if product := float64(d) * factor; product < math.MaxInt64 {
		return time.Duration(product)
	}
	return math.MaxInt64
}

// waitAfter returns how long to wait after a number of failures in a row, of which err is the last,
// and err, which says so if the server asks for a longer wait.
func waitAfter(b source.Backoff, err error, end ending, failures int) (time.Duration, error) {
	if end.retryAfter > source.MaxRetryAfter {
		err = fmt.Errorf("%w (the server asks for a wait of %v: "+
			"the next attempt is after about %v)", err, end.retryAfter, source.MaxRetryAfter)
	}
	return delay(b, failures, min(end.retryAfter, source.MaxRetryAfter)), err
}

// sleep waits, or returns why ctx has ended.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// backingOff waits. Out of it lead:
//
//	the wait is over → next
//	ctx ends         → the end of Run
type backingOff[T any] struct {
	wait time.Duration
	next state[T]
}

// close closes next: a list in pages has a span while it waits.
func (s *backingOff[T]) close() { s.next.close() }

func (s *backingOff[T]) step(ctx context.Context) state[T] {
	if sleep(ctx, s.wait) != nil {
		return nil
	}
	return s.next
}
