package handover

import (
	"slices"
)

// act applies the actions of a running process.
func (s *state) act(r rules, a action) bool {
	q := &s.processes[a.p]
	switch a.verb {
	case join:
		if q.term != noTerm || q.renew != idle {
			return false
		}
		s.renew(a.p)
	case renew:
		over := q.age >= fenceTicks && !r.renewsAfterRunningOut
		if q.term != open || over || q.age == 0 || q.renew != idle {
			return false
		}
		s.renew(a.p)
	case readMap:
		if q.viewAge == newest {
			return false
		}
		s.observe(r, int(a.p), s.maps[0], newest)
	case readOldMap:
		if q.viewAge != older && !(r.seesOlderMaps && q.viewAge == newest) {
			return false
		}
		s.observe(r, int(a.p), s.maps[1], previous)
	case seeLease:
		if !q.sights[a.arg].outdated {
			return false
		}
		q.sights[a.arg] = s.sightOf(a.arg)
	default:
		return s.isOpen(int(a.p)) && q.viewAge != never && s.decide(r, a)
	}
	return true
}

// renew sends a renewal, the first of which creates the Lease.
func (s *state) renew(p uint8) {
	q := &s.processes[p]
	q.renew, q.renewAge = sent, 0
	q.renewValid = s.leases[s.self(int(p))] == Held || s.leases[s.self(int(p))] == Live && !q.leaseStale
}

// decide applies the actions of a process with an open term, by the protocol.
func (s *state) decide(r rules, a action) bool {
	q := &s.processes[a.p]
	slot := int(a.arg)
	if a.verb == endMember {
		seen := q.sights[slot]
		if q.write.kind != noWrite || seen.standing != Live || seen.unchanged < r.leaseTicks() ||
			uint8(slot) == s.self(int(a.p)) {
			return false
		}
		q.write = request{kind: endWrite, stage: sent, target: a.arg,
			valid: !seen.outdated || r.endsAnyVersion}
		return true
	}
	if a.verb == writeMap || a.verb == move {
		return s.change(r, a, s.member(int(a.p)))
	}
	m, l := s.member(int(a.p)), &q.lives[slot]
	phase := m.Phase(slot)
	ok := true
	switch a.verb {
	case fill:
		ok = (phase == Warming || phase == Filling) && l.asked && !l.stuck
		m.Filled(slot)
	case hangList:
		ok = (phase == Warming || phase == Filling) && l.asked && !l.stuck && spend(&s.left.hungLists)
		l.stuck = true
	case decline: // the handler is asked again
		ok = phase == Warming && l.asked && q.renew == idle && !r.neverDeclines && (l.stuck || spend(&s.left.failedLists)) &&
			s.say(a.p, func(says *says) { says.declines = true })
		l.stuck = false
		m.Failed(slot)
	case give:
		ok = phase == Filling && l.stuck && q.renew == idle && !r.neverGives &&
			s.say(a.p, func(says *says) { says.gives = true })
		l.stuck = false
		m.Failed(slot)
	case serve:
		ok = phase == Reaching && l.served && !l.shut && !l.opened
		s.reach(r, m, l, slot)
		m.Opened(slot, m.entries[slot].Epoch)
	default:
		ok = s.handle(r, a, m, l)
	}
	if ok {
		s.keep(r, int(a.p), m)
	}
	return ok
}

// reach makes the cache of a process reach the versions that the map has for a slot.
func (s *state) reach(r rules, m *Member, l *life, slot int) {
	switch e := m.entries[slot]; e.Left {
	case Unknown: // it asks the server
		l.seen = s.wrote[slot]
	case Known:
		l.seen = max(l.seen, versionOf(e.Versions))
	}
	if r.opensUnreached {
		l.seen = 0
	}
	if l.seen < s.wrote[slot] {
		s.broken = opensTooEarly
	}
}

