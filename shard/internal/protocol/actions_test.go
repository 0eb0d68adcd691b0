package protocol

import "fmt"

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
	warm
	drain
	writeMap
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
	quit
	tire
	move
	deleteLease
	verbs
)

var verbNames = [verbs]string{
	"receives the answer to its renewal", "receives the answer to its write",
	"'s renewal arrives", "'s write arrives", "a late request arrives", " finds its term over",
	" reads that it has ended", " joins again", " sends the first renewal", " reads the map",
	" reads the lease of", " has warmed", " has drained", " writes the map", " ends", " renews",
	"a tick passes, missed by", " starts", " reads an older map", "a late request is lost",
	" continues", " is prompt again", " begins to lag", " crashes", " is paused", " no longer waits for its renewal",
	" no longer waits for its write", " quits", " finds the hand-over late for", " plans to move", "'s lease is deleted",
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
	case warm, drain, tire:
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
	case warm, drain, tire:
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

// step returns the state after an action, and reports whether the action is possible. Time passes
// only if isCalm.
func (s *state) step(r rules, a action) (after state, ok bool) {
	if !s.isThinkable(a) {
		return after, false
	}
	after = *s
	ok = after.do(r, a)
	return after, ok
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
	case warm, drain, tire:
		return q.status == running && q.view[a.arg]>>3&7 != 0 && (a.verb != tire || s.left.lates > 0)
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
	case begin, proceed, catchUp, lag, crash, pause, quit, lookAtClock, learnEnd, rejoin, deleteLease:
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
	case quit: // possible after a drain: no call runs
		if q.status != running || !s.isOpen(int(a.p)) || q.write.kind != noWrite || !spend(&s.left.quits) {
			return false
		}
		self := s.self(int(a.p))
		q.term, q.quitting = closed, true
		q.write = request{kind: endWrite, stage: sent, target: self, valid: s.leases[self] == Live && !q.leaseStale}
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
		status: running, life: old.life + 1, skipped: old.skipped, view: old.view, viewAge: old.viewAge,
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
		s.observe(int(a.p), s.maps[0], newest)
	case readOldMap:
		if q.viewAge != older && !(r.seesOlderMaps && q.viewAge == newest) {
			return false
		}
		s.observe(int(a.p), s.maps[1], previous)
	case seeLease:
		if !q.sights[a.arg].outdated {
			return false
		}
		q.sights[a.arg] = sightOf(s.leases[a.arg])
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
	m := s.member(int(a.p))
	switch a.verb {
	case warm:
		if m.Phase(slot) != Warming {
			return false
		}
		m.Warmed(slot)
	case drain:
		if m.Phase(slot) != Draining {
			return false
		}
		m.Drained(slot, nil)
	case tire:
		if e := m.entries[slot]; e.Owner != m.Self || e.Next == "" || m.locals[slot].late || !spend(&s.left.lates) {
			return false
		}
		m.Late(slot)
		if r.resumesInDoubt {
			m.locals[slot].drained = false
			m.entries[slot] = m.entries[slot].still()
		}
	default:
		return s.change(r, a, m)
	}
	s.keep(int(a.p), m)
	return true
}

// change sends a change of the map.
func (s *state) change(r rules, a action, m *Member) bool {
	q := &s.processes[a.p]
	if q.write.kind != noWrite {
		return false
	}
	standing := s.standing(r, int(a.p))
	assign := func(int) ID { return fewest(m.entries, standing) }
	var moves []Move
	if a.verb == move {
		moves = []Move{{Entry: int(a.arg % slots), To: identities[a.arg/slots]}}
		if Planner(identities[:], standing) != m.Self || !spend(&s.left.moves) {
			return false
		}
	}
	if r.givesUndrained {
		for i := range m.locals {
			m.locals[i].drained = m.Phase(i) == Draining || m.locals[i].drained
		}
	}
	entries, changed := m.Next(standing, assign, moves)
	if r.plannerGives && len(moves) > 0 && m.entries[moves[0].Entry].Owner != "" && entries[moves[0].Entry].Next != "" {
		entries[moves[0].Entry] = entries[moves[0].Entry].to(moves[0].To, nil)
	}
	w := request{kind: mapWrite, stage: sent, valid: q.viewAge == newest, target: s.self(int(a.p))}
	for i, e := range entries {
		w.table[i] = cellOf(e)
		rises := e.Owner != m.entries[i].Owner
		s.broken = s.broken || rises != (e.Epoch == 1) // the epochs of a view are 0
	}
	if !changed || a.verb == move && entries[moves[0].Entry].Next == m.entries[moves[0].Entry].Next &&
		!r.plannerGives {
		return false
	}
	q.write = w
	return true
}

// fewest returns the live member with the fewest entries, the first one of several.
func fewest(entries []Entry, standing func(ID) Standing) (best ID) {
	least := slots + 1
	for _, id := range identities {
		n := 0
		for _, e := range entries {
			if e.Owner == id {
				n++
			}
		}
		if standing(id) == Live && (n < least || n == least && id < best) {
			best, least = id, n
		}
	}
	return best
}
