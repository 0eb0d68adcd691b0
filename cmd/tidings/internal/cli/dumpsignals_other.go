//go:build !unix

package cli

import "os"

// dumpSignals returns no signals: users cannot send one here.
func dumpSignals() []os.Signal { return nil }
