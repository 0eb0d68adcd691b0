package balance

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// tableOf returns a table of n members that own equally many slots. Without owners, all slots are
// dead.
func tableOf(n int, isOwned bool) Table {
	t := Table{Entries: make([]handover.Entry, slot.Count)}
	for i := range n {
		t.Members = append(t.Members, Member{ID: handover.ID(fmt.Sprintf("images.images-%05d", i)), Generation: "1",
			Peer: handover.Peer{Standing: handover.Live, State: handover.Takes, Joined: true}})
	}
	for i := range t.Entries {
		t.Entries[i] = handover.Entry{Epoch: 7, Weight: uint32(95 + i%10)}
		if isOwned {
			t.Entries[i].Owner = t.Members[i%n].ID
		}
	}
	return t
}

// used returns the processor time of this process.
func used(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// measure runs a benchmark. Its metric cpu-ns/op counts on a busy machine, too.
func measure(b *testing.B, f func()) {
	before := used(b)
	for b.Loop() {
		f()
	}
	b.ReportMetric(float64(used(b)-before)/float64(b.N), "cpu-ns/op")
}

// BenchmarkPlan is the cost of one look at a table: of one at which nothing moves, and of one at
// which all slots move.
func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{8, 64, 256, 300, 1000} {
		b.Run(fmt.Sprintf("%d members, settled", n), func(b *testing.B) {
			t, now := tableOf(n, true), time.Unix(1e9, 0)
			s, _ := State{}.Next(t, now)
			measure(b, func() {
				now = now.Add(time.Second)
				s, _ = s.Next(t, now)
			})
		})
		b.Run(fmt.Sprintf("%d members, all slots dead", n), func(b *testing.B) {
			t, now := tableOf(n, false), time.Unix(1e9, 0)
			measure(b, func() {
				_, plan := State{}.Next(t, now)
				if len(plan.Moves) != slot.Count {
					b.Fatal(len(plan.Moves))
				}
			})
		})
	}
}
