//go:build !unix

package cli

import "os"

// dumpSignals returns no signals: users of this system cannot send them.
func dumpSignals() []os.Signal { return nil }
