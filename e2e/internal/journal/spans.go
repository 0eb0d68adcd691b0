package journal

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// HandOver is a change of a slot's owner. Kind is that of the fault of the owner before, "planned"
// if it has drained, "restart" if it has lost its membership by itself. If it has drained for an
// heir that suffers a fault, Kind is "heir" and that of the fault.
type HandOver struct {
	Slot     int
	Kind     string
	From, To string        // members
	Process  string        // of the owner before
	At       time.Duration // when its calls ended, or the fault began if that was later
	Took     time.Duration // until the slot was served again
}

// checkSpans asks that a slot is served by one member at a time, with epochs that rise (S1), and
// that the time between two of them is explained and bounded (S2, S3, S5).
func (c *checker) checkSpans() {
	for n := range c.spans {
		if len(c.spans[n]) == 0 {
			c.problemf("S5: slot %d is never served", n)
			continue
		}
		for i, s := range c.spans[n][1:] {
			c.checkPair(c.spans[n][i], s)
		}
		last := c.spans[n][len(c.spans[n])-1]
		if last.end() < c.End || last.drain != 0 && last.drain < c.End {
			c.problemf("S5: slot %d is served by nobody since %v", n, last.end())
		}
	}
}

// checkPair checks a span and the one after it.
func (c *checker) checkPair(before, s *span) {
	if s.begin < before.end() {
		c.problemf("S1: %s serves slot %d from %v, and %s until %v", s.term.member, s.slot, s.begin,
			before.term.member, before.end())
	}
	if s.epoch < before.epoch || s.epoch == before.epoch && s.term != before.term {
		c.problemf("S1: %s serves slot %d with epoch %d, after %s with epoch %d", s.term.member, s.slot,
			s.epoch, before.term.member, before.epoch)
	}
	kind, at := c.causeOf(before)
	if f := c.faultOfHeir(before, s); kind == planned && f != nil {
		kind, at = "heir "+f.Kind, max(f.From, at)
	}
	o := HandOver{Slot: s.slot, Kind: kind, From: before.term.member, To: s.term.member,
		Process: before.term.process.Name, At: at, Took: s.begin - at}
	c.HandOvers = append(c.HandOvers, o)
	bound := c.Lease + 2*time.Second
	if kind == planned {
		bound = c.LongestCall + time.Second
	}
	if o.Took > bound {
		c.Slow = append(c.Slow, fmt.Sprintf("S5: slot %d of %s is served by %s after %v (%s), want at most %v",
			o.Slot, o.From, o.To, o.Took, kind, bound))
	}
}

// faultOfHeir returns the fault that an heir suffers between two spans: it has prepared for the
// slot since the first one began, and does not serve the second one.
func (c *checker) faultOfHeir(before, s *span) *Fault {
	for _, w := range c.warms[s.slot] {
		if w.process == s.term.process || w.process == before.term.process || w.at < before.begin || w.at > s.begin {
			continue
		}
		for i, f := range w.process.Faults {
			if f.From <= s.begin && before.drain <= cmp.Or(f.To, never) {
				return &w.process.Faults[i]
			}
		}
	}
	return nil
}

const planned = "planned"

// causeOf returns why a span has ended, and since when the slot has no calls.
func (c *checker) causeOf(s *span) (kind string, at time.Duration) {
	if s.drain != 0 && s.drained != 0 && s.drained <= s.term.end {
		return planned, s.drain
	}
	for _, f := range slices.Backward(s.term.process.Faults) {
		if f.From <= s.term.end && s.term.end-c.Lease <= cmp.Or(f.To, never) {
			return f.Kind, max(f.From, s.begin, s.term.lastRenewal(f))
		}
	}
	if !slices.Contains(c.Lost, s.term.member) {
		c.Lost = append(c.Lost, s.term.member)
	}
	return "restart", s.term.end
}

// lastRenewal returns when the term was renewed during a fault, by a write without an answer:
// others wait from there on. It is 0 without one. A second such write conflicts with the first.
func (t *term) lastRenewal(f Fault) time.Duration {
	for _, e := range t.process.Entries {
		if f.IsHeard && e.Kind == Renew && e.Member == t.member && e.At >= f.From {
			return e.At
		}
	}
	return 0
}

// Moves returns how often each slot has changed its process in a time.
func (h *History) Moves(r Result, from, to time.Duration) map[int]int {
	moves := map[int]int{}
	for _, o := range r.HandOvers {
		if o.From != o.To && from <= o.At && o.At <= to {
			moves[o.Slot]++
		}
	}
	return moves
}
