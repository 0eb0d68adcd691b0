package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// loop acts on changes, until the term closes or the member has left.
func (g *Group) loop(ctx context.Context, m *membership) {
	stopped := ctx.Done()
	var leaveBy time.Time
	for {
		g.mu.Lock()
		if stopped == nil && !m.leaving {
			m.leaving, g.state, leaveBy = true, Leaving, time.Now().Add(g.o.Grace)
			notify(m.soon)
		}
		c := m.reconcileLocked()
		over := m.term.Remaining() <= 0 ||
			m.leaving && (!m.isNeededLocked() || !time.Now().Before(leaveBy))
		var send func(context.Context) error
		if !over {
			send = m.nextWriteLocked()
		}
		g.watchCoverLocked()
		wake := time.After(m.wakeAfterLocked())
		g.mu.Unlock()
		m.make(c)
		if over {
			return
		}
		if send != nil {
			m.running.Go(func() { m.send(send) })
		}
		select {
		case <-g.changed:
		case <-wake:
		case <-m.term.Done():
		case <-stopped:
			stopped = nil
		}
	}
}

// make makes the handler's calls.
func (m *membership) make(c calls) {
	for _, l := range c.lead {
		m.group.leader().Lead(l.name, l.versions)
	}
	if len(c.serve) > 0 {
		m.group.handler.Serve(c.serve)
	}
	if len(c.lead)+len(c.serve) > 0 {
		notify(m.soon) // the renewal reports that they are in order
	}
	if !c.drop.IsEmpty() {
		m.group.handler.Drop(c.drop)
	}
}

// isNeededLocked reports whether a member that leaves has to wait: it owns slots that another
// member can take.
func (m *membership) isNeededLocked() bool {
	g := m.group
	heirs := slices.DeleteFunc(g.membersLocked(), func(id protocol.ID) bool {
		return id == m.id || g.observedLocked(id).record.leaving
	})
	for i, e := range m.seen.entries {
		can := func(id protocol.ID) bool { return g.canOwnLocked(m.seen, id, i) }
		if e.Owner == m.id && slices.ContainsFunc(heirs, can) {
			return true
		}
	}
	return m.writing
}

