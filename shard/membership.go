package shard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// membership is a membership of this process. Group.mu guards its fields, except those that do not
// change.
type membership struct {
	group   *Group
	id      protocol.ID
	term    *lease.Term
	soon    chan struct{}  // requests a renewal before its time
	running sync.WaitGroup // the goroutines that call Warm and Drain, or send a write

	member      protocol.Member
	seen        contents // the contents of the map that member has seen
	leaving     bool
	mapUID      string   // the UID of the map that was seen, which the Lease names
	begun       slot.Set // entries for which Warm has returned, with or without an error
	warm        slot.Set // the entries of begun that the handler holds
	serving     slot.Set // entries that the handler calls for
	resume      slot.Set // the entries of serving whose drain was given up
	warming     []*warming
	failedWarms int                        // in a row
	draining    map[int]context.CancelFunc // the calls of Drain and Resign, by entry
	moving      map[int]lease.Instant      // since when hand-overs of own entries go on
	orphans     map[int]lease.Instant      // since when entries have an ended owner
	writing     bool                       // a write is under way
	failures    int                        // the failed writes in a row
	paused      time.Time                  // no write is sent before this time
}

func newMembership(g *Group, id protocol.ID) *membership {
	return &membership{
		group: g, id: id, member: protocol.Member{Self: id}, soon: make(chan struct{}, 1),
		draining: map[int]context.CancelFunc{},
		moving:   map[int]lease.Instant{}, orphans: map[int]lease.Instant{},
	}
}

// write writes the member into its Lease.
func (m *membership) write(l *coordinationv1.Lease) {
	g := m.group
	r := record{generation: g.o.Generation}
	led := map[string]bool{}
	if leader := g.leader(); leader != nil {
		led = leader.Controllers()
		r.controllers = slices.Sorted(maps.Keys(led))
	}
	reporter, ok := g.handler.(Reporter)
	var inOrder slot.Set
	var loads [slot.Count]float64
	if ok {
		inOrder, loads = reporter.Report()
	}
	g.mu.Lock()
	r.leaving, r.serving, r.joined = m.leaving, m.serving, g.joined
	for n := range m.serving.Slots() {
		if n >= slot.Count && !led[m.seen.name(n)] {
			r.serving.Remove(n)
		}
	}
	r.mapUID = m.mapUID // without its own Lease in the view, or the map, a member inherits nothing
	g.mu.Unlock()
	if ok {
		slots := slotsOf(r.serving)
		r.serving = r.serving.Minus(slots.Minus(inOrder))
		r.loads = map[int]float64{}
		for n := range slotsOf(r.serving).Slots() {
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

// calls are the calls of the handler's methods to make now, in this order.
type calls struct {
	lead  []led
	serve []Slot
	drop  slot.Set
}

// led has the arguments of [Leader.Lead].
type led struct {
	name     string
	versions map[string]string
}

// reconcileLocked compares the work of the handler with the map. It starts and cancels warms and
// drains, and returns the other calls to make.
func (m *membership) reconcileLocked() (c calls) {
	g := m.group
	if g.view.broken == nil && g.view.table != nil {
		m.seeLocked()
	}
	var wanted, drains slot.Set
	for i, e := range m.member.Entries() {
		phase := m.member.Phase(i)
		owned, warm, draining := phase == protocol.Serving, m.warm.Has(i), m.draining[i] != nil
		switch {
		case (owned || phase == protocol.Warming) && !warm:
			wanted.Add(i)
		case phase == protocol.Warming:
			m.member.Warmed(i)
		case owned && (!m.serving.Has(i) || m.resume.Has(i)) && !draining:
			m.serving.Add(i)
			m.resume.Remove(i)
			if i < slot.Count {
				c.serve = append(c.serve, Slot{Number: i, Epoch: e.Epoch, Versions: e.Versions})
			} else {
				c.lead = append(c.lead, led{m.seen.name(i), e.Versions})
			}
		case phase == protocol.Draining && m.serving.Has(i) && !draining:
			drains.Add(i)
		case phase == protocol.Draining && !m.serving.Has(i) && !draining:
			m.member.Drained(i, e.Versions) // this member never called for the entry
		case phase == protocol.Elsewhere && m.serving.Has(i):
			m.term.End(fmt.Errorf("%w: %s was given to %s", lease.ErrLost, m.seen.name(i), e.Owner))
		case phase == protocol.Elsewhere && m.begun.Has(i):
			c.drop.Add(i)
		}
	}
	m.warm, m.begun, c.drop = m.warm.Minus(c.drop), m.begun.Minus(c.drop), slotsOf(c.drop)
	m.startWarmsLocked(wanted)
	m.stopDrainsLocked()
	m.startDrainsLocked(drains)
	return c
}

// seeLocked passes the newest map to the member.
func (m *membership) seeLocked() {
	g := m.group
	before := slices.Clone(m.member.Entries())
	if !m.member.See(g.view.sequence, g.view.entries) {
		return
	}
	m.seen = g.view.contents
	g.noteFailuresLocked(before, m.member.Entries())
	takenBack := map[protocol.ID][]string{}
	for i, e := range m.member.Entries() {
		if i < len(before) && g.noteMoveLocked(before[i], e) {
			takenBack[before[i].Next] = append(takenBack[before[i].Next], g.view.name(i))
		}
		switch {
		case e.Owner != m.id || e.Next == "":
			delete(m.moving, i)
		case i >= len(before) || before[i].Next != e.Next:
			m.moving[i] = g.clock.Now()
		}
	}
	for next, names := range takenBack {
		g.log.Warn("hand-overs are taken back: they were late, or the next owner left or ended",
			"slots", strings.Join(names, ","), "next", next)
	}
	if m.mapUID != string(g.view.table.UID) {
		m.mapUID = string(g.view.table.UID)
		notify(m.soon) // before this member may own anything
	}
}
