//go:build unix

package cli

import (
	"os"
	"syscall"
)

// dumpSignals returns the signals that make `tidings record` write a file.
func dumpSignals() []os.Signal { return []os.Signal{syscall.SIGUSR1} }
