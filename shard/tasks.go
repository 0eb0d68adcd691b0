package shard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// warming is a call of Warm for slots, or of Prepare for one controller.
type warming struct {
	entries    slot.Set
	controller string // "" for slots
	cancel     context.CancelFunc
}

// leader returns the handler as a Leader, or nil if it leads no controllers.
func (g *Group) leader() Leader {
	leader, _ := g.handler.(Leader)
	return leader
}

// slotsOf returns a set of entries without those of controllers.
func slotsOf(entries slot.Set) slot.Set { return slot.All().Minus(slot.All().Minus(entries)) }

// startWarmsLocked warms controllers one by one. It warms slots unless other slots are being warmed,
// so that all slots that come meanwhile need one list. It cancels a call of which no entry is wanted
// any more.
func (m *membership) startWarmsLocked(wanted slot.Set) {
	for _, w := range m.warming {
		if w.entries.Minus(wanted) == w.entries {
			w.cancel()
		}
		wanted = wanted.Minus(w.entries)
		if w.controller == "" {
			wanted = wanted.Minus(slot.All())
		}
	}
	if slots := slotsOf(wanted); !slots.IsEmpty() {
		m.startWarmLocked(&warming{entries: slots})
	}
	for i := range wanted.Minus(slot.All()).Slots() {
		m.startWarmLocked(&warming{entries: slot.Of(i), controller: m.seen.name(i)})
	}
}

func (m *membership) startWarmLocked(w *warming) {
	ctx, cancel := context.WithCancel(m.term.Context())
	w.cancel = cancel
	m.warming, m.begun = append(m.warming, w), m.begun.Minus(w.entries)
	m.running.Go(func() {
		defer cancel()
		m.warmOnce(m.group.label(ctx, "warmer"), w)
	})
}

func (m *membership) warmOnce(ctx context.Context, w *warming) {
	g := m.group
	var err error
	switch leader := g.leader(); {
	case w.controller == "":
		err = g.handler.Warm(ctx, w.entries)
	case leader == nil:
		err = errNoLeader
	default:
		err = leader.Prepare(ctx, w.controller)
	}
	if err != nil && ctx.Err() == nil {
		g.log.Warn("slots cannot be warmed", "slots", cmp.Or(w.controller, w.entries.String()), "error", err)
		g.mu.Lock()
		m.failedWarms++
		failures := m.failedWarms
		g.mu.Unlock()
		lease.Sleep(ctx, g.times.LongDelay(failures, err))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m.warming = slices.DeleteFunc(m.warming, func(other *warming) bool { return other == w })
	m.begun = m.begun.Union(w.entries)
	if err == nil {
		m.warm, m.failedWarms = m.warm.Union(w.entries), 0
	}
	notify(g.changed)
}

// startDrainsLocked drains each entry separately: a call that takes long delays only its own slot.
func (m *membership) startDrainsLocked(entries slot.Set) {
	for i := range entries.Slots() {
		name := m.seen.name(i)
		ctx, cancel := context.WithCancel(m.term.Context())
		m.draining[i] = cancel
		m.running.Go(func() {
			defer cancel()
			m.drainOnce(m.group.label(ctx, "drainer"), i, name)
		})
	}
}

func (m *membership) drainOnce(ctx context.Context, i int, name string) {
	g := m.group
	versions, err := g.drain(ctx, i, name)
	if err != nil && ctx.Err() == nil {
		g.log.Warn("a slot cannot be drained", "slot", name, "error", err)
		lease.Sleep(ctx, g.times.Delay(lease.MaxFailures, nil))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(m.draining, i)
	if err == nil {
		m.serving.Remove(i)
		m.resume.Remove(i)
		m.member.Drained(i, versions)
	} else {
		m.resume.Add(i) // if the entry stays, it is served again
	}
	notify(g.changed)
}

// drain drains an entry. name is the name of the controller if the entry is not a slot.
func (g *Group) drain(ctx context.Context, i int, name string) (map[string]string, error) {
	if i >= slot.Count {
		return g.leader().Resign(ctx, name)
	}
	return g.handler.Drain(ctx, slot.Of(i))
}

// stopDrainsLocked cancels the drains of entries that were taken back.
func (m *membership) stopDrainsLocked() {
	for i, cancel := range m.draining {
		if m.member.Phase(i) != protocol.Draining {
			cancel()
		}
	}
}

// endAll ends all calls of the membership. It returns an error if they did not end within the grace.
func (m *membership) endAll() error {
	g := m.group
	g.mu.Lock()
	held := m.begun
	for _, cancel := range m.draining {
		cancel()
	}
	for _, w := range m.warming {
		w.cancel()
		held = held.Union(w.entries)
	}
	g.mu.Unlock()
	m.running.Wait()
	if err := m.drainAll(); err != nil {
		return err
	}
	g.mu.Lock()
	m.serving, m.warm, m.begun = slot.Set{}, slot.Set{}, slot.Set{}
	g.mu.Unlock()
	if held = slotsOf(held); !held.IsEmpty() {
		g.handler.Drop(held)
	}
	return nil
}

// drainAll drains all served entries, within the grace. It returns the first error, with the number of
// the others.
func (m *membership) drainAll() error {
	g := m.group
	g.mu.Lock()
	serving, seen := m.serving, m.seen
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), g.o.Grace)
	defer cancel()
	var running sync.WaitGroup
	var errs [slot.Entries]error
	for i := range serving.Slots() {
		running.Go(func() {
			if _, err := g.drain(ctx, i, seen.name(i)); err != nil {
				errs[i] = fmt.Errorf("%s: %w", seen.name(i), err)
			}
		})
	}
	running.Wait()
	failed := slices.DeleteFunc(errs[:], func(err error) bool { return err == nil })
	if len(failed) > 1 {
		return fmt.Errorf("%w; %d more", failed[0], len(failed)-1)
	}
	return cmp.Or(failed...)
}
