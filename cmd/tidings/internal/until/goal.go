package until

import (
	"maps"
	"slices"
	"sync"
)

// Goal is a condition for all objects of some selections. It may be used from any goroutine.
type Goal struct {
	mu         sync.Mutex // guards the rest
	condition  Condition
	selections []selection
	armed      bool
	done       bool
	reached    chan struct{} // closed when the goal is reached
}

// selection holds the names of the objects of one selection.
type selection struct {
	met   map[string]struct{}
	unmet map[string]string // with the description of each object
}

// NewGoal returns the goal that all objects of a number of selections meet a condition.
func NewGoal(c Condition, selections int) *Goal {
	g := &Goal{condition: c, reached: make(chan struct{})}
	for range selections {
		g.selections = append(g.selections, selection{map[string]struct{}{}, map[string]string{}})
	}
	return g
}

// hidden is the description of values that must not be printed.
const hidden = "hidden"

// Set sets the newest state of an object of the selection at an index. shown is the part of the
// object that may be printed.
func (g *Goal) Set(index int, name string, obj, shown map[string]any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.selections[index]
	delete(s.met, name)
	delete(s.unmet, name)
	met, found := g.condition.Examine(obj)
	if met {
		s.met[name] = struct{}{}
	} else if _, visible := g.condition.Examine(shown); visible == found {
		s.unmet[name] = found
	} else {
		s.unmet[name] = hidden
	}
	g.checkLocked()
}

// Delete removes an object of the selection at an index.
func (g *Goal) Delete(index int, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.selections[index].met, name)
	delete(g.selections[index].unmet, name)
	g.checkLocked()
}

// Arm allows the goal to be reached. Call it after Set for all objects of the initial lists.
func (g *Goal) Arm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = true
	g.checkLocked()
}

// Reached returns a channel that is closed when the goal is reached for the first time.
func (g *Goal) Reached() <-chan struct{} { return g.reached }

func (g *Goal) checkLocked() {
	open := slices.ContainsFunc(g.selections, func(s selection) bool {
		return len(s.unmet) > 0 || len(s.met) == 0 && !g.condition.gone
	})
	if g.armed && !open && !g.done {
		g.done = true
		close(g.reached)
	}
}

// Progress describes how near a goal is.
type Progress struct {
	// Met counts the objects that meet the condition, Unmet those that do not.
	Met, Unmet int
	// Valueless counts the objects without a value at the path of a jsonpath, which are unmet.
	Valueless int
	// Waiting names unmet objects, in order, with their descriptions: "pod shop/web (Ready=False)".
	Waiting []string
	// Empty lists the indexes of the selections without an object, for a condition other than
	// delete.
	Empty []int
}

// Progress returns how near the goal is, with the names of up to limit objects.
func (g *Goal) Progress(limit int) Progress {
	g.mu.Lock()
	defer g.mu.Unlock()
	var p Progress
	for i, s := range g.selections {
		p.Met += len(s.met)
		p.Unmet += len(s.unmet)
		if !g.condition.gone && len(s.met)+len(s.unmet) == 0 {
			p.Empty = append(p.Empty, i)
		}
		for _, found := range s.unmet {
			if found == noValue {
				p.Valueless++
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.unmet)) {
			if len(p.Waiting) == limit {
				break
			}
			if found := s.unmet[name]; found != "" {
				name += " (" + found + ")"
			}
			p.Waiting = append(p.Waiting, name)
		}
	}
	return p
}
