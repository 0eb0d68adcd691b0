package lease

import "time"

// Clock reads two clocks. Go's monotonic clock stands still while the machine is suspended, and
// CLOCK_BOOTTIME does not.
type Clock struct {
	// Boot returns CLOCK_BOOTTIME, 0 on systems without it.
	Boot func() time.Duration
}

// NewClock returns the clocks of this machine.
func NewClock() Clock { return Clock{bootTime} }

// Instant is a moment on both clocks.
type Instant struct {
	at   time.Time
	boot time.Duration
}

// Now returns the present moment.
func (c Clock) Now() Instant { return Instant{time.Now(), c.Boot()} }

// Ago returns the moment that was some time before the present one.
func (c Clock) Ago(d time.Duration) Instant { return Instant{time.Now().Add(-d), c.Boot() - d} }

// Since returns the larger of the times that have passed on the two clocks.
func (c Clock) Since(i Instant) time.Duration { return max(time.Since(i.at), c.Boot()-i.boot) }
