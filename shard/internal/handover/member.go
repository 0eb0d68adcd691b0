package handover

import (
	"cmp"
	"slices"
)

// Phase is the state of an entry for a member. It counts only while the member's term is open.
type Phase uint8

const (
	// Elsewhere: the member has nothing to do with the entry.
	Elsewhere Phase = iota
	// Warming: it is to be the next owner, and fills its caches.
	Warming
	// Warm: its caches are filled, and it waits for the owner.
	Warm
	// Filling: it is the owner, and fills its caches.
	Filling
	// Reaching: it is the owner, and its caches are to reach versions before calls begin.
	Reaching
	// Open: it is the owner, and calls.
	Open
	// Closed: it is the owner and begins no call. Calls that have begun run on. It may open again.
	Closed
	// Drained: no call runs, and it gives the entry away. It is not known whether that write was
	// applied, so that the map alone leads out.
	Drained
)

// Calls reports whether calls may run in the phase.
func (p Phase) Calls() bool { return p == Open || p == Closed }

// local is the member's own state of an entry.
type local struct {
	owns, isNext   bool // by the map that was seen last: this member is the owner, or the next one
	held           bool // the handler may have the entry, and is to drop it
	asked, filled  bool // the handler is to fill caches, and has done so
	served, opened bool // the handler is to reach versions and call, and has begun to call
	closed         bool // a try to hand over began, and has not failed
	shut           bool // the handler was told to close
	drained        bool
	left           Left              // with drained: for the next owner
	versions       map[string]string // with drained
	tries          tries
}

// Member holds the knowledge of a member about the map and about itself. The zero value with an
// identity has seen no map.
type Member struct {
	Self ID
	// Final closes what the member owns for good: no try fails any more. It is set at two thirds
	// of the grace of a leaver.
	Final   bool
	version uint64
	entries []Entry
	locals  []local
}

// Version returns the version of the last map that was seen, 0 before the first.
func (m *Member) Version() uint64 { return m.version }

// Entries returns the map that was seen last. It must not be changed.
func (m *Member) Entries() []Entry { return m.entries }

// See records a map that was read, or that this member has written. Versions count from 1. An older
// map has no effect. lost has the entries that the member was to call for and that others own by
// a map that it has not written, as after the restoring of a backup: its term has to end.
func (m *Member) See(version uint64, entries []Entry) (lost []int, isNewer bool) {
	if version <= m.version {
		return nil, false
	}
	m.version, m.entries = version, entries
	for len(m.locals) < len(entries) {
		m.locals = append(m.locals, local{})
	}
	m.locals = m.locals[:len(entries)]
	for i := range entries {
		e, l := &entries[i], &m.locals[i]
		l.owns, l.isNext = e.Owner == m.Self, e.Next == m.Self
		if !l.owns || !e.Ready {
			wasDrained := l.drained
			l.drained, l.left, l.versions, l.tries = false, 0, nil, tries{}
			if !m.Final {
				l.closed = false
			}
			if !l.owns && l.served && !wasDrained {
				lost = append(lost, i)
			}
		}
		if !l.owns {
			l.served, l.opened, l.closed = false, false, false
		}
		if !l.owns && !l.isNext {
			l.asked, l.filled = false, false
		}
	}
	return lost, true
}

// Phase returns the state of an entry for the member.
func (m *Member) Phase(i int) Phase {
	l := &m.locals[i]
	switch {
	case l.owns && l.drained:
		return Drained
	case l.owns && l.closed:
		return Closed
	case l.owns && l.opened:
		return Open
	case l.owns && l.filled:
		return Reaching
	case l.owns:
		return Filling
	case l.isNext && l.filled:
		return Warm
	case l.isNext:
		return Warming
	default:
		return Elsewhere
	}
}

// Filled records that the caches hold the objects of an entry.
func (m *Member) Filled(i int) {
	if m.locals[i].asked && m.Phase(i) != Elsewhere {
		m.locals[i].filled = true
	}
}

// Failed records that the caches cannot be filled for an entry. The handler is asked again while
// the member owns it, or is its next owner.
func (m *Member) Failed(i int) { m.locals[i].asked = m.locals[i].filled }

// Opened records that calls have begun for an entry, after Serve with an epoch.
func (m *Member) Opened(i int, epoch uint64) {
	if m.locals[i].served && m.entries[i].Epoch == epoch {
		m.locals[i].opened = true
	}
}

// isWanted reports whether an entry is to be handed over now.
func (m *Member) isWanted(i int) bool {
	e := &m.entries[i]
	return m.locals[i].owns && e.Next != "" && e.Ready
}

// Close begins no call for an entry until Reopen. It has an effect if the next owner is ready.
func (m *Member) Close(i int) {
	if m.isWanted(i) && m.Phase(i) != Drained {
		m.locals[i].closed = true
	}
}

// Reopen lets calls begin again for an entry that is closed. A drained one stays drained.
func (m *Member) Reopen(i int) {
	if m.Phase(i) == Closed && !m.Final {
		m.locals[i].closed = false
	}
}

