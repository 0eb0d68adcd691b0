//go:build unix

package cli

import (
	"os"

	"golang.org/x/sys/unix"
)

// dumpSignals returns the signals that ask `tidings record` for a file.
func dumpSignals() []os.Signal { return []os.Signal{unix.SIGUSR1} }
