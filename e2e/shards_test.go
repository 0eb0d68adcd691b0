package e2e

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/e2e/internal/journal"
)

var (
	shardsKills = flag.Int("shards.kills", 1, "how many members TestS1_Members kills on each server, "+
		"stops, and parts from it")
	shardsLease = flag.Duration("shards.lease", 5*time.Second, "the duration of the members' Leases")
	shardsStop  = flag.Duration("shards.stop", 8*time.Second, "for how long members are stopped and parted")
)

// TestS1_Members has replicas of a sharded controller, as processes whose clocks differ by half a
// minute, beside 300 writes a second: they join, leave, are killed, stopped and parted from the
// server, and replaced by another version. Their journals are held against the rules of the package
// journal, S1 to S6: with slots by namespace, and by UID on a server that selects them. Kubernetes
// 1.35 knows no selection of slots: there the members of both leave out the others' objects.
func TestS1_Members(t *testing.T) {
	for by, gate := range map[tidings.SlotKey]string{tidings.ByNamespace: "false", tidings.ByUID: "true"} {
		t.Run("by "+string(by), func(t *testing.T) {
			gates := []string{"--feature-gates=ShardedListAndWatch=" + gate}
			if *serverVersion == "1.35" {
				gates = nil
			}
			f := startFleet(t, by, *shardsLease, gates...)
			for range 5 {
				f.awaitMember(f.join("v1"))
			}
			f.await(1, f.running...)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			began := time.Now()
			f.change(ctx)
			f.leave(f.byLoad()[0]) // the others get the same each
			f.report()
			surge := f.roll("v2", true)
			plain := f.roll("v3", false)
			f.join("v3")
			f.await(1, f.running...)
			for round := range *shardsKills {
				f.suffer(round)
			}
			f.figures(5 * time.Second)
			stop()
			f.rate = float64(f.changes()) / time.Since(began).Seconds()
			f.settle()
			f.await(0, f.running...)
			f.history.End = journal.Now()
			f.report()
			for len(f.running) > 0 {
				f.leave(f.running[0])
			}
			r := f.check()
			f.checkMoves(r, surge, 1)
			f.checkMoves(r, plain, 2)
		})
	}
}

// byLoad returns the members that run, those with the most slots first.
func (f *fleet) byLoad() []*member {
	f.Helper()
	for _, m := range f.running {
		f.must(m.Read())
	}
	return slices.SortedFunc(slices.Values(f.running), func(a, b *member) int {
		return cmp.Compare(b.Serving().Len(), a.Serving().Len())
	})
}

// suffer kills one of the three members that serve the most slots, stops another one, and breaks
// the network of the third for a while: it cannot send, or gets no answers. The connections of the
// others are cut once, and they get all slots. Then another one is started: it gets slots in later
// rounds, as a group does not rebalance for five minutes after the crash of a member that has just
// got some.
func (f *fleet) suffer(round int) {
	f.Helper()
	byLoad := f.byLoad()
	victims, rest := slices.Concat(byLoad[round%3:3], byLoad[:round%3]), byLoad[3:]
	killed, stopped, parted := victims[0], victims[1], victims[2]
	began := time.Now()
	resume := stopped.fault("stop", stopped.halt, stopped.resume)
	kind, part, whole := "part", parted.proxy.Part, parted.proxy.Heal
	if round%2 == 1 {
		kind, part, whole = swallow, parted.proxy.Swallow, parted.proxy.Cut
	}
	heal := parted.fault(kind, part, whole)
	killed.fault("kill", killed.kill, nil)
	f.forget(killed)
	for _, m := range rest {
		m.proxy.Cut()
	}
	f.await(0, rest...)
	pause(f.Context(), *shardsStop-time.Since(began))
	resume()
	heal()
	f.awaitMember(f.join("v3"))
	f.await(0, f.running...)
}

// rolling is the time of a rolling update.
type rolling struct {
	generation string
	from, to   time.Duration
}

// roll replaces all members by those of another generation, one after the other. With a surge, each
// is started before one of the others leaves.
func (f *fleet) roll(generation string, surge bool) (r rolling) {
	f.Helper()
	r = rolling{generation: generation, from: journal.Now()}
	for _, m := range slices.Clone(f.running) {
		if surge {
			f.awaitMember(f.join(generation))
		}
		f.leave(m)
		r.to = journal.Now()
		if !surge {
			f.awaitMember(f.join(generation))
		}
	}
	f.await(0, f.running...)
	return r
}

