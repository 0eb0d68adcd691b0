package shard

import (
	"fmt"
	"time"

	"github.com/tidings-go/tidings/shard/internal/handover"
)

// observeConduct decides what this member says about itself.
func (m *membership) observeConduct(l looked, leaves bool) {
	f := handover.Facts{
		Leaving: leaves, Started: m.work.Started, Lacks: len(m.work.Lacks), Least: -1, Hung: m.work.Hung,
		Unfilled: m.isUnfilled(), Failed: m.failedLists, Filled: m.filledLists,
	}
	m.hasHeirs = false
	for id, p := range l.peers {
		if id == m.id || p.Standing != handover.Live {
			continue
		}
		m.hasHeirs = m.hasHeirs || p.State == handover.Takes && !p.Refused || p.State == handover.Starting
		if p.State != handover.Takes && p.State != handover.Declines && p.State != handover.Gives {
			continue
		}
		if n := len(l.records[id].Lacks); f.Least < 0 || n < f.Least {
			f.Least = n
		}
	}
	before := m.conduct.State()
	m.conduct = m.conduct.Next(l.now, f)
	state := m.conduct.State()
	if state != before && (state == handover.Leaving || state == handover.Gives) {
		m.member.Hurry()
	}
	if !leaves {
		return
	}
	if m.leftAt.IsZero() {
		m.leftAt = l.now
		m.group.setState(Leaving)
	}
	m.stage = handover.StageOf(m.leftAt, m.group.o.Grace, l.now, m.hasHeirs)
	m.member.Final = m.stage > handover.Handing
}

func (g *Group) setState(s State) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state = s
}

// hasLeft reports whether the orderly end is over: this member owns nothing, or what it owns is
// idle and nobody is about to take it.
func (m *membership) hasLeft(l looked) bool {
	if m.leftAt.IsZero() {
		return false
	}
	if m.stage == handover.Over {
		return true
	}
	owned := m.ownedEntries()
	if owned.IsEmpty() {
		return !m.isWriting()
	}
	if m.stage == handover.Handing {
		return false
	}
	var running Set
	isTaken, n := false, m.own()
	for i := range owned.Slots() {
		e := m.member.Entries()[i]
		isTaken = isTaken || e.Ready && l.peers[e.Next].Inherits()
		if own := n.own(i); own >= 0 && m.group.handler.Calls(own).Running > 0 {
			running.Add(own)
		}
	}
	if !running.IsEmpty() {
		m.group.handler.Abort(running, ErrLeaving)
	}
	return running.IsEmpty() && !isTaken && !m.isWriting()
}

func (m *membership) isWriting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writing
}

// endAll ends all calls of the membership, and drops what the handler has. It returns an error that
// names the entries whose calls did not end within the grace.
func (m *membership) endAll() error {
	g := m.group
	began, own := m.leftAt, m.toHandler(m.ownedEntries())
	if began.IsZero() {
		began = g.now()
	}
	m.cancelWarms()
	g.handler.Shut(own)
	g.handler.Abort(own, ErrLeaving)
	for {
		var left Set
		for i := range own.Slots() {
			if g.handler.Calls(i).Running > 0 {
				left.Add(i)
			}
		}
		if left.IsEmpty() {
			break
		}
		if g.now().Sub(began) >= g.o.Grace {
			return fmt.Errorf("calls of %s", namesOf(handover.Map{Controllers: m.work.Controllers}, left))
		}
		time.Sleep(soon)
	}
	m.running.Wait()
	if !m.held.IsEmpty() {
		g.handler.Drop(m.toHandler(m.held))
	}
	return nil
}