// Drain records that no call for a closed entry runs, and no write of one is without an answer. c
// is the report of the handler after it has closed. No call may begin before See returns a map that
// names this member the owner.
func (m *Member) Drain(i int, c Calls) {
	l, e := &m.locals[i], &m.entries[i]
	if m.Phase(i) != Closed || !m.isWanted(i) || c.Running > 0 {
		return
	}
	l.drained, l.left, l.versions = true, Unknown, nil
	switch {
	case !c.Opened && e.Left != Reached: // no call has run: the versions are those of the owner before
		l.left, l.versions = e.Left, e.Versions
	case c.Known:
		l.left, l.versions = Known, c.Versions
	}
}

// View is the knowledge about the group that a change of the map needs.
type View struct {
	// Peers are the members, this one included. Others count as held.
	Peers map[ID]Peer
	// Planner is the member that carries out the moves of members that stay.
	Planner ID
	// Moves are those of the plan, for entries without a live owner too.
	Moves []Move
	// Weight returns the weight of an entry, 0 if it is not known; nil: none is. Weights are
	// written with other changes.
	Weight func(i int) uint32
	// Tidy writes the map for versions that are needed no more, also without another change. Renew
	// writes it in any case.
	Tidy, Renew bool
}

// Next returns the map that the member wants to write, and reports whether there is one; else the
// result is that of Entries. The member's term must be open.
func (m *Member) Next(v View) ([]Entry, bool) {
	ended := EndedOf(v.Peers)
	entries, changed := m.entries, false
	set := func(i int, e Entry) {
		if !changed {
			entries, changed = slices.Clone(m.entries), true
		}
		entries[i] = e
	}
	for i := range m.entries {
		if next, ok := m.next(i, v.Peers, ended); ok {
			set(i, next)
		}
	}
	for _, move := range v.Moves {
		if entries[move.Entry].Owner != m.entries[move.Entry].Owner {
			continue // it has an owner now
		}
		if next, ok := m.move(entries[move.Entry], move.To, v, ended); ok {
			set(move.Entry, next)
		}
	}
	if v.Renew && !changed {
		entries, changed = slices.Clone(m.entries), true
	}
	if !v.Tidy && !changed {
		return entries, false
	}
	for i, l := range m.locals {
		if e := entries[i]; e.Owner == m.Self && e.Left != Reached && l.opened {
			e.Left, e.Versions = Reached, nil
			set(i, e)
		}
	}
	for i := range entries {
		if v.Weight != nil && changed {
			entries[i].Weight = cmp.Or(v.Weight(i), entries[i].Weight)
		}
	}
	return entries, changed
}

// next returns the change of one entry that the member may write by the map alone, if there is one.
func (m *Member) next(i int, peers map[ID]Peer, ended map[ID]bool) (_ Entry, ok bool) {
	e, l := &m.entries[i], &m.locals[i]
	switch {
	case isFree(e, ended):
		return e.to(e.Next, Unknown, nil), peers[e.Next].Inherits() // it warms already
	case l.owns && e.Next != "" && isRefusing(peers[e.Next]):
		return e.still(), true
	case l.owns && l.drained:
		return e.to(e.Next, l.left, l.versions), true
	case l.isNext && l.filled && !e.Ready:
		warm := *e
		warm.Ready = true
		return warm, true
	}
	return Entry{}, false
}

// move returns an entry with the change that a plan wants, if it is this member's turn.
func (m *Member) move(e Entry, to ID, v View, ended map[ID]bool) (_ Entry, ok bool) {
	by := v.Planner
	if v.Peers[e.Owner].givesUp() {
		by = e.Owner
	}
	switch {
	case isFree(&e, ended):
		return e.to(to, Unknown, nil), v.Peers[to].Standing == Live
	case by == m.Self && e.Next == "" && e.Owner != to && v.Peers[to].Inherits():
		e.Next = to
		return e, true
	}
	return e, false
}

// isFree reports whether an entry has no owner that may call.
func isFree(e *Entry, ended map[ID]bool) bool { return e.Owner == "" || ended[e.Owner] }

// isRefusing reports whether a member will not own what it is the next owner of. One that is held
// may be live.
func isRefusing(p Peer) bool { return p.Standing == Ended || p.Standing == Live && !p.Inherits() }

// Act is a call of the handler.
type Act uint8

const (
	// Fill fills the caches, for one that owns or is to own the entry: Filled or Failed follows.
	Fill Act = iota
	// Serve waits for the versions, and then calls each key once: Opened follows.
	Serve
	// Shut begins no more calls.
	Shut
	// Unshut begins calls again, or goes on to wait for the versions.
	Unshut
	// Drop forgets the entry.
	Drop
)

// Action is a call of the handler for an entry.
type Action struct {
	Entry int
	Act   Act
}

// Acts returns the calls of the handler to make now. Each is returned once.
func (m *Member) Acts() (acts []Action) {
	for i := range m.entries {
		l := &m.locals[i]
		switch phase := m.Phase(i); {
		case phase == Elsewhere && l.held:
			*l = local{}
			acts = append(acts, Action{i, Drop})
		case (phase == Warming || phase == Filling) && !l.asked:
			l.held, l.asked = true, true
			acts = append(acts, Action{i, Fill})
		case phase == Reaching && !l.served:
			l.served, l.shut = true, false
			acts = append(acts, Action{i, Serve})
		case phase == Closed && l.served && !l.shut:
			l.shut = true
			acts = append(acts, Action{i, Shut})
		case (phase == Open || phase == Reaching) && l.shut:
			l.shut = false
			acts = append(acts, Action{i, Unshut})
		}
	}
	return acts
}
