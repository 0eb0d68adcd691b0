package handover

import (
	"fmt"
	"slices"
)

// verb is the kind of an action. A fair run has the verbs before tick, in this order.
type verb uint8

const (
	answerRenewal verb = iota
	answerWrite
	applyRenewal
	applyWrite
	applyLate
	lookAtClock
	learnEnd
	rejoin
	join
	readMap
	seeLease
	recover
	sayRefused
	endRefused
	fill
	serve
	answerCall
	endCall
	show
	drain
	reopen
	shut
	decline
	give
	writeMap
	quit
	endMember
	renew
	tick
	begin
	readOldMap
	dropLate
	proceed
	catchUp
	lag
	crash
	pause
	loseRenewal
	loseWrite
	leave
	call
	hangCall
	loseCall
	hangList
	refuse
	move
	deleteLease
	verbs
)

var verbNames = [verbs]string{
	"receives the answer to its renewal", "receives the answer to its write",
	"'s renewal arrives", "'s write arrives", "a late request arrives", " finds its term over",
	" reads that it has ended", " joins again", " sends the first renewal", " reads the map",
	" reads the lease of", " can do its work again", " says that its writes are refused",
	" ends itself, as its writes are refused", " has filled", " has reached the versions of",
	"'s write is answered in", "'s call ends in", "'s cache shows the writes in", " has drained", " opens again",
	" closes", " declines, as the list fails of", " gives, as it cannot fill", " writes the map", " quits", " ends", " renews",
	"a tick passes, missed by", " starts", " reads an older map", "a late request is lost",
	" continues", " is prompt again", " begins to lag", " crashes", " is paused", " no longer waits for its renewal",
	" no longer waits for its write", " leaves", " calls in", "'s call hangs in", "'s call ends without an answer to its write in",
	"'s list hangs of", "'s writes of the map are refused from now on", " plans to move", "'s lease is deleted",
}

// action is an event of a process. arg is a slot, an identity, a move or a set of processes.
type action struct {
	verb   verb
	p, arg uint8
}

func (a action) String() string {
	switch name := verbNames[a.verb]; a.verb {
	case applyLate, dropLate:
		return name
	case tick:
		return fmt.Sprintf("%s %03b", name, a.arg)
	case fill, serve, answerCall, endCall, show, drain, reopen, shut, decline, give, call, hangCall, loseCall, hangList:
		return fmt.Sprintf("%c%s slot %d", 'a'+a.p, name, a.arg)
	case move:
		return fmt.Sprintf("%c%s slot %d to %s", 'a'+a.p, name, a.arg%slots, identities[a.arg/slots])
	case seeLease, endMember:
		return fmt.Sprintf("%c%s %s", 'a'+a.p, name, identities[a.arg])
	default:
		return fmt.Sprintf("%c%s", 'a'+a.p, name)
	}
}

// arguments returns the number of arguments that an action has.
func (v verb) arguments() uint8 {
	switch v {
	case seeLease, endMember:
		return uint8(len(identities))
	case fill, serve, answerCall, endCall, show, drain, reopen, shut, decline, give, call, hangCall, loseCall, hangList:
		return slots
	case move:
		return slots * uint8(len(identities))
	case tick:
		return 1 << processes
	default:
		return 1
	}
}

// isGlobal reports whether an action belongs to no process.
func (v verb) isGlobal() bool { return v == applyLate || v == dropLate || v == tick }

// all are the actions, those of a fair run first.
var all = func() (actions []action) {
	for v := range verbs {
		for p := range uint8(processes) {
			for arg := range v.arguments() {
				if p == 0 || !v.isGlobal() {
					actions = append(actions, action{v, p, arg})
				}
			}
		}
	}
	return actions
}()

// step sets the state after an action, and reports whether the action is possible. Time passes only
// if isCalm.
func (s *state) step(r rules, a action, after *state) (ok bool) {
	if !s.isThinkable(a) {
		return false
	}
	*after = *s
	return after.do(r, a)
}