// handle applies the actions that concern the calls of a process.
func (s *state) handle(r rules, a action, m *Member, l *life) bool {
	slot := int(a.arg)
	phase := m.Phase(slot)
	c := Calls{Opened: l.opened, Known: l.seen == s.wrote[slot], Versions: versionsAt[s.wrote[slot]]}
	if l.call != noCall && !r.drainsWithCall {
		c.Running++
	}
	if l.unanswered && !r.drainsWithWrite {
		c.Running++
	}
	if r.drainsUnshown {
		c.Known, c.Versions = true, versionsAt[l.seen]
	}
	if r.forgetsPassed && !c.Opened {
		c = Calls{Opened: true, Known: true, Versions: versionsAt[0]}
	}
	switch a.verb {
	case call:
		if phase != Open || l.call != noCall || s.wrote[slot] == 3 || !spend(&s.left.calls) {
			return false
		}
		l.call = runs
	case hangCall:
		if l.call != runs || !spend(&s.left.hungCalls) {
			return false
		}
		l.call = hangs
	case endCall, loseCall:
		if l.call != runs || a.verb == loseCall && !spend(&s.left.unanswered) {
			return false
		}
		if l.call = noCall; a.verb == loseCall {
			l.unanswered = true
		} else {
			s.wrote[slot]++
		}
	case answerCall:
		if !l.unanswered {
			return false
		}
		l.unanswered = false
		s.wrote[slot]++
	case show:
		if !l.opened || l.seen == s.wrote[slot] {
			return false
		}
		l.seen = s.wrote[slot]
	case shut:
		if phase == Closed || phase == Drained || !m.isWanted(slot) {
			return false
		}
		m.Close(slot)
	case reopen:
		if phase == Drained && r.resumesInDoubt {
			m.locals[slot].drained, m.locals[slot].closed, m.entries[slot] = false, false, m.entries[slot].still()
			return true
		}
		if phase != Closed || r.neverReopens || s.brief {
			return false
		}
		m.Reopen(slot)
	case drain:
		says := s.says[s.self(int(a.p))]
		if phase != Closed && phase != Filling && !(s.brief && phase == Open) || !m.isWanted(slot) || phase == Closed && c.Opened && !c.Known && !says.gives && !says.leaves {
			return false
		}
		m.Close(slot)
		if m.Drain(slot, c); m.Phase(slot) != Drained {
			return false
		}
	}
	return true
}

// change sends a change of the map.
func (s *state) change(r rules, a action, m *Member) bool {
	q := &s.processes[a.p]
	if q.write.kind != noWrite {
		return false
	}
	if q.denied {
		return false
	}
	v := View{Peers: s.peers(r, int(a.p)), Tidy: !s.brief}
	ended := EndedOf(v.Peers)
	for i, e := range m.entries {
		gives := e.Owner == m.Self && v.Peers[m.Self].givesUp() && e.Next == ""
		if !isFree(&e, ended) && !gives {
			continue
		}
		if to := fewest(r, m.entries, v.Peers, !gives); to != "" {
			v.Moves = append(v.Moves, Move{Entry: i, To: to})
		}
	}
	moved := -1
	if a.verb == move {
		moved = int(a.arg % slots)
		v.Planner = Planner(v.Peers)
		if v.Planner != m.Self || moved >= s.slots || m.entries[moved].Next != "" || !spend(&s.left.moves) {
			return false
		}
		v.Moves = append(v.Moves, Move{Entry: moved, To: identities[a.arg/slots]})
	}
	if r.givesUndrained {
		for i := range m.locals {
			m.locals[i].drained = m.isWanted(i) || m.locals[i].drained
		}
	}
	if r.keepsHeirs || r.keepsEndedHeirs {
		for id, p := range v.Peers {
			if heir := p.Standing != Ended || r.keepsEndedHeirs; heir && id != m.Self && p.Standing != Held {
				p.State, p.Refused = Takes, false
				if isNext(m.entries, id) {
					p.Standing = Live
				}
				v.Peers[id] = p
			}
		}
	}
	before := [slots]Entry{}
	copy(before[:], m.entries)
	entries, changed := m.Next(v)
	entries = slices.Clone(entries)
	if r.plannerGives && moved >= 0 && before[moved].Owner != "" && entries[moved].Next != "" {
		entries[moved] = entries[moved].to(v.Moves[len(v.Moves)-1].To, Unknown, nil)
	}
	for i := range entries {
		e := &entries[i]
		if r.tidiesEarly && e.Owner == m.Self && e.Left != Reached {
			e.Left, e.Versions, changed = Reached, nil, true
		}
		if r.trustsTheDead && e.Owner != before[i].Owner && before[i].Owner != "" && e.Left == Unknown {
			e.Left, e.Versions = before[i].Left, before[i].Versions
		}
	}
	w := request{kind: mapWrite, stage: sent, valid: q.viewAge == newest, target: s.self(int(a.p))}
	for i, e := range entries {
		w.table[i] = cellOf(e)
		if rises := e.Owner != m.entries[i].Owner; rises != (e.Epoch == 1) { // the epochs of a view are 0
			s.broken = badEpoch
		}
	}
	if !changed || moved >= 0 && entries[moved].Next == m.entries[moved].Next && !r.plannerGives {
		return false
	}
	q.write = w
	return true
}

func isNext(entries []Entry, id ID) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.Next == id })
}

// fewest returns the member that takes with the fewest entries, the first one of several. If nobody
// takes, entries without an owner go to one that does not leave.
func fewest(r rules, entries []Entry, peers map[ID]Peer, isFree bool) (best ID) {
	for _, mayDecline := range []bool{false, true} {
		least := len(entries) + 1
		for _, id := range identities {
			n := 0
			for _, e := range entries {
				if e.Owner == id {
					n++
				}
			}
			p := peers[id]
			ok := p.Inherits() || mayDecline && isFree && p.Standing == Live && p.State != Leaving && !p.Refused
			if ok && n < least {
				best, least = id, n
			}
		}
		if best != "" {
			break
		}
	}
	return best
}
