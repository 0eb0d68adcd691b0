package shard

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// membership is one of this process. Group.mu guards its fields, but for those that do not change.
type membership struct {
	group   *Group
	id      protocol.ID
	term    *lease.Term
	soon    chan struct{}  // asks for a renewal before its time
	running sync.WaitGroup // the goroutines that call Warm and Drain, or send a write

	member   protocol.Member
	leaving  bool
	mapUID   string   // that the Lease names
	warm     slot.Set // what the handler holds
	serving  slot.Set // what the handler calls for
	resume   slot.Set // of those, the ones whose drain was given up
	warming  *task    // nil if none runs; one list for all slots that come
	draining []*task
	moving   map[int]lease.Instant // hand-overs of own slots, since when
	orphans  map[int]lease.Instant // slots of ended members, since when
	writing  bool                  // a write is on its way
	failures int                   // of writes in a row
	paused   time.Time             // no write before
}

// task is a call of Warm or Drain.
type task struct {
	slots  slot.Set
	cancel context.CancelFunc
}

func newMembership(g *Group, id protocol.ID) *membership {
	return &membership{
		group: g, id: id, member: protocol.Member{Self: id}, soon: make(chan struct{}, 1),
		moving: map[int]lease.Instant{}, orphans: map[int]lease.Instant{},
	}
}

// write writes the member into its Lease.
func (m *membership) write(l *coordinationv1.Lease) {
	g := m.group
	r := record{generation: g.o.Generation}
	reporter, ok := g.handler.(Reporter)
	var inOrder slot.Set
	var loads [slot.Count]float64
	if ok {
		inOrder, loads = reporter.Report()
	}
	g.mu.Lock()
	r.leaving, r.serving = m.leaving, m.serving
	if g.view.table != nil {
		r.mapUID = string(g.view.table.UID)
	}
	g.mu.Unlock()
	if ok {
		r.serving = r.serving.Minus(r.serving.Minus(inOrder))
		r.loads = map[int]float64{}
		for n := range r.serving.Slots() {
			if load := round(loads[n]); load > 0 {
				r.loads[n] = load
			}
		}
	}
	lease.Take(l, string(m.id), g.times.Seconds())
	r.write(l)
}

// renewal is a change of the own Lease.
func (m *membership) renewal(l *coordinationv1.Lease) error {
	m.write(l)
	return nil
}

// calls are what the handler is to do now. They are made in this order.
type calls struct {
	serve []Slot
	drop  slot.Set
}

// reconcileLocked brings the handler in line with what the map says, and returns the calls that
// are left to make.
func (m *membership) reconcileLocked() (c calls) {
	g := m.group
	if g.view.broken == nil && g.view.table != nil {
		m.seeLocked()
	}
	var wanted, drains slot.Set
	for i, e := range m.member.Entries() {
		phase := m.member.Phase(i)
		owned, warm := phase == protocol.Serving, m.warm.Has(i)
		switch {
		case (owned || phase == protocol.Warming) && !warm:
			wanted.Add(i)
		case phase == protocol.Warming:
			m.member.Warmed(i)
		case owned && (!m.serving.Has(i) || m.resume.Has(i)) && !m.isDraining(i):
			m.serving.Add(i)
			m.resume.Remove(i)
			c.serve = append(c.serve, Slot{Number: i, Epoch: e.Epoch, Versions: e.Versions})
		case phase == protocol.Draining && m.serving.Has(i) && !m.isDraining(i):
			drains.Add(i)
		case phase == protocol.Draining && !m.serving.Has(i) && !m.isDraining(i):
			m.member.Drained(i, e.Versions) // it never called for it
		case phase == protocol.Elsewhere && m.serving.Has(i):
			m.term.End(fmt.Errorf("%w: slot %d was given to %s", lease.ErrLost, i, e.Owner))
		case phase == protocol.Elsewhere && warm:
			c.drop.Add(i)
		}
	}
	m.warm = m.warm.Minus(c.drop)
	m.startWarmLocked(wanted)
	m.stopDrainsLocked()
	if !drains.IsEmpty() {
		m.startDrainLocked(drains)
	}
	return c
}

