//go:build !unix

package flight_test

import (
	"testing"
	"time"
)

var began = time.Now()

// processorTime returns the time, where the processor time of the process is not known.
func processorTime(*testing.B) time.Duration { return time.Since(began) }
