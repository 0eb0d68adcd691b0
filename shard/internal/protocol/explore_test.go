package protocol

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"strings"
)

// exploration is a breadth-first search. It keeps a fingerprint of 64 bits of each state, and the
// states of its frontier.
type exploration struct {
	rules rules
	begin state
	limit int // the most states; 0 means no limit

	seed   maphash.Seed
	table  []uint32 // 1 + the number of a state, by fingerprint; 0 is free
	prints []uint64
	parent []uint32
	// fair is the state that follows in a run without faults: one in which paused processes
	// continue, and one in which they do not while another runs. A state without a following
	// state is covered.
	fair [2][]uint32
}

// covered marks a state in which a run without faults may end.
const covered = ^uint32(0)

func explore(r rules, b budget, limit int) *exploration {
	return &exploration{
		rules: r, begin: start(b), limit: limit, seed: maphash.MakeSeed(), table: make([]uint32, 1<<16),
	}
}

// find returns the number of a state, and reports whether it is new.
func (x *exploration) find(s *state, parent uint32) (n uint32, isNew bool) {
	print := maphash.Comparable(x.seed, *s)
	mask := uint64(len(x.table) - 1)
	at := print & mask
	for ; x.table[at] != 0; at = (at + 1) & mask {
		if n = x.table[at] - 1; x.prints[n] == print {
			return n, false
		}
	}
	n = uint32(len(x.prints))
	x.table[at] = n + 1
	x.prints, x.parent = append(x.prints, print), append(x.parent, parent)
	if 2*len(x.prints) > len(x.table) {
		x.grow()
	}
	return n, true
}

func (x *exploration) grow() {
	x.table = make([]uint32, 2*len(x.table))
	mask := uint64(len(x.table) - 1)
	for n, print := range x.prints {
		at := print & mask
		for x.table[at] != 0 {
			at = (at + 1) & mask
		}
		x.table[at] = uint32(n + 1)
	}
}

// run explores all states. It returns a counterexample, or "".
func (x *exploration) run() string {
	x.find(&x.begin, 0)
	frontier := []state{x.begin}
	for first := uint32(0); len(frontier) > 0; {
		var next []state
		for i := range frontier {
			at := first + uint32(i)
			if problem := x.expand(&frontier[i], at, &next); problem != "" {
				return problem
			}
			if x.limit > 0 && len(x.prints) > x.limit {
				return ""
			}
		}
		first += uint32(len(frontier))
		frontier = next
	}
	return x.progress()
}

// expand adds the states that follow a state.
func (x *exploration) expand(s *state, at uint32, next *[]state) string {
	fair := [2]uint32{covered, covered}
	isCovered, isCalm := s.isCovered(), s.isCalm(x.rules)
	wants := [2]bool{!isCovered, !isCovered}
	for _, a := range all {
		if a.verb == tick && !isCalm {
			continue
		}
		after, ok := s.step(x.rules, a)
		if !ok {
			continue
		}
		n, isNew := x.find(&after, at)
		problem := illegalStep(s, a, &after)
		if isNew {
			*next = append(*next, after)
			problem = cmp.Or(problem, after.violation())
		}
		if problem != "" {
			return x.counterexample(problem, at, a)
		}
		for i := range fair {
			if wants[i] && s.isFair(a, i == 0) {
				fair[i], wants[i] = n, false
			}
		}
	}
	for i := range fair {
		x.fair[i] = append(x.fair[i], fair[i])
	}
	return ""
}

// isCovered reports whether each slot has a member that calls, or no process is left.
func (s *state) isCovered() bool {
	left := false
	for p := range s.processes {
		left = left || s.processes[p].status == running || s.processes[p].status == paused
	}
	for slot := range slots {
		calls := false
		for p := range s.processes {
			calls = calls || s.processes[p].status == running && s.calls(p, slot)
		}
		if !calls {
			return !left
		}
	}
	return true
}

// isFair reports whether an action belongs to a run without faults. The first such action of all
// is its next step.
func (s *state) isFair(a action, proceeds bool) bool {
	awake, asleep, lags := false, false, false
	for p := range s.processes {
		awake = awake || s.processes[p].status == running
		asleep = asleep || s.processes[p].status == paused
		lags = lags || s.processes[p].lags && s.processes[p].status == running
	}
	if lags {
		return a.verb == catchUp
	}
	if asleep && (proceeds || !awake) {
		return a.verb == proceed
	}
	return a.verb <= tick && (a.verb != tick || a.arg == 0)
}