// seeLocked takes the newest map.
func (m *membership) seeLocked() {
	g := m.group
	before := slices.Clone(m.member.Entries())
	if !m.member.See(g.view.sequence, g.view.entries) {
		return
	}
	for i, e := range m.member.Entries() {
		if i < len(before) {
			g.noteMoveLocked(i, before[i], e)
		}
		switch {
		case e.Owner != m.id || e.Next == "":
			delete(m.moving, i)
		case i >= len(before) || before[i].Next != e.Next:
			m.moving[i] = g.clock.Now()
		}
	}
	if m.mapUID != string(g.view.table.UID) {
		m.mapUID = string(g.view.table.UID)
		notify(m.soon) // before this member may own anything
	}
}

func (m *membership) isDraining(i int) bool {
	return slices.ContainsFunc(m.draining, func(t *task) bool { return t.slots.Has(i) })
}

// startWarmLocked warms slots, unless a call for others runs. A call whose slots are all unwanted is
// canceled.
func (m *membership) startWarmLocked(wanted slot.Set) {
	if t := m.warming; t != nil {
		if t.slots.Minus(wanted) == t.slots {
			t.cancel()
		}
		return
	}
	if wanted.IsEmpty() {
		return
	}
	g := m.group
	ctx, cancel := context.WithCancel(m.term.Context())
	t := &task{wanted, cancel}
	m.warming = t
	m.running.Go(func() {
		defer cancel()
		err := g.handler.Warm(g.label(ctx, "warmer"), t.slots)
		if err != nil && ctx.Err() == nil {
			g.log.Warn("slots cannot be warmed", "slots", t.slots.String(), "error", err)
			lease.Sleep(ctx, g.times.Delay(lease.MaxFailures, nil))
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		m.warming = nil
		if err == nil {
			m.warm = m.warm.Union(t.slots)
		}
		notify(g.changed)
	})
}

// startDrainLocked drains slots.
func (m *membership) startDrainLocked(slots slot.Set) {
	g := m.group
	ctx, cancel := context.WithCancel(m.term.Context())
	t := &task{slots, cancel}
	m.draining = append(m.draining, t)
	m.running.Go(func() {
		defer cancel()
		versions, err := g.handler.Drain(g.label(ctx, "drainer"), t.slots)
		if err != nil && ctx.Err() == nil {
			g.log.Warn("slots cannot be drained", "slots", t.slots.String(), "error", err)
			lease.Sleep(ctx, g.times.Delay(lease.MaxFailures, nil))
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		m.draining = slices.DeleteFunc(m.draining, func(other *task) bool { return other == t })
		if err == nil {
			m.serving, m.resume = m.serving.Minus(t.slots), m.resume.Minus(t.slots)
			for i := range t.slots.Slots() {
				m.member.Drained(i, versions)
			}
		} else {
			m.resume = m.resume.Union(t.slots) // those that stay are served again
		}
		notify(g.changed)
	})
}

// stopDrainsLocked cancels drains of slots that were all taken back.
func (m *membership) stopDrainsLocked() {
	for _, t := range m.draining {
		drains := false
		for i := range t.slots.Slots() {
			drains = drains || m.member.Phase(i) == protocol.Draining
		}
		if !drains {
			t.cancel()
		}
	}
}

// drainAll ends all calls of the membership, and reports whether they ended within the grace.
func (m *membership) drainAll() bool {
	g := m.group
	g.mu.Lock()
	for _, t := range m.draining {
		t.cancel()
	}
	held := m.warm
	if m.warming != nil {
		m.warming.cancel()
		held = held.Union(m.warming.slots)
	}
	g.mu.Unlock()
	m.running.Wait()
	g.mu.Lock()
	rest := m.serving
	g.mu.Unlock()
	if !rest.IsEmpty() {
		ctx, cancel := context.WithTimeout(context.Background(), g.o.Grace)
		defer cancel()
		if _, err := g.handler.Drain(ctx, rest); err != nil {
			return false
		}
	}
	g.mu.Lock()
	m.serving, m.warm = slot.Set{}, slot.Set{}
	g.mu.Unlock()
	if !held.IsEmpty() {
		g.handler.Drop(held)
	}
	return true
}