// wakeAfterLocked returns the time after which the loop acts without a change.
func (m *membership) wakeAfterLocked() time.Duration {
	g := m.group
	wait, turn := g.o.Duration/15, m.turnLocked()
	if paused := time.Until(m.paused); paused > 0 {
		wait = min(wait, paused)
	}
	for _, s := range g.view.members {
		if left := turn - g.expiredLocked(s); !s.ended && left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// turnLocked returns the time for which this member waits so that others act first on a change
// that all observe. The others are the members that act on the map and have a lower identity.
func (m *membership) turnLocked() time.Duration {
	rank := 0
	for _, id := range m.group.joinedLocked() {
		if id < m.id {
			rank++
		}
	}
	return min(time.Duration(rank)*m.group.o.Duration/60, m.group.o.Duration/15)
}

// joinedLocked returns the live members whose Leases name the map, in order.
func (g *Group) joinedLocked() []protocol.ID {
	return slices.DeleteFunc(g.membersLocked(), func(id protocol.ID) bool {
		return !g.isJoinedLocked(g.observedLocked(id))
	})
}

// plannerLocked returns the member that plans. Members that have not joined do not plan, as they
// do not act on the map, and members that leave plan only if all do: they may wait for their last calls.
func (g *Group) plannerLocked() protocol.ID {
	joined := g.joinedLocked()
	staying := slices.DeleteFunc(slices.Clone(joined), func(id protocol.ID) bool {
		return g.observedLocked(id).record.leaving
	})
	if len(staying) > 0 {
		joined = staying
	}
	return protocol.Planner(joined, g.standingLocked)
}

// membersLocked returns the live members, in order.
func (g *Group) membersLocked() (live []protocol.ID) {
	for id := range g.view.members {
		if g.standingLocked(id) == protocol.Live {
			live = append(live, id)
		}
	}
	slices.Sort(live)
	return live
}

// send sends a write, and waits a while after a failure that is not the first conflict.
func (m *membership) send(write func(context.Context) error) {
	g := m.group
	ctx := g.label(m.term.Context(), "writer")
	err := write(ctx)
	requests := g.requests()
	if err != nil && !lease.IsOutdated(err) {
		requests.Note(ctx, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m.writing = false
	m.failures++
	switch {
	case err == nil:
		m.failures = 0
	case m.failures > 1 || !lease.IsOutdated(err):
		m.paused = time.Now().Add(g.times.Delay(m.failures, err))
	}
	notify(g.changed)
}

// nextWriteLocked returns the write to send now, or nil.
func (m *membership) nextWriteLocked() func(context.Context) error {
	g := m.group
	isRestored := g.view.broken == errMapRestored
	if m.writing || !g.view.seen || g.view.broken != nil && !isRestored || time.Now().Before(m.paused) {
		return nil
	}
	var write func(context.Context) error
	if isRestored {
		write = g.deletion(g.view.table)
	} else if write = m.endLocked(); write == nil {
		if write = m.changeLocked(); write == nil {
			write = m.cleanLocked()
		}
	}
	m.writing = write != nil
	return write
}

// deletion returns a write that deletes a Lease, nil if only finalizers keep it. The Lease is read
// afterwards: a watch may show its end late, or there are finalizers.
func (g *Group) deletion(l *coordinationv1.Lease) func(context.Context) error {
	if l.DeletionTimestamp != nil {
		return nil
	}
	return func(ctx context.Context) error {
		err := g.client.Delete(ctx, l.Name, l.ResourceVersion)
		return cmp.Or(g.read(ctx, l.Name), err)
	}
}

// endLocked returns a write that ends a member whose Lease has not changed for its duration. After a
// failure, the Lease is left alone for the time between renewals, so that other writes are sent.
func (m *membership) endLocked() func(context.Context) error {
	g, turn := m.group, m.turnLocked()
	for id, s := range g.view.members {
		if s.ended || id == m.id || g.expiredLocked(s) < turn || time.Since(s.tried) < g.times.Renew {
			continue
		}
		return g.trying(s, func(ctx context.Context) error { return g.end(ctx, id) })
	}
	return nil
}

// trying returns a write of a member's Lease that sets the time at which it has failed.
func (g *Group) trying(s *observed, write func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		err := write(ctx)
		if err != nil {
			g.mu.Lock()
			defer g.mu.Unlock()
			s.tried = time.Now()
		}
		return err
	}
}

// end ends a member, at the version of the Lease that has not changed. The Lease is read before: where a
// backup of the server was restored, a renewal may have the version that an earlier one had.
func (g *Group) end(ctx context.Context, id protocol.ID) error {
	if err := g.read(ctx, string(id)); err != nil {
		return err
	}
	g.mu.Lock()
	s := g.observedLocked(id)
	unchanged, isOver := s.lease, g.expiredLocked(s) >= 0
	s.ended = s.ended || isOver && s.isGone
	isOver = isOver && !s.ended
	g.mu.Unlock()
	if !isOver {
		return nil // it was renewed, or is ended, or its Lease may be gone since a moment ago
	}
	ended := unchanged.DeepCopy()
	lease.Release(ended)
	g.log.Info("a member is ended: its lease has run out", "member", id)
	return g.swap(ctx, ended)
}

// swap writes a Lease at the version that it has, or creates it if it has none. If the write fails,
// the Lease is read.
func (g *Group) swap(ctx context.Context, l *coordinationv1.Lease) error {
	before, send := g.sending(l), g.client.Update
	if before.written == "" {
		send = g.client.Create
	}
	got, err := send(ctx, l)
	if err != nil {
		g.read(ctx, l.Name) //nolint:errcheck // the watch sends it too
		return err
	}
	g.wrote(got, before)
	return nil
}

// errForeign is the error of a Lease of the group's name that is not its map.
var errForeign = errors.New("the lease of the group's name is that of something else, such as an election")

// createLocked returns a write that creates the map, in place of a Lease of its name that nobody holds. It returns nil while a member of a deleted map
// may still call, as it is not known to have ended.
func (m *membership) createLocked() func(context.Context) error {
	g := m.group
	for id, s := range g.view.members {
		if id != m.id && !s.ended && s.record.mapUID != "" {
			return nil
		}
	}
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: g.o.Namespace, Name: g.o.Name}}
	if f := g.view.foreign; f != nil {
		if holder := lease.HolderOf(f); holder != "" && g.clock.Since(g.view.foreignSince) < lengthOf(f, g.o.Duration) {
			return func(ctx context.Context) error {
				return cmp.Or(g.read(ctx, g.o.Name), fmt.Errorf("%w, held by %s: the group begins when that one is "+
					"released or runs out; or give the group another Name", errForeign, holder))
			}
		}
		l = f.DeepCopy()
		l.Spec = coordinationv1.LeaseSpec{}
	}
	return func(ctx context.Context) error {
		return g.writeMap(ctx, l, contents{entries: make([]protocol.Entry, slot.Count)})
	}
}

// changeLocked returns a write of the map, nil without a change.
func (m *membership) changeLocked() func(context.Context) error {
	g := m.group
	if g.view.table == nil {
		return m.createLocked()
	}
	if m.member.Version() != g.view.sequence {
		return nil
	}
	m.findLateLocked()
	heirs, moves := m.planLocked()
	assign := func(i int) protocol.ID { return heirs[i] }
	entries, changed := m.member.Next(g.standingLocked, assign, moves)
	c := contents{entries, g.view.controllers}
	if m.plansLocked() {
		changed = g.listControllersLocked(&c) || changed
	}
	if !changed {
		return nil
	}
	l := g.view.table.DeepCopy()
	return func(ctx context.Context) error {
		if err := g.writeMap(ctx, l, c); err != nil {
			return err
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, move := range moves {
			g.plan.tried[move] = time.Now()
		}
		return nil
	}
}

// writeMap writes a map into its Lease.
func (g *Group) writeMap(ctx context.Context, l *coordinationv1.Lease, c contents) error {
	text, err := encode(c)
	if err != nil {
		return fmt.Errorf("shard: the map cannot be written: %w", err)
	}
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, entriesAnnotation, text)
	metav1.SetMetaDataLabel(&l.ObjectMeta, groupLabel, g.o.Name) // without it, no watch shows the map
	return g.swap(ctx, l)
}

// findLateLocked takes back the hand-overs that take too long, or whose next owner leaves.
func (m *membership) findLateLocked() {
	g := m.group
	for i, since := range m.moving {
		next := g.observedLocked(m.member.Entries()[i].Next)
		if g.clock.Since(since) >= g.o.HandOver || next.record.leaving {
			m.member.Late(i)
		}
	}
}

// cleanLocked returns a write that deletes the Lease of a member that ended a while ago, if this
// member plans. It drops members whose Lease is gone from the view.
func (m *membership) cleanLocked() func(context.Context) error {
	g := m.group
	named := map[protocol.ID]bool{m.id: true}
	for _, e := range m.member.Entries() {
		named[e.Owner], named[e.Next] = true, true
	}
	for id, s := range g.view.members {
		if named[id] || !s.ended || g.expiredLocked(s) < 0 {
			continue
		}
		if s.lease == nil {
			delete(g.view.members, id)
			continue
		}
		if !m.plansLocked() || time.Since(s.tried) < g.times.Renew {
			continue
		}
		if write := g.deletion(s.lease); write != nil {
			return g.trying(s, write)
		}
	}
	return nil
}
