package handover

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
