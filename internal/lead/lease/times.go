package lease

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// DefaultDuration is that of client-go's elector.
const DefaultDuration = 15 * time.Second

// DefaultGrace leaves time for the release within the 30 s that a kubelet gives a pod.
const DefaultGrace = 20 * time.Second

// leastRenew is the least time between renewals. A shorter one keeps the server busy.
const leastRenew = 100 * time.Millisecond

// MaxFailures is the number of failures in a row with the longest delay.
const MaxFailures = 3

// Times are the duration of a Lease, and the period of its renewals.
type Times struct {
	Duration, Renew time.Duration
}

// Complete returns the times with their defaults, where those are 0: DefaultDuration, and a part of
// the duration. The duration counts in whole seconds.
func (t Times) Complete(part time.Duration) Times {
	t.Duration = cmp.Or(t.Duration, DefaultDuration)
	if t.Duration > time.Second {
		t.Duration = t.Duration.Truncate(time.Second)
	}
	t.Renew = cmp.Or(t.Renew, t.Duration/part)
	return t
}

// Check returns an error about the field of a struct, such as election: Options.
func (t Times) Check(options string) error {
	if t.Duration < time.Second || t.Duration/time.Second > math.MaxInt32 {
		return fmt.Errorf("%s.Duration is %v: give a second or more, or 0 for %v", options, t.Duration,
			DefaultDuration)
	}
	if t.Renew != 0 && t.Renew < leastRenew || t.Renew > t.Duration*2/5 {
		return fmt.Errorf("%s.Renew is %v: give at most two fifths of Duration, %v, and at least %v, or 0 "+
			"for the default", options, t.Renew, t.Duration*2/5, leastRenew)
	}
	return nil
}

// Seconds is the duration as a Lease holds it.
func (t Times) Seconds() int32 { return int32(t.Duration / time.Second) }

// Fence is the time from the sending of a renewal to the end of the term. A fifth of the duration
// is for clocks that run at other speeds, and for requests on their way.
func (t Times) Fence() time.Duration { return t.Duration * 4 / 5 }

// Timeout is the longest time of a request other than a watch.
func (t Times) Timeout() time.Duration { return t.Duration / 5 }

// Delay returns the wait after so many failures in a row: a sixtieth of the duration,
// doubled up to a fifteenth, with jitter. That is 250 ms to 1 s of 15 s. A longer time that the
// server asks for counts up to the time between renewals.
func (t Times) Delay(failures int, err error) time.Duration {
	d := t.Duration / 60 << (min(failures, MaxFailures) - 1)
	return max(d-rand.N(d/4+1), asked(err, t.Renew))
}

// LongDelay is Delay for what costs more than a request: it is doubled up to the duration, which
// also bounds the time that the server asks for.
func (t Times) LongDelay(failures int, err error) time.Duration {
	d := min(t.Duration/60<<min(failures-1, 6), t.Duration)
	return max(d-rand.N(d/4+1), asked(err, t.Duration))
}

// asked returns the wait that the server asks for with jitter above it, up to a longest one with
// jitter below it; 0 if it asks for none.
func asked(err error, most time.Duration) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	d := time.Duration(seconds) * time.Second
	switch {
	case !ok || d <= 0:
		return 0
	case d >= most:
		return most - rand.N(most/10+1)
	}
	return min(d+rand.N(d/10+1), most)
}

// Sleep waits until a time has passed or ctx ends, and reports whether ctx goes on.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}