// isThinkable reports whether an action passes some cheap checks, which save a copy of the state.
func (s *state) isThinkable(a action) bool {
	q := &s.processes[a.p]
	switch a.verb {
	case answerRenewal:
		return q.renew >= accepted
	case answerWrite:
		return q.write.stage >= accepted
	case applyRenewal, loseRenewal:
		return q.renew == sent
	case applyWrite, loseWrite:
		return q.write.stage == sent
	case applyLate, dropLate:
		return s.late.kind != noWrite
	case fill, serve, answerCall, endCall, show, drain, reopen, shut, decline, give, call, hangCall, loseCall, hangList:
		return q.status == running && int(a.arg) < s.slots && q.view[a.arg]&63 != 0 && s.isHandled(a.verb, q.lives[a.arg])
	case leave:
		return s.left.quits > 0
	case refuse:
		return s.left.refusals > 0 && !q.refuses
	case sayRefused, endRefused:
		return q.denied
	case recover:
		return s.says[s.self(int(a.p))] != says{}
	case quit:
		return q.status == running && q.write.kind == noWrite && s.says[s.self(int(a.p))].leaves
	case begin:
		return q.status == down
	case proceed:
		return q.status == paused
	case rejoin:
		return q.term == closed
	case lookAtClock:
		return q.term == open && q.age >= fenceTicks
	case crash:
		return s.left.crashes > 0
	case pause:
		return s.left.pauses > 0
	case lag:
		return s.left.lags > 0
	case deleteLease:
		return s.left.deletes > 0
	case catchUp:
		return q.lags
	case readMap:
		return q.viewAge != newest
	case move:
		return q.status == running && q.write.kind == noWrite && s.left.moves > 0
	case writeMap, endMember:
		return q.status == running && q.write.kind == noWrite
	case tick:
		return a.arg == 0 || s.left.slow > 0
	case seeLease:
		return q.sights[a.arg].outdated
	}
	return true
}

// isHandled does so for the actions of a handler.
func (s *state) isHandled(v verb, l life) bool {
	switch v {
	case fill:
		return l.asked && !l.filled && !l.stuck
	case serve:
		return l.served && !l.opened
	case answerCall:
		return l.unanswered
	case endCall:
		return l.call == runs
	case show:
		return l.opened
	case reopen:
		return l.closed && !s.brief || l.drained
	case shut:
		return !l.closed && !s.brief
	case drain:
		return !l.drained && (l.closed || s.brief || !l.filled)
	case decline, give:
		return l.asked && !l.filled
	case call:
		return l.opened && s.left.calls > 0
	case hangCall:
		return l.call == runs && s.left.hungCalls > 0
	case loseCall:
		return l.call == runs && s.left.unanswered > 0
	default: // hangList
		return l.asked && !l.filled && s.left.hungLists > 0
	}
}

func (s *state) do(r rules, a action) (ok bool) {
	switch a.verb {
	case tick:
		ok = s.tick(a.arg)
	case applyLate:
		if ok = s.late.kind != noWrite; ok {
			w := s.late
			s.late = request{}
			s.applyLate(w)
		}
	case dropLate:
		ok = s.late.kind != noWrite
		s.late = request{}
	case answerRenewal, answerWrite, applyRenewal, applyWrite, loseRenewal, loseWrite:
		ok = s.network(r, a)
	case begin, proceed, catchUp, lag, crash, pause, quit, leave, lookAtClock, learnEnd, rejoin, deleteLease, recover,
		sayRefused, endRefused, refuse:
		ok = s.life(r, a)
	default:
		ok = s.processes[a.p].status == running && s.act(r, a)
	}
	return ok
}

func spend(left *uint8) bool {
	if *left == 0 {
		return false
	}
	*left--
	return true
}

