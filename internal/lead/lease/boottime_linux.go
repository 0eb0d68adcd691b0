package lease

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime returns CLOCK_BOOTTIME: the time since the machine started, suspend included.
func bootTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0 // a sandbox without the call: Go's clock remains
	}
	return time.Duration(t.Nano())
}
