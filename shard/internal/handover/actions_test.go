package handover

import (
	"fmt"
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
