package protocol

// urgent has the actions that a process that neither lags nor is paused takes before time passes.
var urgent = func() (actions []action) {
	for _, a := range all {
		if a.verb < tick && a.verb != warm && a.verb != drain && !a.verb.isGlobal() {
			actions = append(actions, a)
		}
	}
	return actions
}()

func (s *state) isCalm(r rules) bool {
	for _, a := range urgent {
		if q := &s.processes[a.p]; q.status == running && !q.lags {
			if _, ok := s.step(r, a); ok {
				return false
			}
		}
	}
	return true
}

// tick advances all clocks except for those in the set, which miss the tick.
func (s *state) tick(missed uint8) bool {
	for p := range s.processes {
		q := &s.processes[p]
		if missed>>p&1 != 0 {
			if q.skipped > 0 || s.left.slow == 0 || q.status != running && q.status != paused {
				return false
			}
			q.skipped = 2
			continue
		}
		q.skipped -= min(q.skipped, 1)
		if q.status != running && q.status != paused {
			continue
		}
		if q.term == open {
			q.age = min(q.age+1, fenceTicks)
			q.ranOut = q.ranOut || q.age == fenceTicks
		}
		if q.renew == sent || q.renew == accepted {
			q.renewAge = min(q.renewAge+1, fenceTicks)
		}
		for i := range q.sights {
			if q.sights[i].standing == Live {
				q.sights[i].unchanged = min(q.sights[i].unchanged+1, leaseTicks)
			}
		}
	}
	return true
}
