package journal

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/lease"
)

// History has the events of a test, all of which has ended.
type History struct {
	Lease     time.Duration // the duration of the members' Leases
	Workers   int           // of each replica
	Processes []*Process
	Changes   []Change
	Applied   []Applied
	UIDs      map[string]string // of the objects by key, if slots are by UID
	End       time.Duration     // until then, all slots are to be served
}

// Change is a change of an object by others than the replicas.
type Change struct {
	Key            string
	Version        uint64
	Sent, Answered time.Duration
}

// Applied is a version of an object that a replica has written: Process and Number are in it.
type Applied struct {
	Process string
	Number  uint64
	Key     string
	Version uint64
}

// Result is the result of a check.
type Result struct {
	// Problems are violations of the rules. Slow are times over their bounds, which count only on a
	// machine that has the time for all processes.
	Problems, Slow []string
	// Calls and Writes count those of all processes. Terms are the memberships, and Lost those that
	// neither a fault nor the replica's own doing explains.
	Calls, Writes, Terms int
	Lost                 []string
	// InFlight are the writes that were on their way when their terms ended. Late are those of them
	// that were applied after the next owner's first call.
	InFlight, Late int
	// Stale counts the calls after a crash that began before the last write of the owner before.
	Stale int
	// Delays are the times from the changes to their calls.
	Delays []time.Duration
	// HandOvers are the changes of owners, in order. LongestCall is that of the calls that
	// ended in their terms.
	HandOvers   []HandOver
	LongestCall time.Duration
}

const never = time.Duration(math.MaxInt64)

// term is the time of a membership.
type term struct {
	process    *Process
	member     string
	fence, end time.Duration
}

// call is a call of a key.
type call struct {
	number     uint64
	term       *term
	key        string
	version    uint64
	epoch      uint64
	begin, end time.Duration
}

// write is a write of a call.
type write struct {
	*call
	number                uint64
	given, sent, answered time.Duration // 0, and never, are not
	version               uint64
}

// span is a time in which a member serves a slot.
type span struct {
	slot    int
	epoch   uint64
	term    *term
	begin   time.Duration
	drain   time.Duration // the beginning of the drain that ended it; 0 for none
	drained time.Duration
}

// end returns the time from which no member may call for the slot.
func (s *span) end() time.Duration {
	if s.drained != 0 {
		return min(s.drained, s.term.end)
	}
	return s.term.end
}

// checker holds a history in the order of its keys and slots.
type checker struct {
	*History
	Result
	terms  map[string]*term
	calls  map[string][]*call // by key, in the order of their beginnings
	writes map[string]map[uint64]*write
	spans  [slot.Count][]*span // in the order of their beginnings
	warms  [slot.Count][]warm
}

// warm is the beginning of a preparation for a slot, which an heir makes.
type warm struct {
	process *Process
	at      time.Duration
}

// Check holds a history against the rules.
func (h *History) Check() Result {
	c := &checker{
		History: h, terms: map[string]*term{}, calls: map[string][]*call{},
		writes: map[string]map[uint64]*write{},
	}
	for _, p := range h.Processes {
		c.readTerms(p)
		c.readCalls(p)
	}
	for _, calls := range c.calls {
		slices.SortStableFunc(calls, func(a, b *call) int { return cmp.Compare(a.begin, b.begin) })
	}
	for i := range c.spans {
		slices.SortStableFunc(c.spans[i], func(a, b *span) int { return cmp.Compare(a.begin, b.begin) })
	}
	c.checkCalls()
	c.checkWrites()
	c.checkApplied()
	c.checkFresh()
	c.checkSpans()
	c.checkDelays()
	slices.SortFunc(c.HandOvers, func(a, b HandOver) int { return cmp.Compare(a.At, b.At) })
	return c.Result
}

func (c *checker) problemf(format string, arguments ...any) {
	c.Problems = append(c.Problems, fmt.Sprintf(format, arguments...))
}

// readTerms finds the terms of a process.
func (c *checker) readTerms(p *Process) {
	fence := lease.Times{Duration: c.Lease}.Fence()
	sent := map[uint64]time.Duration{}
	for _, e := range p.Entries {
		t := c.terms[e.Member]
		switch e.Kind {
		case Renew:
			sent[e.Number] = e.At
		case Renewed:
			if t == nil {
				t = &term{process: p, member: e.Member, fence: never, end: never}
				t.fence = sent[e.Number] + fence
				c.terms[e.Member] = t
				c.Terms++
			} else if e.At < t.fence {
				t.fence = max(t.fence, sent[e.Number]+fence)
			}
		case Closed:
			t.end = e.At
		}
	}
	for _, t := range c.terms {
		if t.process == p {
			t.end = min(t.end, t.fence)
		}
	}
}

// readCalls finds the calls, the writes and the served slots of a process.
func (c *checker) readCalls(p *Process) {
	c.writes[p.Name] = map[uint64]*write{}
	calls, serving := map[uint64]*call{}, map[int]*span{}
	for _, e := range p.Entries {
		switch e.Kind {
		case Begin:
			clear(serving)
		case Warm:
			for n := range e.Epochs {
				c.warms[n] = append(c.warms[n], warm{p, e.At})
			}
		case Serve:
			c.serve(e, serving)
		case Drain, Drained:
			drain(e, serving)
		case Gone:
			c.problemf("S6: %s is told that %s is gone", e.Member, e.Key)
		case Call:
			calls[e.Number] = c.call(e, serving)
		case Return:
			k := calls[e.Number]
			if k.end = e.At; k.end <= k.term.end {
				c.LongestCall = max(c.LongestCall, k.end-k.begin)
			}
		case Write:
			of := calls[e.Call]
			c.writes[p.Name][e.Number] = &write{call: of, number: e.Number, given: e.At, answered: never}
		case Sent:
			c.writes[p.Name][e.Number].sent = e.At
			c.Writes++
		case Answer:
			w := c.writes[p.Name][e.Number]
			w.answered, w.version = e.At, e.Version
		}
	}
}

func (c *checker) serve(e Entry, serving map[int]*span) {
	for n, epoch := range e.Epochs {
		if s := serving[n]; s != nil && s.epoch == epoch {
			s.drain = 0 // it goes on
			continue
		}
		serving[n] = &span{slot: n, epoch: epoch, term: c.terms[e.Member], begin: e.At}
		c.spans[n] = append(c.spans[n], serving[n])
	}
}

// drain records a drain, or its end.
func drain(e Entry, serving map[int]*span) {
	for n := range e.Epochs {
		s := serving[n]
		if s == nil {
			continue
		}
		if e.Kind == Drain {
			s.drain = e.At
			continue
		}
		s.drained = e.At
		delete(serving, n)
	}
}

func (c *checker) call(e Entry, serving map[int]*span) *call {
	k := &call{number: e.Number, term: c.terms[e.Member], key: e.Key, version: e.Version,
		begin: e.At, end: never}
	c.Calls++
	c.calls[e.Key] = append(c.calls[e.Key], k)
	if s := serving[c.slotOf(e.Key)]; s != nil {
		k.epoch = s.epoch
	} else {
		c.problemf("S1: %s calls %s at %v without its slot", e.Member, e.Key, e.At)
	}
	return k
}

// slotOf returns the slot of a key.
func (h *History) slotOf(key string) int {
	if uid, ok := h.UIDs[key]; ok {
		return slot.UID.Of(uid, "")
	}
	namespace, _, _ := strings.Cut(key, "/")
	return slot.Namespace.Of("", namespace)
}
