//go:build !linux

package lease

import "time"

// bootTime returns 0: Go's clock is the only one.
func bootTime() time.Duration { return 0 }
