package protocol

import "slices"

// Phase is the state of an entry for a member. It counts only while the member's term is open.
type Phase uint8

// The phases.
const (
	// Elsewhere: the member has nothing to do with the entry.
	Elsewhere Phase = iota
	// Warming: it is to be the next owner, and fills its caches.
	Warming
	// Warm: its caches are filled, and it waits for the owner.
	Warm
	// Serving: it is the owner, and calls.
	Serving
	// Draining: it is the owner and begins no call. Calls that have begun may run.
	Draining
	// Drained: no call runs, and it gives the entry away. It is not known whether that write was
	// applied.
	Drained
)

// Calls reports whether calls may run in the phase.
func (p Phase) Calls() bool { return p == Serving || p == Draining }

// local is the member's own state of an entry.
type local struct {
	warm, drained, late bool
	versions            map[string]string // set with drained
}

// Member holds the knowledge of a member about the map and about itself. The zero value with an
// identity has seen no map.
type Member struct {
	Self    ID
	version uint64
	entries []Entry
	locals  []local
}

// Version returns the version of the last map that was seen, 0 before the first.
func (m *Member) Version() uint64 { return m.version }

// Entries returns the map that was seen last. It must not be changed.
func (m *Member) Entries() []Entry { return m.entries }

// See records a map that was read, or that this member has written. Versions count from 1. It
// reports whether the map is newer than the one seen last; an older one has no effect.
func (m *Member) See(version uint64, entries []Entry) bool {
	if version <= m.version {
		return false
	}
	m.version, m.entries = version, entries
	for len(m.locals) < len(entries) {
		m.locals = append(m.locals, local{})
	}
	m.locals = m.locals[:len(entries)]
	for i, e := range entries {
		l := &m.locals[i]
		if e.Next != m.Self {
			l.warm = false
		}
		if e.Owner != m.Self || !e.Ready {
			l.drained, l.versions = false, nil
		}
		if e.Owner != m.Self || e.Next == "" {
			l.late = false
		}
	}
	return true
}

// Phase returns the state of an entry for the member.
func (m *Member) Phase(i int) Phase {
	e, l := m.entries[i], m.locals[i]
	switch {
	case e.Owner == m.Self && l.drained:
		return Drained
	case e.Owner == m.Self && e.Next != "" && e.Ready:
		return Draining
	case e.Owner == m.Self:
		return Serving
	case e.Next == m.Self && l.warm:
		return Warm
	case e.Next == m.Self:
		return Warming
	default:
		return Elsewhere
	}
}

// Warmed records that the caches hold the objects of an entry. It has an effect in the phase
// Warming only.
func (m *Member) Warmed(i int) {
	if m.Phase(i) == Warming {
		m.locals[i].warm = true
	}
}

// Drained records that no call for an entry runs, and that the member's caches show its writes, up
// to versions. It has an effect in the phase Draining only. No call may begin before See returns a
// map that names this member the owner.
func (m *Member) Drained(i int, versions map[string]string) {
	if m.Phase(i) == Draining {
		m.locals[i].drained, m.locals[i].versions = true, versions
	}
}

// Late records that the hand-over of an entry takes too long. The owner takes the entry back.
func (m *Member) Late(i int) {
	if m.entries[i].Owner == m.Self && m.entries[i].Next != "" {
		m.locals[i].late = true
	}
}

// Next returns the map that the member wants to write, and reports whether it differs from the one
// seen last. The member's term must be open. assign returns the member that gets the entry of an
// ended member, or "". moves are the moves of the planner, nil for other members.
func (m *Member) Next(standing func(ID) Standing, assign func(int) ID, moves []Move) ([]Entry, bool) {
	entries := slices.Clone(m.entries)
	changed := false
	for i, e := range m.entries {
		if next, ok := m.next(i, e, standing, assign); ok {
			entries[i], changed = next, true
		}
	}
	for _, move := range moves {
		e := &entries[move.Entry]
		if e.Next == "" && e.Owner != "" && e.Owner != move.To && standing(move.To) == Live &&
			standing(e.Owner) != Ended {
			e.Next, changed = move.To, true
		}
	}
	return entries, changed
}

// next returns the change of one entry that the member may write, if there is one.
func (m *Member) next(i int, e Entry, standing func(ID) Standing,
	assign func(int) ID) (_ Entry, ok bool) {
	l := m.locals[i]
	switch {
	case e.Owner == "" || standing(e.Owner) == Ended:
		to := e.Next
		if to == "" || !e.Ready || standing(to) != Live {
			to = assign(i)
		}
		return e.to(to, nil), to != ""
	case e.Owner == m.Self && e.Next != "" && (l.late || standing(e.Next) == Ended):
		return e.still(), true
	case e.Owner == m.Self && l.drained:
		return e.to(e.Next, l.versions), true
	case e.Next == m.Self && l.warm && !e.Ready:
		e.Ready = true
		return e, true
	}
	return e, false
}
