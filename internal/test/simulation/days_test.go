package simulation

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestDays runs a day of virtual time for each seed. doc.go lists the comparisons.
func TestDays(t *testing.T) {
	if *days.One != 0 {
		all := newTotals()
		synctest.Test(t, func(t *testing.T) { runDay(t, *days.One, all) })
		t.Log(all)
		return
	}
	next := generator(t)
	all := newTotals()
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed, ok := next(); ok; seed, ok = next() {
				t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { runDay(t, seed, all) })
				})
			}
		})
	}
	workers.Wait()
	t.Log(all)
}

// generator returns the generator of seeds.
func generator(t *testing.T) func() (seed uint64, ok bool) {
	first, began := *firstOne, time.Now()
	if *soak > 0 {
		first = uint64(began.UnixNano())
		t.Logf("seeds from %d on, for %v", first, *soak)
	}
	var given atomic.Uint64
	return func() (uint64, bool) {
		n := given.Add(1) - 1
		if *soak > 0 {
			return first + n, time.Since(began) < *soak && !t.Failed()
		}
		return first + n, n < uint64(days.Count())
	}
}
