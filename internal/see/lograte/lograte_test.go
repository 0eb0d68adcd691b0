package lograte

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Limiter
		for i, step := range []struct {
			after    time.Duration
			ok       bool
			unlogged int
		}{
			{0, true, 0}, {0, false, 0}, {Period - 1, false, 0}, {1, true, 2}, {2 * Period, true, 0},
		} {
			time.Sleep(step.after)
			more, ok := l.Allow()
			unlogged := 0
			if len(more) == 2 && more[0] == "unlogged" {
				unlogged = more[1].(int)
			}
			if ok != step.ok || unlogged != step.unlogged {
				t.Errorf("step %d: %t with %v, want %t with %d", i, ok, more, step.ok, step.unlogged)
			}
		}
	})
}
