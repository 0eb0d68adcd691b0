package handover

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
		fmt.Fprintf(&b, " %s", [...]string{"?", fmt.Sprint(versionOf(e.Versions)), ""}[e.Left])
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
	denied // refused, and not for a conflict
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
	says      says
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

// says is what a member says in its Lease.
type says struct {
	declines, gives, leaves, refused bool
}

func (s says) state() State {
	switch {
	case s.leaves:
		return Leaving
	case s.gives:
		return Gives
	case s.declines:
		return Declines
	}
	return Takes
}

// The states of the call of a slot.
const (
	noCall uint8 = iota
	runs
	hangs // it does not end
)

// life is a member's own state of a slot: that of the Member, and that of its handler.
type life struct {
	held, asked, filled, served, opened, closed, shut, drained bool
	left                                                       Left
	version                                                    uint8 // with left

	call       uint8
	unanswered bool  // a write of a call has no answer, and may be applied
	seen       uint8 // the version that the cache shows
	stuck      bool  // the list brings no page
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

	view    table
	viewAge uint8
	lives   [slots]life
	write   request
	sights  [len(identities)]sight

	refuses   bool // the server refuses its writes of the map
	denied    bool // it has learned that
	overtaken bool // and that others can write
}

// budget bounds the faults, and the moves of the planner.
type budget struct {
	crashes, pauses, lags, losses, rejoins, quits, moves, deletes, slow uint8
	// calls are begun, and those that do not end, or end with a write without an answer. hungLists
	// bring no page, failed ones an error.
	calls, hungCalls, unanswered, hungLists, failedLists, refusals uint8
}

// breach is a rule that a step has broken.
type breach uint8

const (
	noBreach breach = iota
	badEpoch
	lostEntry
	opensTooEarly
)

var breaches = [...]string{"", "an epoch does not rise with each change of an owner",
	"a member loses an entry that it has not given away", "an owner opens before it has the versions of the last one"}

// state is the whole world. It is comparable, and equal states have equal futures.
type state struct {
	left      budget
	maps      [2]table // the newest map and the one before
	leases    [len(identities)]Standing
	says      [len(identities)]says
	processes [processes]process
	// late is a request whose sender no longer waits for it. The late request of a renewal has a
	// target.
	late   request
	slots  int          // the first of them are used
	wrote  [slots]uint8 // the version of the last write of a call
	broken breach       // the rule that a step has broken
	brief  bool         // calls and lists of owners take no time: they are open at once, and drain in one step
}

func start(b budget) state {
	s := state{left: b, slots: slots, brief: b.calls+b.hungLists+b.failedLists == 0}
	for p := range s.processes {
		s.processes[p].viewAge = never
	}
	return s
}

