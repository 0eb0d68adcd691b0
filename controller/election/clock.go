package election

import "time"

// clock reads two clocks. Go's monotonic clock stands still while the machine is suspended, and
// CLOCK_BOOTTIME does not.
type clock struct {
	boot func() time.Duration // CLOCK_BOOTTIME, 0 on systems without it
}

// instant is a moment on both clocks.
type instant struct {
	at   time.Time
	boot time.Duration
}

func (c clock) now() instant { return instant{time.Now(), c.boot()} }

// since returns the larger of the times that have passed on the two clocks.
func (c clock) since(i instant) time.Duration { return max(time.Since(i.at), c.boot()-i.boot) }
