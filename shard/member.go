package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/lease"
	"github.com/tidings-go/tidings/shard/internal/balance"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

const (
	// standsStill is the time after which a loop that has not turned hangs, and a list without a
	// page.
	standsStill = time.Minute
	// looks is the time between two looks at the work and the plan while nothing changes, and soon
	// that while entries move.
	looks, soon = time.Second, 20 * time.Millisecond
	// isBlindAfter is the number of durations without an event or a list after which a member says
	// that it is refused: each member writes three events in one. It would not see what it is to
	// take.
	isBlindAfter = 2
)

// membership is a membership of this process. The loop owns its fields, except those under a lock.
type membership struct {
	group   *Group
	id      handover.ID
	term    *lease.Term
	soon    chan struct{}  // requests a renewal before its time
	running sync.WaitGroup // the goroutines that call Warm, or send a write

	member      handover.Member
	seen        handover.Map // that member has seen
	mapUID      string
	conduct     handover.Conduct
	plans       [2]balance.State // of slots and of controllers
	moves       []handover.Move  // of the last plan
	planUntil   time.Time        // until when it holds, unless something changes
	lastChanges uint64           // those that the last turn saw
	lastPeers   map[handover.ID]handover.Peer
	work        Work
	workAt      time.Time
	movingAt    time.Time // since when an entry is served or shut, and not open or drained; or zero
	warming
	held      Set       // entries that the handler may have
	leftAt    time.Time // the begin of an orderly end; zero before
	stage     handover.Stage
	hasHeirs  bool
	orphansAt time.Time // since when entries have no live owner; zero: all have
	untidyAt  time.Time // since when the map has versions that are needed no more; zero: it has none

	mu       sync.Mutex // guards the rest
	turned   time.Time  // when the loop last turned
	refusals handover.Refusals
	writing  bool      // a write is under way
	failures int       // the failed writes in a row
	paused   time.Time // no write is sent before this time
	// endFailed reports that the last write was to end another member, and has failed: writes of
	// the map come before the next one of this kind.
	endFailed bool

	said said // what the Lease says; Group.mu guards it
}

func newMembership(g *Group, id handover.ID) *membership {
	m := &membership{
		group: g, id: id, member: handover.Member{Self: id},
		soon: make(chan struct{}, 1), turned: g.now(),
	}
	m.said.state = handover.Starting
	return m
}

// loop acts on changes, until the term closes or the member has left.
func (g *Group) loop(ctx context.Context, m *membership) {
	stopped := ctx.Done()
	for {
		wake, isOver := m.turn(stopped == nil)
		if isOver {
			return
		}
		timer := time.NewTimer(wake)
		select {
		case <-g.changed:
		case <-timer.C:
		case <-m.term.Done():
		case <-stopped:
			stopped = nil
		}
		timer.Stop()
	}
}

// turn is one turn of the loop: it looks at the group and at the own work, makes the calls of the
// handler that follow, and sends a write if there is one. It returns the time until the next one.
func (m *membership) turn(leaves bool) (wake time.Duration, isOver bool) {
	g := m.group
	l := m.look()
	m.lastChanges, m.lastPeers = l.changes, l.peers
	if m.see(l); m.term.Remaining() <= 0 {
		return 0, true
	}
	m.observeWork(l.now)
	m.noteWarmed(l.now)
	m.observeConduct(l, leaves)
	next := m.tryToHandOver(l)
	m.act(m.member.Acts())
	m.startWarms(l.now)
	m.plan(l)
	m.publish()
	if m.hasLeft(l) {
		return 0, true
	}
	if write := m.nextWrite(l); write != nil {
		m.running.Go(func() { m.send(write) })
	}
	g.mu.Lock()
	if !l.isSame || !g.cover.isFull {
		g.noteCoverLocked(l.now)
	}
	g.mu.Unlock()
	return m.wakeAfter(l, next), false
}

// looked is what a turn of the loop sees of the group.
type looked struct {
	now      time.Time
	table    *lease.Lease
	sequence uint64
	contents handover.Map
	broken   error
	peers    map[handover.ID]handover.Peer
	records  map[handover.ID]*handover.Record
	named    map[handover.ID]bool // by contents
	isAhead  bool                 // the map is later than the Leases of other members
	changes  uint64               // of what a plan depends on
	isSame   bool                 // there are none since the last turn
	first    time.Time            // the first and the last join
	last     time.Time
	// next is the time until this member may end another one, looks at most.
	next time.Duration
}

