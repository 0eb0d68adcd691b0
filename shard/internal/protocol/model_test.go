package protocol

import (
	"fmt"
	"strings"
)

const (
	processes = 3
	lives     = 2 // the number of identities per process
	slots     = 2
	// fenceTicks is the length of a term on its member's clock, and leaseTicks that of a Lease on
	// the clocks of others. A clock may miss one of three ticks.
	fenceTicks, leaseTicks = 2, 3
)

// identities are the identities of the first lives of all processes, and then of their second
// lives.
var identities = [processes * lives]ID{"a0", "b0", "c0", "a1", "b1", "c1"}

// cell is an Entry in a byte, without epoch and versions: owner, next owner and ready.
type cell uint8

func number(id ID) uint8 {
	if id == "" {
		return 0
	}
	return id[0] - 'a' + processes*(id[1]-'0') + 1
}

func identity(n uint8) ID {
	if n == 0 {
		return ""
	}
	return identities[n-1]
}

func cellOf(e Entry) cell {
	c := cell(number(e.Owner) | number(e.Next)<<3)
	if e.Ready {
		c |= 1 << 6
	}
	return c
}

func (c cell) entry() Entry {
	return Entry{Owner: identity(uint8(c & 7)), Next: identity(uint8(c >> 3 & 7)), Ready: c>>6 != 0}
}

// table is the whole map.
type table [slots]cell

func (t table) String() string {
	var b strings.Builder
	for _, c := range t {
		e := c.entry()
		fmt.Fprintf(&b, "[%s", e.Owner)
		if e.Next != "" {
			fmt.Fprintf(&b, "→%s", e.Next)
		}
		if e.Ready {
			b.WriteString(" ready")
		}
		b.WriteString("]")
	}
	return b.String()
}

// The statuses of a process.
const (
	down uint8 = iota
	running
	paused
	gone
)

// The states of a term. An open term whose age is fenceTicks is over, and its member notices that
// when it looks at its clock.
const (
	noTerm uint8 = iota
	open
	closed
)

// The stages of a request.
const (
	idle uint8 = iota
	sent
	accepted
	refused
)

// deleted is the state of a deleted Lease. Others treat it as a Lease that does not change.
const deleted = Ended + 1

// The kinds of requests. Renewals are requests of their own.
const (
	noWrite uint8 = iota
	mapWrite
	endWrite
	renewal
)

// The ages of map versions: the newest, the one before, all others.
const (
	newest uint8 = iota
	previous
	older
	never
)

// sight is the knowledge of a process about a Lease.
type sight struct {
	standing  Standing
	outdated  bool  // the Lease has changed since
	unchanged uint8 // the number of ticks on the own clock without a change
}

// request is a write of the map or of another member's Lease.
type request struct {
	kind, stage uint8
	valid       bool // the server has the version that it names
	table       table
	target      uint8 // the identity that the write is about; for mapWrite, its sender
	age         uint8 // for accepted: the age of the version that was written
	seen        bool  // for accepted: a map at least as new was read since
}

type process struct {
	status, life uint8
	term, age    uint8 // age is the time since the last renewal that succeeded was sent
	ranOut       bool  // the term of the present identity was over at some time
	skipped      uint8 // the number of ticks before the clock may miss one again
	quitting     bool
	lags         bool // it may delay all actions and reads

	renew, renewAge uint8 // the stage of a renewal, and the age of its sending
	renewValid      bool
	leaseStale      bool // a renewal was applied whose answer was lost

	view                table
	viewAge             uint8
	warm, drained, late [slots]bool
	write               request
	sights              [len(identities)]sight
}

// budget bounds the faults, and the moves of the planner.
type budget struct {
	crashes, pauses, lags, losses, rejoins, quits, lates, moves, deletes, slow uint8
}

// state is the whole world. It is comparable, and equal states have equal futures.
type state struct {
	left      budget
	maps      [2]table // the newest map and the one before
	leases    [len(identities)]Standing
	processes [processes]process
	// late is a request whose sender no longer waits for it. The late request of a renewal has a
	// target.
	late   request
	broken bool // an owner changed without its epoch, or an epoch without its owner
}

func start(b budget) state {
	s := state{left: b}
	for p := range s.processes {
		s.processes[p].viewAge = never
	}
	return s
}

// rules switches the protocol's rules off, one at a time, for tests of the exploration.
type rules struct {
	takesWithoutEnding, renewsAfterRunningOut, fenceFromAnswer, endsEarly, endsAnyVersion,
	resumesInDoubt, givesUndrained, plannerGives, keepsIdentity, seesOlderMaps bool
}

func (r rules) leaseTicks() uint8 {
	if r.endsEarly {
		return fenceTicks
	}
	return leaseTicks
}

