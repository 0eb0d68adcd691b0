package queue

// maxReasons bounds the different reasons that a key keeps until its next run.
const maxReasons = 8

// Counted is a reason, and the number of times that it was given.
type Counted[R comparable] struct {
	Reason R
	Count  int
}

// reason is an element of the list of an entry.
type reason[R comparable] struct {
	reason R
	count  uint32
	next   uint32
}

func (s *schedule[R]) note(e *entry, r Counted[R]) {
	last, n := nobody, 0
	for i := e.reasons; i != nobody; i = s.reasons.at(i).next {
		if known := s.reasons.at(i); known.reason == r.Reason {
			known.count += uint32(r.Count)
			return
		}
		last = i
		n++
	}
	if n == maxReasons {
		e.untold.add(r.Count)
		return
	}
	i := s.reasons.obtain()
	*s.reasons.at(i) = reason[R]{r.Reason, uint32(r.Count), nobody}
	if last == nobody {
		e.reasons = i
	} else {
		s.reasons.at(last).next = i
	}
}

// takeReasons appends the reasons of an entry to buf, in the order in which they came.
func (s *schedule[R]) takeReasons(e *entry, buf []Counted[R]) []Counted[R] {
	for i := e.reasons; i != nobody; {
		r := s.reasons.at(i)
		buf = append(buf, Counted[R]{r.reason, int(r.count)})
		next := r.next
		s.reasons.release(i)
		i = next
	}
	e.reasons, e.untold = nobody, 0
	return buf
}