// look copies what a turn needs, so that nothing is decided under the lock of the group.
func (m *membership) look() looked {
	g := m.group
	m.mu.Lock()
	m.turned = g.now()
	m.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	l := looked{
		now: g.now(), table: g.view.table, sequence: g.view.sequence, contents: g.view.contents,
		broken: g.view.broken, named: g.view.named, isAhead: g.isMapAheadLocked(),
		changes: g.view.changes,
		records: make(map[handover.ID]*handover.Record, len(g.view.members)),
		first:   g.view.firstJoin, last: g.view.lastJoin, next: looks,
	}
	for id := range g.view.named {
		g.observedLocked(id)
	}
	l.peers = g.peersLocked(l.now)
	l.isSame = l.changes == m.lastChanges && maps.Equal(l.peers, m.lastPeers)
	if l.table == nil {
		l.next = looks / 10 // a map is to be made once nobody has joined for a while
	}
	turn := m.turnOf(l)
	for id, s := range g.view.members {
		l.records[id] = new(s.Record) // a copy: the next event changes the other one
		if left := turn - s.Expired(l.now); left > 0 && !s.Ended {
			l.next = min(l.next, left)
		}
	}
	return l
}

// see takes over the newest map.
func (m *membership) see(l looked) {
	if errors.Is(l.broken, handover.ErrFormat) {
		m.term.End(l.broken)
	}
	if l.table == nil || l.broken != nil {
		return
	}
	before := m.member.Entries()
	if len(m.seen.Controllers) > 0 && len(m.seen.Controllers) <= len(l.contents.Controllers) {
		before = m.replaced(l)
	}
	lost, isNewer := m.member.See(l.sequence, l.contents.Entries)
	if !isNewer {
		return
	}
	m.seen = l.contents
	for _, i := range lost {
		m.term.End(fmt.Errorf("%w: %s was given to %s",
			lease.ErrLost, nameOf(m.seen, i), m.seen.Entries[i].Owner))
	}
	m.countMoves(before, l)
	if uid := string(l.table.UID); m.mapUID != uid {
		m.mapUID = uid
		m.publish()
		notify(m.soon) // before this member may own anything
	}
}

// replaced returns the entries of the seen map, those without an owner whose controller is another
// one now.
func (m *membership) replaced(l looked) []handover.Entry {
	before := slices.Clone(m.member.Entries())
	for i, name := range m.seen.Controllers {
		if n := slot.Count + i; n < len(before) && l.contents.Controllers[i] != name {
			before[n] = handover.Entry{}
		}
	}
	return before
}

// countMoves counts the changes of owners that this process took part in.
func (m *membership) countMoves(before []handover.Entry, l looked) {
	g := m.group
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, e := range m.seen.Entries {
		var was handover.Entry
		if i < len(before) {
			was = before[i]
		}
		switch {
		case was.Owner == e.Owner:
		case e.Owner == m.id:
			g.moves.In++
			last := l.peers[was.Owner]
			if was.Owner != "" && last.Standing == handover.Ended && last.State != handover.Leaving {
				g.moves.Crashes++
			}
		case was.Owner == m.id:
			g.moves.Out++
		}
	}
}

// own returns the numbering of the seen map and the handler.
func (m *membership) own() numbering { return numbering{m.seen.Controllers, m.work.Controllers} }

// observeWork asks the handler how its work goes.
func (m *membership) observeWork(now time.Time) {
	if now.Sub(m.workAt) < m.looksEvery(now) {
		return
	}
	pages := m.work.Pages
	m.work, m.workAt = m.group.handler.Work(), now
	if m.work.Pages != pages {
		m.pageAt = now
	}
	n := m.own()
	for i, e := range m.member.Entries() {
		own := n.own(i)
		if own < 0 || m.member.Phase(i) != handover.Reaching || !m.work.Ready.Has(own) {
			continue
		}
		m.member.Opened(i, e.Epoch)
	}
}

// looksEvery returns the time between two looks at the work: short after entries have been served
// or shut, and longer the longer that leads to nothing.
func (m *membership) looksEvery(now time.Time) time.Duration {
	isMoving := false
	for i := range m.member.Entries() {
		phase := m.member.Phase(i)
		isMoving = isMoving || phase == handover.Reaching || phase == handover.Closed
	}
	if m.movingAt = handover.Since(m.movingAt, isMoving, now); m.movingAt.IsZero() {
		return looks
	}
	return min(max(soon, now.Sub(m.movingAt)/16), looks)
}

// ownedEntries returns the entries that this member owns.
func (m *membership) ownedEntries() (owned Set) {
	for i, e := range m.member.Entries() {
		if e.Owner == m.id {
			owned.Add(i)
		}
	}
	return owned
}