func (s *state) self(p int) uint8 { return uint8(p) + processes*s.processes[p].life }

// isOpen reports whether a process may call by its own clock.
func (s *state) isOpen(p int) bool {
	q := &s.processes[p]
	return q.term == open && q.age < fenceTicks && (q.status == running || q.status == paused)
}

// standing returns the standing of members in the view of a process.
func (s *state) standing(r rules, p int) func(ID) Standing {
	return func(id ID) Standing {
		n := number(id) - 1
		seen := s.processes[p].sights[n]
		switch expired := seen.unchanged >= r.leaseTicks(); {
		case n == s.self(p):
			return Live
		case seen.standing != Live || !expired:
			return seen.standing
		case r.takesWithoutEnding:
			return Ended
		}
		return Held
	}
}

// scratch is the memory of member, whose results are used one at a time.
var scratch struct {
	Member
	entries [slots]Entry
	locals  [slots]local
}

// member returns the knowledge of a process as a Member of the protocol. Its view has the version
// 2.
func (s *state) member(p int) *Member {
	q := &s.processes[p]
	scratch.Member = Member{Self: identities[s.self(p)]}
	m := &scratch.Member
	if q.viewAge == never {
		return m
	}
	m.version, m.entries, m.locals = 2, scratch.entries[:], scratch.locals[:]
	for i := range m.locals {
		m.entries[i] = q.view[i].entry()
		m.locals[i] = local{warm: q.warm[i], drained: q.drained[i], late: q.late[i]}
	}
	return m
}

// keep stores the knowledge of a Member in the process.
func (s *state) keep(p int, m *Member) {
	q := &s.processes[p]
	for i, l := range m.locals {
		q.view[i] = cellOf(m.entries[i])
		q.warm[i], q.drained[i], q.late[i] = l.warm, l.drained, l.late
	}
}

func (t table) entries() []Entry {
	entries := make([]Entry, slots)
	for i, c := range t {
		entries[i] = c.entry()
	}
	return entries
}

// calls reports whether a process believes that it may call for a slot.
func (s *state) calls(p, slot int) bool {
	return s.isOpen(p) && s.processes[p].viewAge != never && s.member(p).Phase(slot).Calls()
}

// observe makes a process read a map.
func (s *state) observe(p int, t table, age uint8) {
	m := s.member(p)
	m.See(3, t.entries())
	s.keep(p, m)
	s.processes[p].viewAge = age
	s.processes[p].write.seen = s.processes[p].write.stage == accepted
}

// setMap makes a map the newest version.
func (s *state) setMap(t table) {
	s.maps = [2]table{t, s.maps[0]}
	for p := range s.processes {
		q := &s.processes[p]
		if q.viewAge < older {
			q.viewAge++
		}
		if q.write.kind == mapWrite {
			q.write.valid = false
			if q.write.stage == accepted && q.write.age < older {
				q.write.age++
			}
		}
	}
	if s.late.kind == mapWrite {
		s.late.valid = false
	}
}

// sightOf returns the knowledge of a process that has just read a Lease.
func sightOf(lease Standing) sight {
	if lease == deleted {
		lease = Live
	}
	return sight{standing: lease}
}

// setLease applies a change of a Lease.
func (s *state) setLease(id uint8, to Standing) {
	s.leases[id] = to
	for p := range s.processes {
		q := &s.processes[p]
		switch {
		case q.status == running && !q.lags: // its watch works
			q.sights[id] = sightOf(to)
		case q.status != gone:
			q.sights[id].outdated = true
		}
		if q.write.kind == endWrite && q.write.target == id {
			q.write.valid = false
		}
		if s.self(p) == id {
			q.renewValid = false
		}
	}
	if s.late.kind != noWrite && s.late.kind != mapWrite && s.late.target == id {
		s.late.valid = false
	}
}

func (s *state) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "    map %v", s.maps[0])
	for id, standing := range s.leases {
		if standing != Held {
			fmt.Fprintf(&b, "  %s %s", identities[id], [...]string{"", "live", "ended", "deleted"}[standing])
		}
	}
	for p := range s.processes {
		q := &s.processes[p]
		fmt.Fprintf(&b, "\n    %s %s, term %s, age %d, sees %v (%s)", identities[s.self(p)],
			[...]string{"down", "running", "paused", "gone"}[q.status],
			[...]string{"none", "open", "closed"}[q.term], q.age, q.view,
			[...]string{"newest", "previous", "older", "nothing"}[q.viewAge])
		for slot := range slots {
			if s.calls(p, slot) {
				fmt.Fprintf(&b, ", calls for %d", slot)
			}
		}
	}
	return b.String()
}
