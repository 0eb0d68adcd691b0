package balance

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidings-go/tidings/shard/internal/handover"
)

// drawTable draws a table of up to eight members and forty entries.
func drawTable(t *rapid.T) Table {
	table := Table{}
	states := []handover.State{handover.Takes, handover.Takes, handover.Takes, handover.Starting, handover.Declines, handover.Gives, handover.Leaving}
	for i := range rapid.IntRange(0, 8).Draw(t, "members") {
		m := Member{ID: handover.ID(fmt.Sprint("m", i)), Generation: rapid.SampledFrom([]string{"1", "1", "2"}).Draw(t, "generation")}
		m.Standing = rapid.SampledFrom([]handover.Standing{handover.Live, handover.Live, handover.Live, handover.Held, handover.Ended}).Draw(t, "standing")
		m.State, m.Joined = rapid.SampledFrom(states).Draw(t, "state"), rapid.IntRange(0, 9).Draw(t, "joined") > 0
		m.Refused, m.Lacks = rapid.IntRange(0, 9).Draw(t, "refused") == 0, max(0, rapid.IntRange(-5, 2).Draw(t, "lacks"))
		table.Members = append(table.Members, m)
	}
	id := rapid.SampledFrom([]handover.ID{"", "gone", "m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"})
	for range rapid.IntRange(0, 40).Draw(t, "entries") {
		e := handover.Entry{Owner: id.Draw(t, "owner"), Epoch: rapid.Uint64Range(0, 5).Draw(t, "epoch"),
			Weight: rapid.SampledFrom([]uint32{0, 1, 10, 10, 11, 12, 100}).Draw(t, "weight")}
		if rapid.IntRange(0, 9).Draw(t, "moves") == 0 {
			e.Next = id.Draw(t, "next")
		}
		table.Entries = append(table.Entries, e)
	}
	return table
}

// drawState draws a state that has seen a table before.
func drawState(t *rapid.T, table Table, now time.Time) State {
	s := State{}
	if rapid.Bool().Draw(t, "seen") {
		s, _ = s.Next(table, now.Add(-time.Duration(rapid.IntRange(1, 3600).Draw(t, "ago"))*time.Second))
	}
	return s
}

// apply carries a plan out as far as the map shows it at once.
func apply(table Table, moves []handover.Move) Table {
	b := newBoard(table)
	table.Entries = slices.Clone(table.Entries)
	for _, m := range moves {
		if e := &table.Entries[m.Entry]; b.owners[m.Entry] == nil {
			*e = handover.Entry{Owner: m.To, Epoch: e.Epoch + 1, Weight: e.Weight}
		} else {
			e.Next = m.To
		}
	}
	return table
}

func TestS1_LawsOfAPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, now := drawTable(t), time.Unix(1e9, 0)
		s := drawState(t, table, now)
		before := s
		remembered := fmt.Sprint(s.members)
		next, plan := s.Next(table, now)
		if !reflect.DeepEqual(before, s) || remembered != fmt.Sprint(s.members) {
			t.Error("a look changes the state before")
		}
		shuffled := table
		shuffled.Members = rapid.Permutation(table.Members).Draw(t, "order")
		if _, other := s.Next(shuffled, now); !reflect.DeepEqual(plan, other) {
			t.Errorf("another order of the members has another plan: %v and %v", plan, other)
		}
		b := newBoard(table)
		moved := map[int]bool{}
		for _, m := range plan.Moves {
			to, owner := b.byID[m.To], b.owners[m.Entry]
			if moved[m.Entry] {
				t.Errorf("the entry %d moves twice", m.Entry)
			}
			moved[m.Entry] = true
			switch {
			case to == nil || !to.isLive() || !to.Joined:
				t.Errorf("%v: %s is not live", m, m.To)
			case to.State == handover.Leaving || to.State == handover.Starting:
				t.Errorf("%v: %s is %s", m, m.To, to.State)
			case owner != nil && !to.takes:
				t.Errorf("%v: %s does not take", m, m.To)
			case owner != nil && (table.Entries[m.Entry].Next != "" || owner == to):
				t.Errorf("%v: it moves already", m)
			}
		}
		takes := slices.ContainsFunc(b.members, func(m *member) bool { return m.takes })
		for i, e := range table.Entries {
			owner := b.owners[i]
			gone := b.holders[i] == nil && next.cold.IsZero() || owner != nil && !owner.stays() && e.Next == ""
			if gone && takes && !moved[i] {
				t.Errorf("the entry %d of %s waits", i, e.Owner)
			}
		}
		// What has begun is not begun again, and what is written is not planned.
		table = apply(table, plan.Moves)
		if _, again := next.Next(table, now); next.cold.IsZero() && len(again.Moves) > 0 {
			t.Errorf("%v follows %v at once", again.Moves, plan.Moves)
		}
	})
}

// complete carries out all moves of a plan, and those that are under way.
func complete(table Table, moves []handover.Move) Table {
	table = apply(table, moves)
	for i := range table.Entries {
		if e := &table.Entries[i]; e.Next != "" {
			*e = handover.Entry{Owner: e.Next, Epoch: e.Epoch + 1, Weight: e.Weight}
		}
	}
	return table
}

