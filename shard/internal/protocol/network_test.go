package protocol

// network applies the actions that concern the requests of a process.
func (s *state) network(r rules, a action) bool {
	q := &s.processes[a.p]
	self := s.self(int(a.p))
	switch a.verb {
	case applyRenewal:
		if q.renew != sent {
			return false
		}
		valid := q.renewValid
		if valid {
			s.setLease(self, Live)
		}
		q.renew = refused
		if valid {
			q.renew, q.leaseStale = accepted, false
		}
		if q.status == gone {
			q.renew, q.renewValid = idle, false
		} else if q.status == running && !q.lags {
			s.renewed(r, a.p)
		}
	case applyWrite:
		if q.write.stage != sent {
			return false
		}
		q.write.stage = s.apply(q.write)
		q.write.valid = false
		if q.status == gone {
			q.write = request{}
		} else if q.status == running && !q.lags {
			s.written(a.p)
		}
	case loseRenewal:
		if q.renew != sent || q.status != running || s.late.kind != noWrite || !spend(&s.left.losses) {
			return false
		}
		s.late = request{kind: renewal, target: self, valid: q.renewValid}
		q.renew, q.renewAge, q.renewValid = idle, 0, false
	case loseWrite:
		if q.write.stage != sent || q.status != running || s.late.kind != noWrite || !spend(&s.left.losses) {
			return false
		}
		s.late = q.write
		q.write = request{}
		if q.quitting {
			s.leave(a.p)
		}
	case answerRenewal:
		if q.renew < accepted || q.status != running {
			return false
		}
		s.renewed(r, a.p)
	case answerWrite:
		if q.write.stage < accepted || q.status != running {
			return false
		}
		s.written(a.p)
	}
	return true
}

// apply makes a write arrive at the server, and returns its stage afterwards.
func (s *state) apply(w request) (stage uint8) {
	switch {
	case w.kind == endWrite && s.leases[w.target] == deleted: // not found, for the duration of the Lease
	case !w.valid:
		return refused
	}
	if w.kind == mapWrite {
		s.setMap(w.table)
	} else {
		s.setLease(w.target, Ended)
	}
	return accepted
}

// applyLate makes a request arrive whose sender no longer waits.
func (s *state) applyLate(w request) {
	if w.kind != renewal {
		s.apply(w)
		return
	}
	if !w.valid {
		return
	}
	s.setLease(w.target, Live)
	if q := &s.processes[w.target%processes]; q.life == w.target/processes && q.status != gone {
		q.leaseStale = true
	}
}

// renewed processes the answer to a renewal.
func (s *state) renewed(r rules, p uint8) {
	q := &s.processes[p]
	answer, age := q.renew, q.renewAge
	q.renew, q.renewAge, q.renewValid = idle, 0, false
	if answer == refused { // the process reads the Lease
		q.leaseStale = false
		if s.leases[s.self(int(p))] >= Ended {
			q.term = closed
		}
		return
	}
	if r.fenceFromAnswer {
		age = 0
	}
	switch {
	case q.term == noTerm && age < fenceTicks:
		q.term, q.age = open, age
	case q.term == noTerm:
		q.term, q.ranOut = closed, true
	case q.term == open && (q.age < fenceTicks || r.renewsAfterRunningOut):
		q.age = min(q.age, age)
		q.ranOut = q.ranOut || q.age == fenceTicks
	}
}

// written processes the answer to a write.
func (s *state) written(p uint8) {
	q := &s.processes[p]
	w := q.write
	switch {
	case w.kind == mapWrite && w.stage == accepted && !w.seen:
		s.observe(int(p), w.table, w.age)
	case w.kind == endWrite && w.target == s.self(int(p)) && q.quitting:
		q.write = request{}
		s.leave(p)
		return
	case w.kind == endWrite: // after a refused write, the process reads the Lease
		q.sights[w.target] = sightOf(s.leases[w.target])
	}
	q.write = request{}
}