// rules switches the protocol's rules off, one at a time, for tests of the exploration.
type rules struct {
	takesWithoutEnding, renewsAfterRunningOut, fenceFromAnswer, endsEarly, endsAnyVersion,
	resumesInDoubt, givesUndrained, plannerGives, keepsIdentity, seesOlderMaps bool
	drainsWithCall, drainsWithWrite, drainsUnshown, staysClosed, neverReopens, keepsHeirs, keepsEndedHeirs,
	opensUnreached, tidiesEarly, forgetsPassed, trustsTheDead, staysRefused, neverDeclines, neverGives, leaverWaits bool
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

// peers are the members in the view of a process. The result is used until the next call.
func (s *state) peers(r rules, p int) map[ID]Peer {
	for n, id := range identities {
		seen := s.processes[p].sights[n]
		peer := Peer{Standing: seen.standing, State: seen.says.state(), Refused: seen.says.refused, Joined: true}
		switch expired := seen.unchanged >= r.leaseTicks(); {
		case uint8(n) == s.self(p):
			own := s.says[s.self(p)]
			peer.Standing, peer.State, peer.Refused = Live, own.state(), own.refused
		case seen.standing == Live && expired && r.takesWithoutEnding:
			peer.Standing = Ended
		case seen.standing == Live && expired:
			peer.Standing = Held
		}
		scratch.peers[id] = peer
	}
	return scratch.peers
}

// scratch is the memory of member and peers, whose results are used one at a time.
var scratch = struct {
	Member
	entries [slots]Entry
	locals  [slots]local
	peers   map[ID]Peer
}{peers: map[ID]Peer{}}

// member returns the knowledge of a process as a Member of the protocol. Its view has the version
// 2.
func (s *state) member(p int) *Member {
	q := &s.processes[p]
	scratch.Member = Member{Self: identities[s.self(p)]}
	m := &scratch.Member
	if q.viewAge == never {
		return m
	}
	m.version, m.entries, m.locals = 2, scratch.entries[:s.slots], scratch.locals[:s.slots]
	for i := range m.locals {
		m.entries[i] = q.view[i].entry()
		l := q.lives[i]
		m.locals[i] = local{held: l.held, asked: l.asked, filled: l.filled, served: l.served, opened: l.opened,
			closed: l.closed, shut: l.shut, drained: l.drained, left: l.left,
			owns: m.entries[i].Owner == m.Self, isNext: m.entries[i].Next == m.Self}
		if l.left == Known {
			m.locals[i].versions = versionsAt[l.version]
		}
	}
	return m
}

// keep makes the handler's calls, and stores the knowledge of a Member in the process.
func (s *state) keep(r rules, p int, m *Member) {
	q := &s.processes[p]
	m.Acts()
	for i := range m.locals {
		if phase := m.Phase(i); s.brief && (phase == Filling || phase == Reaching) {
			s.reach(r, m, &q.lives[i], i)
			m.locals[i].filled, m.locals[i].served, m.locals[i].opened = true, true, true
		}
	}
	for i, l := range m.locals {
		before := q.lives[i]
		q.view[i] = cellOf(m.entries[i])
		after := life{held: l.held, asked: l.asked, filled: l.filled, served: l.served, opened: l.opened,
			closed: l.closed, shut: l.shut, drained: l.drained, left: l.left, version: versionOf(l.versions)}
		if l.held {
			after.call, after.unanswered, after.seen, after.stuck = before.call, before.unanswered, before.seen, before.stuck
		}
		if r.staysClosed && before.closed && m.entries[i].Owner == m.Self && !l.drained {
			after.closed = true
		}
		q.lives[i] = after
	}
}

// calls reports whether a call of a process for a slot may run, or a write of one be applied.
func (s *state) calls(p, slot int) bool {
	if !s.isOpen(p) || s.processes[p].viewAge == never {
		return false
	}
	l := s.processes[p].lives[slot]
	return l.call != noCall || l.unanswered || s.member(p).Phase(slot).Calls()
}

// observe makes a process read a map.
func (s *state) observe(r rules, p int, t table, age uint8) {
	m := s.member(p)
	lost, _ := m.See(3, t.entries()[:s.slots])
	if len(lost) > 0 && s.isOpen(p) {
		s.broken = lostEntry
	}
	q := &s.processes[p]
	s.keep(r, p, m)
	q.overtaken = q.overtaken || q.denied
	q.viewAge = age
	q.write.seen = q.write.stage == accepted
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
func (s *state) sightOf(id uint8) sight {
	seen := sight{standing: s.leases[id], says: s.says[id]}
	if seen.standing == deleted {
		seen.standing = Live
	}
	return seen
}

// setLease applies a change of a Lease.
func (s *state) setLease(id uint8, to Standing) {
	s.leases[id] = to
	for p := range s.processes {
		q := &s.processes[p]
		switch {
		case q.status == running && !q.lags: // its watch works
			q.sights[id] = s.sightOf(id)
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
			if l := q.lives[slot]; slot < s.slots && l != (life{}) {
				fmt.Fprintf(&b, ", %d: %+v", slot, l)
			}
		}
	}
	return b.String()
}
