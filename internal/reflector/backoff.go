package reflector

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tidings-go/tidings/source"
)

// maxRetryAfter is the longest wait, before jitter, that a server can ask for. API servers ask
// for seconds. A proxy that asks for more would keep a cache stale for as long.
const maxRetryAfter = 5 * time.Minute

// withDefaults sets the first and the longest wait of client-go's reflector since v0.19, for
// which API servers are sized.
func withDefaults(b source.Backoff) source.Backoff {
	b.Initial = cmp.Or(b.Initial, 800*time.Millisecond)
	b.Max = cmp.Or(b.Max, 30*time.Second)
	b.Jitter = cmp.Or(b.Jitter, 0.5)
	return b
}

// delay returns the wait after a number of failures in a row, at least 1. It is never shorter
// than atLeast, which the server asked for. Jitter is added to that in proportion, so that
// clients that were given the same answer do not come back together.
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
