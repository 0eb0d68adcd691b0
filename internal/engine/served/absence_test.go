package served_test

import (
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/engine/served"
)

// TestAbsence lists answers that a resource is missing, by their times, and whether the last is believed.
func TestAbsence(t *testing.T) {
	for name, test := range map[string]struct {
		at   []time.Duration
		want bool
	}{
		"one answer":                {[]time.Duration{0}, false},
		"less than a minute":        {[]time.Duration{0, 30 * time.Second, time.Minute - 1}, false},
		"a minute":                  {[]time.Duration{0, time.Minute}, true},
		"two that are far apart":    {[]time.Duration{0, time.Hour}, false},
		"a minute after a long gap": {[]time.Duration{0, time.Hour, time.Hour + time.Minute}, true},
		"questions that are seldom": {[]time.Duration{0, 10 * time.Minute}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var absence served.Absence
			var got bool
			for _, at := range test.at {
				got = absence.Lasts(time.Unix(1_000_000, 0).Add(at))
			}
			if got != test.want {
				t.Errorf("it lasts: %v", got)
			}
		})
	}
}
