package until

import (
	"maps"
	"slices"
	"sync"
)

// Goal is a condition for all objects of some selections.
type Goal struct {
	mu        sync.Mutex // guards the rest
	condition Condition
	parts     []part
	open      int // parts that are not met
	armed     bool
	reached   chan struct{} // closed once the goal is reached
	done      bool
}

// part is what is known of one selection.
type part struct {
	name  string
	met   map[string]struct{} // objects that meet the condition
	unmet map[string]struct{} // objects that do not
	is    bool                // the part meets the goal
}

// NewGoal returns the goal that the objects of each of the named selections meet a
// condition.
func NewGoal(c Condition, selections ...string) *Goal {
	g := &Goal{condition: c, reached: make(chan struct{})}
	for _, name := range selections {
		p := part{name: name, met: map[string]struct{}{}, unmet: map[string]struct{}{}, is: c.gone}
		if !p.is {
			g.open++
		}
		g.parts = append(g.parts, p)
	}
	return g
}

// Set tells of the newest state of an object of the selection with an index.
func (g *Goal) Set(selection int, name string, obj map[string]any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.parts[selection]
	if g.condition.Met(obj) {
		delete(p.unmet, name)
		p.met[name] = struct{}{}
	} else {
		delete(p.met, name)
		p.unmet[name] = struct{}{}
	}
	g.judgeLocked(p)
}

// Delete tells that an object of the selection with an index is gone.
func (g *Goal) Delete(selection int, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &g.parts[selection]
	delete(p.met, name)
	delete(p.unmet, name)
	g.judgeLocked(p)
}

// Arm says that all objects that there were in the beginning have been told: from now on
// the goal can be reached.
func (g *Goal) Arm() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = true
	g.closeLocked()
}

// Reached returns a channel that is closed when the goal was reached for the first time.
func (g *Goal) Reached() <-chan struct{} { return g.reached }

func (g *Goal) judgeLocked(p *part) {
	is := len(p.unmet) == 0 && (g.condition.gone || len(p.met) > 0)
	switch {
	case is && !p.is:
		g.open--
	case !is && p.is:
		g.open++
	}
	p.is = is
	g.closeLocked()
}

func (g *Goal) closeLocked() {
	if g.armed && g.open == 0 && !g.done {
		g.done = true
		close(g.reached)
	}
}

// Progress is how near a goal is.
type Progress struct {
	// Met counts the objects that meet the condition, Unmet those that do not.
	Met, Unmet int
	// Waiting names objects that do not, at most so many as were asked for, in order.
	Waiting []string
	// Empty names the selections that have no object yet, where the goal needs one.
	Empty []string
}

// Progress returns how near the goal is and names up to limit objects that do not meet
// the condition.
func (g *Goal) Progress(limit int) Progress {
	g.mu.Lock()
	defer g.mu.Unlock()
	var p Progress
	for _, part := range g.parts {
		p.Met += len(part.met)
		p.Unmet += len(part.unmet)
		if !g.condition.gone && len(part.met)+len(part.unmet) == 0 {
			p.Empty = append(p.Empty, part.name)
		}
		names := slices.Sorted(maps.Keys(part.unmet))
		p.Waiting = append(p.Waiting, names[:min(len(names), limit-len(p.Waiting))]...)
	}
	return p
}