// TestS1_APlanHolds: while the table stays as it is, a look before Plan.Until has the same plan.
// Members join and end, and weights change; what a plan moves has mostly moved before the next
// look.
func TestS1_APlanHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, now, s, plan, joined := Table{}, time.Unix(1e9, 0), State{}, Plan{}, 0
		join := func() {
			table.Members = append(slices.Clone(table.Members), Member{
				ID: handover.ID(fmt.Sprint("m", joined)), Peer: handover.Peer{Standing: handover.Live, State: handover.Takes, Joined: true},
				Generation: rapid.SampledFrom([]string{"1", "1", "1", "2"}).Draw(t, "generation"),
			})
			joined++
		}
		for range rapid.IntRange(1, 3).Draw(t, "members") {
			join()
		}
		table.Entries = make([]handover.Entry, rapid.IntRange(4, 12).Draw(t, "entries"))
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			s, plan = s.Next(table, now)
			table.Entries = slices.Clone(table.Entries)
			switch rapid.IntRange(0, 9).Draw(t, "change") {
			case 0:
				join()
			case 1:
				n := rapid.IntRange(0, len(table.Members)-1).Draw(t, "ends")
				if table.Members = slices.Delete(slices.Clone(table.Members), n, n+1); len(table.Members) == 0 {
					join()
				}
			case 2, 3:
				n := rapid.IntRange(0, len(table.Entries)-1).Draw(t, "weighed")
				table.Entries[n].Weight = uint32(rapid.IntRange(1, 30).Draw(t, "weight"))
			case 4, 5:
				table = apply(table, plan.Moves)
			default:
				table = complete(table, plan.Moves)
			}
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, settle, time.Minute, pause, patience}).Draw(t, "after"))
			s, plan = s.Next(table, now)
		}
		quiet := plan.Until.Sub(now)
		if quiet <= 0 {
			return
		}
		for _, after := range []time.Duration{quiet / 2, quiet - 1} {
			if _, later := s.Next(table, now.Add(after)); !slices.Equal(later.Moves, plan.Moves) || later.Mixed != plan.Mixed {
				t.Errorf("a plan that holds for %v is another one after %v: %v, and %v before", quiet, after, later, plan)
			}
		}
	})
}

// TestS1_LawsOfARebalancing: members that stay, of one generation. All moves together bring a
// member to the share and one entry at most, and repeated rebalancings come to an end.
func TestS1_LawsOfARebalancing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, now := Table{}, time.Unix(1e9, 0)
		n := rapid.IntRange(1, 8).Draw(t, "members")
		for i := range n {
			table.Members = append(table.Members, Member{ID: handover.ID(fmt.Sprint("m", i)),
				Peer: handover.Peer{Standing: handover.Live, State: handover.Takes, Joined: true}})
		}
		for range rapid.IntRange(0, 60).Draw(t, "entries") {
			table.Entries = append(table.Entries, handover.Entry{Owner: table.Members[rapid.IntRange(0, n-1).Draw(t, "owner")].ID,
				Weight: uint32(rapid.IntRange(1, 50).Draw(t, "weight"))})
		}
		s, rebalancings := State{}, 0
		for range 100 {
			var plan Plan
			if s, plan = s.Next(table, now); len(plan.Moves) > 0 {
				rebalancings++
			}
			b, gets := newBoard(table), map[handover.ID]float64{}
			for _, m := range plan.Moves {
				gets[m.To] = max(gets[m.To], b.weights[m.Entry])
				from, to, w := b.holders[m.Entry], b.byID[m.To], b.weights[m.Entry]
				if to.weight+w >= from.weight-least*plan.Share {
					t.Errorf("%v brings %s from %.0f to %.0f, and %s has %.0f", m, to.ID, to.weight,
						to.weight+w, from.ID, from.weight)
				}
				b.begin(m.Entry, to)
			}
			table = apply(table, plan.Moves)
			after := newBoard(table)
			for id, heaviest := range gets {
				if m := after.byID[id]; m.weight > plan.Share+heaviest {
					t.Errorf("%s has %.0f of a share of %.0f, and its heaviest new entry has %.0f", id, m.weight, plan.Share, heaviest)
				}
			}
			now = now.Add(time.Second)
			s, _ = s.Next(table, now) // the moves go on
			for i := range table.Entries {
				if e := &table.Entries[i]; e.Next != "" {
					*e = handover.Entry{Owner: e.Next, Epoch: e.Epoch + 1, Weight: e.Weight}
				}
			}
			now = now.Add(3 * time.Minute)
		}
		if _, plan := s.Next(table, now.Add(time.Hour)); len(plan.Moves) > 0 || rebalancings > n {
			t.Errorf("after %d rebalancings of %d members: %v", rebalancings, n, plan.Moves)
		}
	})
}

// TestS1_Controllers: members lead what they can, in equal numbers.
func TestS1_Controllers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table, now := Table{First: 256}, time.Unix(1e9, 0)
		entries := rapid.IntRange(1, 64).Draw(t, "entries")
		table.Entries = make([]handover.Entry, entries)
		for i := range rapid.IntRange(1, 6).Draw(t, "members") {
			m := Member{ID: handover.ID(fmt.Sprint("m", i)), Peer: handover.Peer{Standing: handover.Live, State: handover.Takes, Joined: true}}
			for n := range entries {
				if rapid.IntRange(0, 3).Draw(t, "cannot") == 0 {
					m.Cannot.Add(256 + n)
				}
			}
			table.Members = append(table.Members, m)
		}
		s := State{}
		for range 60 {
			var plan Plan
			s, plan = s.Next(table, now)
			for _, m := range plan.Moves {
				b := newBoard(table)
				if !b.byID[m.To].can(m.Entry) {
					t.Errorf("%s cannot own %d", m.To, m.Entry)
				}
				table.Entries[m.Entry-256].Owner = m.To
			}
			now = now.Add(time.Minute)
		}
		for i, e := range table.Entries {
			can := slices.ContainsFunc(table.Members, func(m Member) bool { return !m.Cannot.Has(256 + i) })
			if can != (e.Owner != "") {
				t.Errorf("%d is owned by %q, and can be owned: %v", 256+i, e.Owner, can)
			}
		}
	})
}