// progress searches for a run without faults that leaves a slot uncovered for ever. It returns that
// run, or "".
func (x *exploration) progress() string {
	for i, next := range x.fair {
		done := make([]uint8, len(next)) // 1: on the present path, 2: leads to a covered state
		for begin := range next {
			at := uint32(begin)
			for at != covered && done[at] == 0 {
				done[at] = 1
				at = next[at]
			}
			if at != covered && done[at] == 1 {
				return x.trace(fmt.Sprintf("a slot stays without owner in run %d without faults", i),
					x.path(uint32(begin)), i)
			}
			for at := uint32(begin); at != covered && done[at] == 1; at = next[at] {
				done[at] = 2
			}
		}
	}
	return ""
}

// path returns the numbers of the states that lead to one.
func (x *exploration) path(at uint32) []uint32 {
	path := []uint32{at}
	for ; at != 0; path = append([]uint32{at}, path...) {
		at = x.parent[at]
	}
	return path
}

func (x *exploration) counterexample(problem string, at uint32, last action) string {
	text, s := x.replay(x.path(at))
	after, _ := s.step(x.rules, last)
	return fmt.Sprintf("%s, %d steps after the start:\n%s%v\n%v\n", problem, strings.Count(text, "\n  ✦ ")+1,
		text, "  ✦ "+last.String(), &after)
}

// trace prints a path, and 60 steps of a run without faults after it.
func (x *exploration) trace(problem string, path []uint32, run int) string {
	text, s := x.replay(path)
	text += "  without faults:\n"
	for range 60 {
		for _, a := range all {
			after, ok := s.step(x.rules, a)
			if ok && s.isFair(a, run == 0) {
				s = after
				text += fmt.Sprintf("  ✦ %v\n%v\n", a, &s)
				break
			}
		}
	}
	return problem + ":\n" + text
}

// replay repeats the actions of a path, which it finds by the fingerprints of its states.
func (x *exploration) replay(path []uint32) (text string, s state) {
	s = x.begin
	text = fmt.Sprintf("\n%v\n", &s)
	for _, n := range path[1:] {
		for _, a := range all {
			after, ok := s.step(x.rules, a)
			if ok && maphash.Comparable(x.seed, after) == x.prints[n] {
				s = after
				text += fmt.Sprintf("  ✦ %v\n%v\n", a, &s)
				break
			}
		}
	}
	return text, s
}

// violation returns the rule that a state violates, as text, or "".
func (s *state) violation() string {
	if s.broken {
		return "an epoch does not rise with each change of an owner"
	}
	for p := range s.processes {
		if !s.isOpen(p) {
			continue
		}
		self := s.self(p)
		if s.leases[self] == Ended {
			return fmt.Sprintf("%s has ended, and its own term is open", identities[self])
		}
		if s.processes[p].ranOut {
			return fmt.Sprintf("the term of %s was over, and is open again", identities[self])
		}
		for slot := range slots {
			if s.calls(p, slot) && s.maps[0][slot].entry().Owner != identities[self] {
				return fmt.Sprintf("%s calls for slot %d, which another owns", identities[self], slot)
			}
		}
	}
	return ""
}

// illegalStep returns the rule that a step violates, as text, or "".
func illegalStep(before *state, a action, after *state) string {
	for id, standing := range before.leases {
		if standing == Ended && after.leases[id] != Ended {
			return fmt.Sprintf("the ended %s comes back", identities[id])
		}
	}
	if before.maps == after.maps {
		return ""
	}
	w := before.late
	if a.verb == applyWrite {
		w = before.processes[a.p].write
	}
	for slot := range slots {
		old, changed := before.maps[0][slot].entry(), after.maps[0][slot].entry()
		if problem := before.illegal(identities[w.target], old, changed); problem != "" {
			return fmt.Sprintf("slot %d: %s", slot, problem)
		}
	}
	return ""
}

// illegal returns the reason why a member must not make a change of an entry, "" if it may.
func (s *state) illegal(writer ID, old, changed Entry) string {
	owned := old.Owner != "" && s.leases[number(old.Owner)-1] != Ended
	switch {
	case old.Owner != changed.Owner && owned && old.Owner != writer:
		return fmt.Sprintf("%s gives away what is of %s, which has not ended", writer, old.Owner)
	case old.Owner != changed.Owner && owned && (old.Next != changed.Owner || !old.Ready):
		return fmt.Sprintf("%s gives away without a hand-over", writer)
	case old.Owner != changed.Owner:
		return ""
	case changed.Ready && !old.Ready && (changed.Next != writer || old.Next != writer):
		return fmt.Sprintf("%s says that %s is ready", writer, changed.Next)
	case old.Next != "" && changed.Next != old.Next && owned && writer != old.Owner:
		return fmt.Sprintf("%s takes back what is of %s", writer, old.Owner)
	}
	return ""
}
