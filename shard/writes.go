package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/lease"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

const (
	// tidies is the time after which the map is written for versions that are needed no more, also
	// without another change.
	tidies = 30 * time.Second
	// mostConflict bounds the wait after a conflict: entries that were shut have nobody meanwhile.
	// It grows with the conflicts in a row, and is random, as several members write at once.
	mostConflict = 200 * time.Millisecond
)

// write is a request that changes a Lease.
type write struct {
	send func(context.Context) error
	// ofMap reports that it writes the map. Refusals of such a write count.
	ofMap bool
	// ends reports that it ends another member.
	ends bool
}

// nextWrite returns the write to send now, or nil.
func (m *membership) nextWrite(l looked) *write {
	m.mu.Lock()
	waits, isLast := m.writing || l.now.Before(m.paused), m.endFailed
	m.mu.Unlock()
	if waits || !m.group.isSeen() {
		return nil
	}
	end := m.endOther(l)
	w := end
	switch {
	case errors.Is(l.broken, errMapRestored):
		if send := m.group.deletion(l.table); send != nil {
			w = &write{send: send}
		}
	case l.broken != nil:
		w = nil
	case end != nil && !isLast:
	case l.table == nil:
		w = cmp.Or(m.createMap(l), end)
	default:
		if w = cmp.Or(m.changeMap(l), end); w == nil {
			w = m.clean(l)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writing = w != nil
	return w
}

func (g *Group) isSeen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.view.seen
}

// send sends a write, and waits a while after a failure, for a moment after a second conflict.
func (m *membership) send(w *write) {
	g := m.group
	ctx := g.label(m.term.Context(), "writer")
	err := w.send(ctx)
	requests := g.requests()
	if err != nil && !lease.IsOutdated(err) {
		requests.Note(ctx, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := g.now()
	m.writing, m.endFailed = false, w.ends && err != nil
	switch {
	case !w.ofMap:
	case err == nil:
		m.refusals = m.refusals.Accepted()
	case isRefusal(err):
		m.refusals = m.refusals.Refused(now)
	case !lease.IsOutdated(err):
		m.refusals = m.refusals.Unanswered(now)
	}
	m.failures++
	switch {
	case err == nil:
		m.failures = 0
	case !lease.IsOutdated(err):
		m.paused = now.Add(g.times.Delay(m.failures, err))
	case m.failures > 1:
		m.paused = now.Add(rand.N(min(mostConflict/8<<min(m.failures-2, 3), mostConflict)))
	}
	notify(g.changed)
}

// isRefusal reports whether the server has refused a write for another reason than a conflict.
func isRefusal(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && !lease.IsOutdated(err) && !apierrors.IsTimeout(err)
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

// endOther returns a write that ends a member whose Lease has not changed for its duration. After a
// failure, the Lease is left alone for the time between renewals, so that other writes are sent.
func (m *membership) endOther(l looked) *write {
	g, turn := m.group, m.turnOf(l)
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, s := range g.view.members {
		if id == m.id || !s.MayEnd(l.now, turn) || l.now.Sub(s.tried) < g.times.Renew {
			continue
		}
		return &write{ends: true, send: g.trying(s, func(ctx context.Context) error {
			return g.end(ctx, id)
		})}
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
			s.tried = g.now()
		}
		return err
	}
}

// end ends a member, at the version of the Lease that has not changed. The Lease is read before:
// where a backup of the server was restored, a renewal may have the version that an earlier one
// had.
func (g *Group) end(ctx context.Context, id handover.ID) error {
	if err := g.read(ctx, string(id)); err != nil {
		return err
	}
	g.mu.Lock()
	s := g.observedLocked(id)
	unchanged, isOver := s.lease, s.MayEnd(g.now(), 0)
	if isOver && s.isGone {
		s.Ended, isOver = true, false
	}
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

// createMap returns a write that creates the map, in place of a Lease of its name that nobody
// holds. It returns nil while members join, or while a member of a deleted map may still call.
func (m *membership) createMap(l looked) *write {
	g := m.group
	for id, p := range l.peers {
		if id != m.id && p.Standing != handover.Ended && l.records[id].Map != "" {
			return nil
		}
	}
	g.mu.Lock()
	foreign, since, err := g.view.foreign, g.view.foreignSince, g.mapErrorLocked()
	g.mu.Unlock()
	made := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.o.Namespace, Name: g.o.Name},
	}
	if foreign != nil {
		if err != nil && l.now.Sub(since) < lengthOf(foreign, g.o.Duration) {
			return &write{send: func(ctx context.Context) error {
				return cmp.Or(g.read(ctx, g.o.Name), err)
			}}
		}
		made = foreign.DeepCopy()
		made.Spec = coordinationv1.LeaseSpec{} // its holder is gone, or it has lost the map
	}
	if !handover.MayMake(l.now.Add(-m.turnToMake(l)), l.first, l.last) {
		return nil
	}
	text := made.Annotations[entriesAnnotation]
	c, err := handover.Decode(text)
	if text != "" && errors.Is(err, handover.ErrFormat) {
		m.term.End(err)
		return nil
	}
	if err != nil { // an election that has had the Lease leaves the map: its epochs go on
		c = handover.Map{Entries: make([]handover.Entry, slot.Count)}
	}
	return &write{ofMap: true, send: func(ctx context.Context) error {
		return m.writeMap(ctx, made, c)
	}}
}

// turnToMake returns the time for which this member waits so that others make the map first.
func (m *membership) turnToMake(l looked) time.Duration {
	return m.turnAmong(l, func(handover.Peer) bool { return true })
}

// changeMap returns a write of the map, nil without a change.
func (m *membership) changeMap(l looked) *write {
	if m.member.Version() != l.sequence || !l.peers[m.id].Joined {
		return nil // what it owns has to be known if this map is deleted
	}
	m.mu.Lock()
	probes := m.refusals.Probes(l.now)
	err := m.refusals.End(l.now, !m.ownedEntries().IsEmpty(), m.hasDrained(), m.group.observedMapAt())
	m.mu.Unlock()
	if err != nil {
		m.term.End(err)
		return nil
	}
	v := handover.View{
		Peers: l.peers, Planner: handover.Planner(l.peers), Moves: m.moves, Weight: l.weight,
		Tidy: m.isUntidy(l.now),
	}
	isPlanner := v.Planner == m.id
	v.Renew = probes || isPlanner && l.now.Sub(m.group.observedMapAt()) >= renewsMap
	if !m.isOwnTurn(l) {
		v = withoutOrphans(v, m.member.Entries())
	}
	if l.isAhead {
		v = withoutRefusing(v, m.member.Entries())
	}
	entries, changed := m.member.Next(v)
	next := handover.Map{Entries: entries, Controllers: l.contents.Controllers}
	if isPlanner {
		var isListed bool
		next, isListed = next.List(offeredBy(l.peers, l.records), l.peers)
		changed = changed || isListed
	}
	if !changed {
		return nil
	}
	table := l.table.DeepCopy()
	return &write{ofMap: true, send: func(ctx context.Context) error {
		return m.writeMap(ctx, table, next)
	}}
}

// isUntidy reports whether the map has had versions of entries that this member has opened for a
// while.
func (m *membership) isUntidy(now time.Time) bool {
	has := false
	for i, e := range m.member.Entries() {
		has = has || e.Owner == m.id && e.Left != handover.Reached && m.member.Phase(i) == handover.Open
	}
	m.untidyAt = handover.Since(m.untidyAt, has, now)
	return has && now.Sub(m.untidyAt) >= tidies
}

// observedMapAt returns when the present map was observed. An own write that was accepted ends
// refusals, so that a later map is that of another member.
func (g *Group) observedMapAt() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.view.tableAt
}

func (m *membership) hasDrained() bool {
	for i := range m.member.Entries() {
		if m.member.Phase(i) == handover.Drained {
			return true
		}
	}
	return false
}

// withoutOrphans returns a view in which entries without a live owner are left to others.
func withoutOrphans(v handover.View, entries []handover.Entry) handover.View {
	peers := make(map[handover.ID]handover.Peer, len(v.Peers))
	for id, p := range v.Peers {
		if p.Standing == handover.Ended {
			p.Standing = handover.Held
		}
		peers[id] = p
	}
	v.Peers = peers
	v.Moves = slices.DeleteFunc(slices.Clone(v.Moves), func(move handover.Move) bool {
		return entries[move.Entry].Owner == ""
	})
	return v
}

// withoutRefusing returns a view in which next owners that take nothing are left alone: the member
// that has named one has seen a later Lease of it, which says that it takes.
func withoutRefusing(v handover.View, entries []handover.Entry) handover.View {
	peers := maps.Clone(v.Peers)
	for _, e := range entries {
		if p, ok := peers[e.Next]; e.Next != "" && ok && p.Standing == handover.Live && !p.Inherits() {
			p.Standing = handover.Held
			peers[e.Next] = p
		}
	}
	v.Peers = peers
	return v
}

// writeMap writes a map into its Lease.
func (m *membership) writeMap(ctx context.Context, l *coordinationv1.Lease, c handover.Map) error {
	g := m.group
	text, err := c.Encode()
	if err != nil {
		return fmt.Errorf("shard: the map cannot be written: %w", err)
	}
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, entriesAnnotation, text)
	metav1.SetMetaDataLabel(&l.ObjectMeta, groupLabel, g.o.Name) // without it, no watch shows the map
	lease.Take(l, holderOfMap(g.o.Name), int32(holdsMapFor/time.Second))
	return g.swap(ctx, l)
}

