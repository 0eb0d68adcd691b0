package sharedinformer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// TestSupervise runs a function that panics, with a context that ends during a call or a pause.
func TestSupervise(t *testing.T) {
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers })
	for _, tt := range []struct {
		name   string
		panics int           // of the first calls
		ends   time.Duration // of the context; 0 is during the first call
		calls  int
		took   time.Duration
	}{
		{"no panic", 0, time.Hour, 1, 0},
		{"two panics", 2, time.Hour, 3, 2 * pauseAfterCrash},
		{"the end during a call", 9, 0, 1, 0},
		{"the end during a pause", 9, pauseAfterCrash * 3 / 2, 2, pauseAfterCrash * 3 / 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.ends+time.Nanosecond)
				defer cancel()
				calls, began := 0, time.Now()
				supervise(ctx, func(context.Context) {
					if calls++; tt.ends == 0 {
						cancel()
					}
					if calls <= tt.panics {
						panic("stop")
					}
				})
				if took := time.Since(began).Truncate(time.Microsecond); calls != tt.calls || took != tt.took {
					t.Errorf("%d calls in %v, want %d in %v", calls, took, tt.calls, tt.took)
				}
			})
		})
	}
}
