package reflector

import (
	"testing"
	"time"

	"github.com/tidings-go/tidings/source"
)

func TestP18_BackoffDoublesWithinItsBounds(t *testing.T) {
	b := withDefaults(source.Backoff{Jitter: -1})
	for failures, want := range map[int]time.Duration{
		1: 800 * time.Millisecond, 2: 1600 * time.Millisecond, 5: 12800 * time.Millisecond, 7: 30 * time.Second, 1000: 30 * time.Second,
	} {
		if got := delay(b, failures, 0); got != want {
			t.Errorf("after %d failures the wait is %v, want %v", failures, got, want)
		}
	}
	jittered := withDefaults(source.Backoff{})
	for range 1000 {
		if got := delay(jittered, 1, 0); got < 400*time.Millisecond || got > 1200*time.Millisecond {
			t.Fatalf("jitter moved 800 ms to %v", got)
		}
		if got := delay(jittered, 1, 5*time.Second); got < 5*time.Second || got > 7500*time.Millisecond {
			t.Fatalf("Retry-After of 5 s gave %v", got)
		}
	}
}