// clean returns a write that deletes the Lease of a member that ended a while ago, if this member
// plans. It drops members whose Lease is gone from the view.
func (m *membership) clean(l looked) *write {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, s := range g.view.members {
		if id == m.id || l.named[id] || !s.Ended || s.Expired(l.now) < 0 {
			continue
		}
		if s.lease == nil {
			delete(g.view.members, id)
			continue
		}
		mayDelete := handover.Planner(l.peers) == m.id && s.MayDelete(string(id), l.now, false)
		if !mayDelete || l.now.Sub(s.tried) < g.times.Renew {
			continue
		}
		if send := g.deletion(s.lease); send != nil {
			return &write{send: g.trying(s, send)}
		}
	}
	return nil
}

// wakeAfter returns the time after which the loop acts without a change.
func (m *membership) wakeAfter(l looked, next time.Time) time.Duration {
	wait := min(l.next, m.looksEvery(l.now))
	if gathered := m.comesAt.Add(gathers).Sub(l.now); !m.comesAt.IsZero() && gathered > 0 {
		wait = min(wait, gathered)
	}
	if !next.IsZero() {
		wait = min(wait, next.Sub(l.now))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if paused := m.paused.Sub(l.now); paused > 0 {
		wait = min(wait, paused)
	}
	return max(wait, time.Millisecond)
}