// toHandler returns entries of the map with the numbers of the handler.
func (m *membership) toHandler(entries Set) (own Set) {
	n := m.own()
	for i := range entries.Slots() {
		if j := n.own(i); j >= 0 {
			own.Add(j)
		}
	}
	return own
}

// tryToHandOver goes on with the hand-overs of own entries, and returns when it is to be called
// again.
func (m *membership) tryToHandOver(l looked) (wake time.Time) {
	m.mu.Lock()
	isRefused := m.refusals.Pending()
	m.mu.Unlock()
	state, n := m.conduct.State(), m.own()
	gives := state == handover.Gives || state == handover.Leaving
	for i, e := range m.member.Entries() {
		phase := m.member.Phase(i)
		if e.Owner != m.id || phase == handover.Drained || e.Next == "" && !m.member.Final {
			continue
		}
		var c Calls
		if own := n.own(i); own >= 0 && phase.Calls() {
			c = m.group.handler.Calls(own)
		}
		if isRefused { // it could not give the entry away: what is shut opens again
			if phase != handover.Closed {
				continue
			}
			c.Running = max(c.Running, 1)
		}
		if at := m.member.Try(i, l.now, c, gives); !at.IsZero() && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	}
	return wake
}

// act makes the calls of the handler. It leaves out controllers that the handler does not have.
func (m *membership) act(acts []handover.Action) {
	var shut, unshut Set
	var serve []Owned
	n := m.own()
	for _, a := range acts {
		own := n.own(a.Entry)
		if own < 0 && a.Act == handover.Fill {
			m.unfilled.Add(a.Entry) // somebody else has written it into the map
		}
		if own < 0 {
			continue
		}
		switch a.Act {
		case handover.Fill:
			m.want(a.Entry)
		case handover.Serve:
			serve = append(serve, ownedOf(own, m.seen.Entries[a.Entry]))
		case handover.Shut:
			shut.Add(own)
		case handover.Unshut:
			unshut.Add(own)
		case handover.Drop:
			m.unwant(a.Entry)
		}
	}
	h := m.group.handler
	if len(serve) > 0 {
		h.Serve(serve)
	}
	if !shut.IsEmpty() {
		h.Shut(shut)
	}
	if !unshut.IsEmpty() {
		h.Unshut(unshut)
	}
	m.dropNow()
}

// ownedOf returns what the handler is told of an entry.
func ownedOf(number int, e handover.Entry) Owned {
	o := Owned{Number: number, Epoch: e.Epoch}
	if e.Left != handover.Unknown {
		o.Versions = map[string]string{}
		maps.Copy(o.Versions, e.Versions)
	}
	return o
}

// publish lets the Lease and health say what the member does now.
func (m *membership) publish() {
	now := m.group.now()
	s := said{mapUID: m.mapUID, state: m.conduct.State(), controllers: m.seen.Controllers}
	if s.state == "" {
		s.state = handover.Starting
	}
	m.mu.Lock()
	s.refused = m.refusals.Says(now)
	m.mu.Unlock()
	for i, e := range m.member.Entries() {
		if e.Owner == m.id || e.Next == m.id {
			s.owned.Add(i)
		}
		switch m.member.Phase(i) {
		case handover.Open:
			s.open.Add(i)
		case handover.Closed:
			s.open.Add(i)
			s.shut.Add(i)
		}
	}
	g := m.group
	g.mu.Lock()
	s.refused = s.refused || now.Sub(g.view.heard) >= isBlindAfter*g.o.Duration && g.view.seen
	before := m.said
	m.said = s
	if before.state != s.state || before.refused != s.refused {
		g.view.changes++
	}
	g.mu.Unlock()
	hasOpened := !s.open.Minus(before.open).IsEmpty()
	if before.state != s.state || before.refused != s.refused || before.mapUID != s.mapUID ||
		hasOpened {
		notify(m.soon) // the renewal says so, with the weights
	}
	if before.state != s.state || before.refused != s.refused || before.mapUID != s.mapUID {
		notify(g.changed) // the plan looks at it, too
	}
	if before.state != s.state && before.mapUID != "" {
		g.log.Info("this member says something else about itself",
			"state", s.state, "before", before.state)
	}
}

// standsStill returns why a renewal is not sent.
func (m *membership) standsStill(w Work) error {
	m.mu.Lock()
	stood := m.group.now().Sub(m.turned)
	m.mu.Unlock()
	switch {
	case w.Blocked != nil:
		return fmt.Errorf("the work of this process stands still, and the Lease is left to others: %w",
			w.Blocked)
	case stood >= standsStill:
		return fmt.Errorf("the loop of this member stands still for %v: "+
			"a method of the handler does not return", stood.Round(time.Second))
	}
	return nil
}