// figures logs the requests of the members in a period without faults (S7).
func (f *fleet) figures(d time.Duration) {
	f.Helper()
	bytes := func() (sum int64) {
		for _, m := range f.running {
			sum += m.proxy.Bytes()
		}
		return sum
	}
	from, before := journal.Now(), bytes()
	pause(f.Context(), d)
	to, after := journal.Now(), bytes()
	counts := map[string]int{}
	for _, m := range f.running {
		f.must(m.Read())
		for _, e := range m.Entries {
			if e.Kind == journal.Request && from <= e.At && e.At < to {
				counts[e.Text]++
			}
		}
	}
	seconds := (to - from).Seconds()
	var rates []string
	for text, n := range counts {
		rates = append(rates, fmt.Sprintf("%s %.1f", text, float64(n)/seconds))
	}
	slices.Sort(rates)
	f.Logf("%d members without faults, each second: %s; %.0f kB", len(f.running), strings.Join(rates, ", "),
		float64(after-before)/seconds/1000)
}

// check checks the journals against the rules, and logs the result.
func (f *fleet) check() journal.Result {
	f.Helper()
	f.stop()
	f.beside.Wait()
	for _, m := range f.members {
		f.must(m.Read())
	}
	r := f.history.Check()
	problems := r.Problems
	f.Logf("%.0f changes a second; memberships lost without a fault: %q", f.rate, r.Lost)
	if f.hasTime() {
		problems = append(problems, r.Slow...)
		for _, member := range r.Lost {
			problems = append(problems, member+" has lost its membership without a fault")
		}
	}
	for i, problem := range problems {
		if i == 30 {
			f.Errorf("and %d more", len(problems)-i)
			break
		}
		f.Error(problem)
	}
	f.Logf("%d processes, %d terms; %d changes, %d calls, %d writes; the longest call took %v",
		len(f.members), r.Terms, len(f.history.Changes), r.Calls, r.Writes, round(r.LongestCall))
	f.Logf("%d writes were on their way at the end of terms, %d of them applied after the next owner's "+
		"first call; %d calls after crashes began with an older state", r.InFlight, r.Late, r.Stale)
	f.Logf("changes had a call after %s", describe(r.Delays))
	f.describeHandOvers(r)
	return r
}

// hasTime reports whether the machine had the time for all processes: half of the changes that were
// due were made. Without it, Leases run out that are renewed, and no time is bounded. The rules are
// checked all the same.
func (f *fleet) hasTime() bool { return f.rate > rate/2 }

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// describe returns the number, the median and the maximum of times.
func describe(all []time.Duration) string {
	slices.Sort(all)
	if len(all) == 0 {
		return "none"
	}
	return fmt.Sprintf("%v in the median, %v in 99 of 100, %v at most (%d)", round(all[len(all)/2]),
		round(all[len(all)*99/100]), round(all[len(all)-1]), len(all))
}

// describeHandOvers logs the times of the hand-overs by their kinds, and those of each fault.
func (f *fleet) describeHandOvers(r journal.Result) {
	f.Helper()
	kinds := map[string][]time.Duration{}
	for _, o := range r.HandOvers {
		kinds[o.Kind] = append(kinds[o.Kind], o.Took)
	}
	for kind, all := range kinds {
		f.Logf("slots without calls, %s: %s", kind, describe(all))
	}
	for _, m := range f.members {
		for _, fault := range m.Faults {
			var slots []time.Duration
			for _, o := range r.HandOvers {
				if o.Process == m.Process.Name && o.Kind == fault.Kind && o.At == fault.From {
					slots = append(slots, o.Took)
				}
			}
			f.Logf("%s of %s: its slots were served again after %s", fault.Kind, m.Process.Name, describe(slots))
		}
	}
}

// checkMoves asks that no slot has moved more often in a rolling update than it may (S4), if no
// membership was lost.
func (f *fleet) checkMoves(r journal.Result, u rolling, most int) {
	f.Helper()
	counts := map[int]int{}
	for slot, n := range f.history.Moves(r, u.from, u.to) {
		counts[n]++
		if n > most && len(r.Lost) == 0 {
			f.Errorf("S4: slot %d has moved %d times to %s, want at most %d", slot, n, u.generation, most)
		}
	}
	f.Logf("the update to %s took %v; slots by their moves: %v", u.generation, round(u.to-u.from), counts)
}