// life applies the actions that concern a process as a whole.
func (s *state) life(r rules, a action) bool {
	q := &s.processes[a.p]
	switch a.verb {
	case begin:
		if q.status != down {
			return false
		}
		q.status = running
	case proceed:
		if q.status != paused {
			return false
		}
		q.status = running
	case catchUp:
		if q.status != running || !q.lags {
			return false
		}
		q.lags = false
	case lag:
		if q.status != running || q.lags || !spend(&s.left.lags) {
			return false
		}
		q.lags = true
	case pause:
		if q.status != running || !spend(&s.left.pauses) {
			return false
		}
		q.status = paused
	case crash:
		if q.status != running && q.status != paused || !spend(&s.left.crashes) {
			return false
		}
		s.leave(a.p)
	case leave:
		return s.isOpen(int(a.p)) && q.renew == idle && spend(&s.left.quits) &&
			s.say(a.p, func(says *says) { says.leaves = true })
	case quit:
		return s.quit(r, a.p)
	case recover:
		now := s.says[s.self(int(a.p))]
		return (now.declines || now.gives) && q.renew == idle &&
			s.say(a.p, func(says *says) { says.declines, says.gives = false, false })
	case refuse:
		if q.status != running || q.refuses || !spend(&s.left.refusals) {
			return false
		}
		q.refuses = true
	case sayRefused:
		return q.denied && q.renew == idle && s.say(a.p, func(says *says) { says.refused = true })
	case endRefused:
		return s.endRefused(r, a.p)
	case lookAtClock:
		if q.status != running || q.term != open || q.age < fenceTicks || r.renewsAfterRunningOut {
			return false
		}
		q.term = closed
	case learnEnd:
		if q.status != running || q.term == closed || s.leases[s.self(int(a.p))] < Ended {
			return false
		}
		q.term = closed
	case deleteLease:
		if s.leases[s.self(int(a.p))] != Live || !spend(&s.left.deletes) {
			return false
		}
		s.setLease(s.self(int(a.p)), deleted)
	case rejoin:
		return s.rejoin(r, a.p)
	}
	return true
}

// say changes what a process says in its Lease.
func (s *state) say(p uint8, change func(*says)) bool {
	q, id := &s.processes[p], s.self(int(p))
	before := s.says[id]
	change(&s.says[id])
	if s.leases[id] != Live || q.leaseStale || !s.isOpen(int(p)) || q.status != running || s.says[id] == before {
		s.says[id] = before
		return false
	}
	s.setLease(id, Live)
	return true
}

// quit ends a process that leaves: in order if no call runs, else without a release.
func (s *state) quit(r rules, p uint8) bool {
	q := &s.processes[p]
	self := s.self(int(p))
	if q.status != running || !s.isOpen(int(p)) || q.write.kind != noWrite || q.renew != idle || !s.says[self].leaves {
		return false
	}
	isIdle := true
	for _, l := range q.lives {
		isIdle = isIdle && l.call == noCall && !l.unanswered
	}
	switch {
	case !isIdle && r.leaverWaits:
		return false
	case !isIdle:
		s.leave(p)
	default:
		s.end(p)
		q.quitting = true
	}
	return true
}

// end closes the term of a process, which ends itself.
func (s *state) end(p uint8) {
	q, self := &s.processes[p], s.self(int(p))
	q.term = closed
	q.write = request{kind: endWrite, stage: sent, target: self, valid: s.leases[self] == Live && !q.leaseStale}
}

// endRefused ends a member that the server refuses writes of, if others wait for it.
func (s *state) endRefused(r rules, p uint8) bool {
	q := &s.processes[p]
	if q.status != running || !s.isOpen(int(p)) || q.write.kind != noWrite || q.renew != idle ||
		!s.says[s.self(int(p))].refused || r.staysRefused {
		return false
	}
	drained := false
	for _, l := range q.lives {
		drained = drained || l.drained
		if l.call != noCall || l.unanswered {
			return false
		}
	}
	if !drained && !q.overtaken {
		return false
	}
	s.end(p)
	return true
}

// rejoin gives a process whose term is over another identity. Without a budget for it the process
// ends.
func (s *state) rejoin(r rules, p uint8) bool {
	q := &s.processes[p]
	if q.status != running || q.term != closed || q.quitting || q.write.stage == accepted {
		return false
	}
	if q.life+1 == lives || !spend(&s.left.rejoins) {
		s.leave(p)
		return true
	}
	old := *q
	*q = process{
		refuses: old.refuses,
		status:  running, life: old.life + 1, skipped: old.skipped, view: old.view, viewAge: old.viewAge,
		sights: old.sights, write: old.write, lags: old.lags,
	}
	if r.keepsIdentity {
		q.life = old.life
		if self := s.self(int(p)); s.leases[self] == Ended {
			s.setLease(self, Held)
		}
	}
	return true
}

// leave ends a process. Its requests may be under way.
func (s *state) leave(p uint8) {
	old := s.processes[p]
	q := process{status: gone, life: old.life, viewAge: never}
	if old.renew == sent {
		q.renew, q.renewValid = sent, old.renewValid
	}
	if old.write.stage == sent {
		q.write = old.write
	}
	s.processes[p] = q
}

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
