package journal

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// checkCalls asks that the calls of a key do not overlap while their terms are open, and that
// epochs rise (S1).
func (c *checker) checkCalls() {
	for key, calls := range c.calls {
		var last *call
		for _, k := range calls {
			end := min(k.end, k.term.end)
			if end <= k.begin {
				continue // its term was closed: it can write nothing
			}
			if last != nil && k.begin < min(last.end, last.term.end) {
				c.problemf("S1: %s calls %s at %v, while %s calls it from %v to %v", k.term.member, key,
					k.begin, last.term.member, last.begin, min(last.end, last.term.end))
			}
			if last != nil && (k.epoch < last.epoch || k.epoch == last.epoch && k.term != last.term) {
				c.problemf("S1: %s calls %s with epoch %d, after %s with epoch %d", k.term.member, key,
					k.epoch, last.term.member, last.epoch)
			}
			last = k
		}
	}
}

// checkWrites checks that nothing is sent in a closed term (S3), and counts the writes that were on
// their way when terms ended.
func (c *checker) checkWrites() {
	for _, writes := range c.writes {
		for _, w := range writes {
			if w.sent == 0 {
				continue
			}
			if w.given >= w.term.end {
				c.problemf("S3: %s gives a write of %s to its client at %v, %v after the end of its term, "+
					"and it is sent", w.term.member, w.key, w.given, w.given-w.term.end)
			} else if w.answered > w.term.end {
				c.InFlight++
			}
		}
	}
}

// checkApplied checks that the server has the writes that replicas have sent, and no others. It
// counts the writes that were applied after the first call of the next owner.
func (c *checker) checkApplied() {
	known := c.knownVersions()
	seen := map[*write]bool{}
	for _, a := range c.Applied {
		w := c.writes[a.Process][a.Number]
		if w == nil || w.sent == 0 || w.key != a.Key || w.version != 0 && w.version != a.Version {
			c.problemf("S3: version %d of %s is write %d of %s, which has not sent it so", a.Version, a.Key,
				a.Number, a.Process)
			continue
		}
		seen[w] = true
		next := c.nextOwner(w)
		if next == nil || w.answered <= next.begin || a.Version <= known(next.begin) {
			continue
		}
		c.Late++
		if s := c.spanOf(w.call); s != nil && s.drained != 0 && s.drained < next.begin {
			c.problemf("S2: %s has drained %s at %v, and its write of version %d is applied after %v",
				w.term.member, w.key, s.drained, a.Version, next.begin)
		}
	}
	for process, writes := range c.writes {
		for _, w := range writes {
			if w.version != 0 && !seen[w] {
				c.problemf("the server has not kept write %d of %s, version %d of %s", w.number, process,
					w.version, w.key)
			}
		}
	}
}

// knownVersions returns a function of the newest version that was written before a time for sure:
// the changes of others had it in their answers.
func (c *checker) knownVersions() func(at time.Duration) uint64 {
	changes := slices.Clone(c.Changes)
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Answered, b.Answered) })
	newest := make([]uint64, len(changes)+1)
	for i, change := range changes {
		newest[i+1] = max(newest[i], change.Version)
	}
	return func(at time.Duration) uint64 {
		n, _ := slices.BinarySearchFunc(changes, at, func(c Change, at time.Duration) int {
			return cmp.Compare(c.Answered, at)
		})
		return newest[n]
	}
}

// nextOwner returns the first call of another member after that of a write; nil without one.
func (c *checker) nextOwner(w *write) *call {
	for _, k := range c.calls[w.key] {
		if k.begin > w.begin && k.term != w.term {
			return k
		}
	}
	return nil
}

// spanOf returns the span in which a call began.
func (c *checker) spanOf(k *call) (found *span) {
	for _, s := range c.spans[c.slotOf(k.key)] {
		if s.term == k.term && s.begin <= k.begin {
			found = s
		}
	}
	return found
}

// checkFresh checks that each call begins with the writes of the calls before it (S2). After a
// crash the wait for these is bounded, so that such calls are counted.
func (c *checker) checkFresh() {
	byKey := map[string][]*write{}
	for _, writes := range c.writes {
		for _, w := range writes {
			if w.version != 0 {
				byKey[w.key] = append(byKey[w.key], w)
			}
		}
	}
	for key, writes := range byKey {
		for _, k := range c.calls[key] {
			for _, w := range writes {
				if w.answered > k.begin || w.version <= k.version {
					continue
				}
				if !c.isDrainedBetween(w.call, k) {
					c.Stale++
					continue
				}
				c.problemf("S2: %s calls %s at %v with version %d, after %s has written version %d", k.term.member,
					key, k.begin, k.version, w.term.member, w.version)
			}
		}
	}
}

// isDrainedBetween reports whether the slot of two calls has gone from the first to the second by
// drains alone.
func (c *checker) isDrainedBetween(first, second *call) bool {
	between := false
	for _, s := range c.spans[c.slotOf(first.key)] {
		between = between || s.term == first.term
		switch {
		case s.term == second.term:
			return true
		case between && s.drained == 0:
			return false
		}
	}
	return true
}

// checkDelays asks that each change has a call in time (S5). The time does not count in which all
// workers of the slot's owner are in calls: the server can apply no more writes.
func (c *checker) checkDelays() {
	bound := c.Lease + 2*time.Second + c.LongestCall
	for _, change := range c.Changes {
		i := slices.IndexFunc(c.calls[change.Key], func(k *call) bool { return k.version >= change.Version })
		if i < 0 {
			c.problemf("S5: version %d of %s has no call", change.Version, change.Key)
			continue
		}
		began := c.calls[change.Key][i].begin
		delay := max(began-change.Answered, 0)
		c.Delays = append(c.Delays, delay)
		if delay <= bound {
			continue
		}
		if delay -= c.busy(c.slotOf(change.Key), change.Answered, began); delay > bound {
			c.Slow = append(c.Slow, fmt.Sprintf("S5: version %d of %s, written at %v, has no call for %v, "+
				"want at most %v", change.Version, change.Key, change.Answered, delay, bound))
		}
	}
	slices.Sort(c.Delays)
}

// busy returns the part of a time in which the owner of a slot had calls in all of its workers.
func (c *checker) busy(n int, from, to time.Duration) (sum time.Duration) {
	for _, s := range c.spans[n] {
		begin, end := max(from, s.begin), min(to, s.end())
		since, running := never, 0
		for _, e := range s.term.process.Entries {
			switch e.Kind {
			case Call:
				if running++; running == c.Workers {
					since = e.At
				}
			case Return:
				if running == c.Workers {
					sum += max(min(e.At, end)-max(since, begin), 0)
				}
				running--
			}
		}
		if running >= c.Workers {
			sum += max(end-max(since, begin), 0)
		}
	}
	return sum
}
