package shard

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// task is a call of Warm or Drain for slots, or of Prepare or Resign for one controller.
type task struct {
	entries    slot.Set
	controller string // "" for slots
	cancel     context.CancelFunc
}

// leader returns the handler as a Leader, nil if it leads no controllers.
func (g *Group) leader() Leader {
	leader, _ := g.handler.(Leader)
	return leader
}

// slotsOf returns a set of entries without those of controllers.
func slotsOf(entries slot.Set) slot.Set { return slot.All().Minus(slot.All().Minus(entries)) }

// tasksLocked returns the tasks of a set: one for all slots, and one for each controller.
func (m *membership) tasksLocked(entries slot.Set) (tasks []*task) {
	if slots := slotsOf(entries); !slots.IsEmpty() {
		tasks = append(tasks, &task{entries: slots})
	}
	for n := range entries.Minus(slotsOf(entries)).Slots() {
		tasks = append(tasks, &task{entries: slot.Of(n), controller: m.seen.name(n)})
	}
	return tasks
}

// name returns the slots, or the name of the controller.
func (t *task) name() string { return cmp.Or(t.controller, t.entries.String()) }

func (t *task) warm(ctx context.Context, g *Group) error {
	if t.controller != "" {
		return g.leader().Prepare(ctx, t.controller)
	}
	return g.handler.Warm(ctx, t.entries)
}

func (t *task) drain(ctx context.Context, g *Group) (map[string]string, error) {
	if t.controller != "" {
		return g.leader().Resign(ctx, t.controller)
	}
	return g.handler.Drain(ctx, t.entries)
}

// startWarmsLocked warms entries: slots unless a task for others runs, so that all that come meanwhile
// are one list. A task whose entries are all unwanted is canceled.
func (m *membership) startWarmsLocked(wanted slot.Set) {
	for _, t := range m.warming {
		if t.entries.Minus(wanted) == t.entries {
			t.cancel()
		}
		wanted = wanted.Minus(t.entries)
		if t.controller == "" {
			wanted = wanted.Minus(slot.All())
		}
	}
	g := m.group
	for _, t := range m.tasksLocked(wanted) {
		ctx, cancel := context.WithCancel(m.term.Context())
		t.cancel = cancel
		m.warming = append(m.warming, t)
		m.running.Go(func() {
			defer cancel()
			m.warmOnce(g.label(ctx, "warmer"), t)
		})
	}
}

func (m *membership) warmOnce(ctx context.Context, t *task) {
	g := m.group
	err := t.warm(ctx, g)
	if err != nil && ctx.Err() == nil {
		g.log.Warn("slots cannot be warmed", "slots", t.name(), "error", err)
		lease.Sleep(ctx, g.times.Delay(lease.MaxFailures, nil))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m.warming = slices.DeleteFunc(m.warming, func(other *task) bool { return other == t })
	if err == nil {
		m.warm = m.warm.Union(t.entries)
	}
	notify(g.changed)
}

func (m *membership) isDraining(i int) bool {
	return slices.ContainsFunc(m.draining, func(t *task) bool { return t.entries.Has(i) })
}

// startDrainsLocked drains entries.
func (m *membership) startDrainsLocked(entries slot.Set) {
	g := m.group
	for _, t := range m.tasksLocked(entries) {
		ctx, cancel := context.WithCancel(m.term.Context())
		t.cancel = cancel
		m.draining = append(m.draining, t)
		m.running.Go(func() {
			defer cancel()
			m.drainOnce(g.label(ctx, "drainer"), t)
		})
	}
}

func (m *membership) drainOnce(ctx context.Context, t *task) {
	g := m.group
	versions, err := t.drain(ctx, g)
	if err != nil && ctx.Err() == nil {
		g.log.Warn("slots cannot be drained", "slots", t.name(), "error", err)
		lease.Sleep(ctx, g.times.Delay(lease.MaxFailures, nil))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m.draining = slices.DeleteFunc(m.draining, func(other *task) bool { return other == t })
	if err == nil {
		m.serving, m.resume = m.serving.Minus(t.entries), m.resume.Minus(t.entries)
		for i := range t.entries.Slots() {
			m.member.Drained(i, versions)
		}
	} else {
		m.resume = m.resume.Union(t.entries) // those that stay are served again
	}
	notify(g.changed)
}

// stopDrainsLocked cancels drains of entries that were all taken back.
func (m *membership) stopDrainsLocked() {
	for _, t := range m.draining {
		drains := false
		for i := range t.entries.Slots() {
			drains = drains || m.member.Phase(i) == protocol.Draining
		}
		if !drains {
			t.cancel()
		}
	}
}

// endAll ends all calls of the membership, and reports whether they ended within the grace.
func (m *membership) endAll() bool {
	g := m.group
	g.mu.Lock()
	held := m.warm
	for _, t := range slices.Concat(m.draining, m.warming) {
		t.cancel()
		held = held.Union(t.entries)
	}
	g.mu.Unlock()
	m.running.Wait()
	g.mu.Lock()
	rest := m.tasksLocked(m.serving)
	g.mu.Unlock()
	if !m.drainAll(rest) {
		return false
	}
	g.mu.Lock()
	m.serving, m.warm = slot.Set{}, slot.Set{}
	g.mu.Unlock()
	if held = slotsOf(held); !held.IsEmpty() {
		g.handler.Drop(held)
	}
	return true
}

// drainAll runs tasks at a time, and reports whether all of them ended within the grace.
func (m *membership) drainAll(tasks []*task) bool {
	ctx, cancel := context.WithTimeout(context.Background(), m.group.o.Grace)
	defer cancel()
	var running sync.WaitGroup
	errs := make([]error, len(tasks))
	for i, t := range tasks {
		running.Go(func() { _, errs[i] = t.drain(ctx, m.group) })
	}
	running.Wait()
	return !slices.ContainsFunc(errs, func(err error) bool { return err != nil })
}
