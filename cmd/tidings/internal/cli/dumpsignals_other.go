//go:build !unix

package cli

import "os"

// dumpSignals returns no signals: there is none that a user could send.
func dumpSignals() []os.Signal { return nil }
