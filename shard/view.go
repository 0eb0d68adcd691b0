package shard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/lease"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// observed is a member's Lease as it was observed last.
type observed struct {
	handover.Sight
	lease   *coordinationv1.Lease    // nil: it is gone, or was never observed
	spec    coordinationv1.LeaseSpec // of the last Lease, also once it is gone
	text    string                   // of the record
	version string
	isGone  bool      // the server has no such Lease
	tried   time.Time // the time at which its end, or the delete of the Lease, has failed last
}

// entryTimes are the times at which this process first observed the present state of an entry.
type entryTimes struct {
	owner time.Time // of the present owner and epoch
	next  time.Time // of the present next owner
}

// view is the last observed state of the group's Leases.
type view struct {
	lease.View
	followed string // that of the last event or list: answers to writes and reads may be ahead of it
	seen     bool   // the Leases were listed
	members  map[handover.ID]*observed

	table    *coordinationv1.Lease // the Lease with the map; nil without one
	tableAt  time.Time             // when its present version was observed; own writes among them
	sequence uint64                // counts the versions of the map
	contents handover.Map          // replaced, never changed
	named    map[handover.ID]bool  // the members that contents names
	changes  uint64                // of what a plan depends on
	heard    time.Time             // when the watch or a list last brought something
	times    [slot.Entries]entryTimes
	broken   error // why the map cannot be read

	foreign      *coordinationv1.Lease // a Lease of the group's name that is no map; nil without one
	foreignSince time.Time             // when it has changed last

	firstJoin, lastJoin time.Time // the first and the last of those that come together
}

// now returns a time that also passes while the machine is suspended.
func (g *Group) now() time.Time { return g.began.at.Add(g.clock.Since(g.began.instant)) }

// list lists the Leases into the view.
func (g *Group) list(ctx context.Context) (version string, err error) {
	g.mu.Lock()
	sentAt := g.view.Newest()
	g.mu.Unlock()
	list, err := g.client.List(ctx)
	if err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.view.List(list, sentAt, g.namedLocked())
	g.view.seen, g.view.heard, g.view.followed = true, g.now(), list.ResourceVersion
	notify(g.changed)
	return list.ResourceVersion, nil
}

// namedLocked returns the names of the Leases that exist in the view, or that the map names.
func (g *Group) namedLocked() map[string]bool {
	named := map[string]bool{}
	if g.view.table != nil {
		named[g.o.Name] = true
	}
	for id, s := range g.view.members {
		if s.lease != nil {
			named[string(id)] = true
		}
	}
	for id := range g.view.named {
		named[string(id)] = true
	}
	return named
}

// membersOf returns the members that a map names.
func membersOf(m handover.Map) map[handover.ID]bool {
	named := map[handover.ID]bool{}
	for _, e := range m.Entries {
		named[e.Owner], named[e.Next] = true, true
	}
	delete(named, "")
	return named
}

// read reads one Lease into the view. It returns an error if the answer is neither the Lease nor
// that the Lease does not exist.
func (g *Group) read(ctx context.Context, name string) error {
	g.mu.Lock()
	sentAt := g.view.Version(name)
	g.mu.Unlock()
	l, err := g.client.Get(ctx, name)
	if apierrors.IsNotFound(err) {
		l, err = nil, nil
	}
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.view.Read(name, l, sentAt)
	return nil
}

// sending has versions before a write is sent.
type sending struct {
	written string // that of the Lease that is written, "" for a new one
	newest  string // that of the view
}

func (g *Group) sending(l *coordinationv1.Lease) sending {
	g.mu.Lock()
	defer g.mu.Unlock()
	return sending{l.ResourceVersion, g.view.Newest()}
}

// wrote puts the Lease of the answer to a write into the view. A version that the server had given
// before the write was sent shows that a backup was restored: others may own by now what this
// member has got since the backup was made, so its membership ends, and all Leases are listed.
func (g *Group) wrote(l *coordinationv1.Lease, before sending) {
	isUnchanged := l.ResourceVersion == before.written
	if isUnchanged || !lease.IsOlder(l.ResourceVersion, before.newest) {
		g.observe(l, false)
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.view.seen = false
	if m := g.present; m != nil {
		m.term.End(errRestored)
	}
	g.follower.Restart()
}

// hear puts the Lease of an event into the view.
func (g *Group) hear(l *coordinationv1.Lease, deleted bool) {
	g.observe(l, deleted)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.view.heard, g.view.followed = g.now(), l.ResourceVersion
}

// isMapAheadLocked reports whether the map is later than the Leases of other members in the view.
func (g *Group) isMapAheadLocked() bool {
	table, followed := g.view.table, g.view.followed
	return table != nil && followed != table.ResourceVersion &&
		lease.IsOlder(followed, table.ResourceVersion)
}

// observe puts the Lease of an event, or of the answer to a write, into the view.
func (g *Group) observe(l *coordinationv1.Lease, deleted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.view.Event(l, deleted)
}

// putLocked is the Put of the view.
func (g *Group) putLocked(o lease.Observation) {
	name, l := o.Name, o.Lease
	if name == g.o.Name {
		g.observeMapLocked(l)
		g.view.changes++
		notify(g.changed)
		return
	}
	s := g.observedLocked(handover.ID(name))
	now, before := g.now(), *s
	isSame := s.isGone
	if l != nil { // it may appear again unchanged, as one whose label was removed does when it is read
		isSame = s.version != "" && equality.Semantic.DeepEqual(s.spec, l.Spec)
		s.spec = l.Spec
	}
	if !isSame {
		s.Since = now
	}
	s.lease, s.Exists, s.isGone, s.version = l, l != nil, l == nil, o.Version
	if l != nil {
		if text := l.Annotations[memberAnnotation]; text != s.text || before.lease == nil {
			s.text, s.Record = text, readRecord(l)
		}
		s.Length = lengthOf(l, g.o.Duration)
		s.Held = lease.HolderOf(l) == name
		s.Ended = !s.Held
		if before.version == "" && s.Held {
			if now.Sub(g.view.lastJoin) > g.o.Duration {
				g.view.firstJoin = now
			}
			g.view.lastJoin = now
		}
	}
	g.observeOwnLocked(handover.ID(name), s)
	// A renewal that says nothing new is no reason to act: the loop looks at the times by itself.
	if s.text != before.text || s.Exists != before.Exists || s.Held != before.Held ||
		s.Ended != before.Ended || before.Standing(now) != handover.Live {
		g.view.changes++
		notify(g.changed)
	}
}

// observeOwnLocked ends the membership if its Lease shows that others have ended it.
func (g *Group) observeOwnLocked(id handover.ID, s *observed) {
	m := g.present
	if m == nil || m.id != id {
		return
	}
	if g.state == Joining && g.isJoinedLocked(s) {
		g.state = Member
	}
	if loss := m.term.Loss(s.lease); loss != nil {
		m.term.End(loss)
	}
}

// lengthOf returns the duration of a Lease, which is at least that of the group.
func lengthOf(l *coordinationv1.Lease, least time.Duration) time.Duration {
	if seconds := l.Spec.LeaseDurationSeconds; seconds != nil {
		return max(least, time.Duration(*seconds)*time.Second)
	}
	return least
}

// isName reports whether a Lease can have the name of a member. A map that was written by hand may
// have others, which are no members.
func isName(id handover.ID) bool { return len(validation.IsDNS1123Subdomain(string(id))) == 0 }

// observedLocked returns the last observed Lease of a member. A member that was never observed is
// held from now on.
func (g *Group) observedLocked(id handover.ID) *observed {
	s := g.view.members[id]
	if s == nil {
		s = &observed{}
		s.Ended, s.Since, s.Length = !isName(id), g.now(), g.o.Duration
		g.view.members[id] = s
	}
	return s
}

// observeMapLocked puts a map into the view. A map that is deleted, replaced or restored ends the
// membership that has seen it: entries may have been given away meanwhile.
func (g *Group) observeMapLocked(l *coordinationv1.Lease) {
	if l = g.observeForeignLocked(l); l == nil && g.view.table == nil {
		return
	}
	before, isLost := g.view.table, false
	g.view.table, g.view.broken = l, nil
	if before == nil || l == nil || l.ResourceVersion != before.ResourceVersion {
		g.view.tableAt = g.now()
	}
	if before != nil && (l == nil || l.UID != before.UID) {
		isLost = true
		g.view.contents, g.view.named = handover.Map{}, nil
	}
	if l != nil {
		c, err := handover.Decode(l.Annotations[entriesAnnotation])
		if err == nil && g.view.contents.IsAfter(c) {
			err, isLost = errMapRestored, true
		}
		if g.view.broken = err; err == nil {
			g.timeEntriesLocked(c.Entries)
			g.view.contents, g.view.named = c, membersOf(c)
			g.view.sequence++
		}
	}
	if m := g.present; m != nil && m.said.mapUID != "" && isLost {
		m.term.End(errMapDeleted)
	}
}

// observeForeignLocked returns the Lease if it is the group's map. Another one of the group's name,
// as that of an election or one without a map, is kept in view.foreign, and the result is nil.
func (g *Group) observeForeignLocked(l *coordinationv1.Lease) *coordinationv1.Lease {
	before := g.view.foreign
	g.view.foreign = nil
	if l == nil || l.Annotations[entriesAnnotation] != "" && !g.isForeign(l) {
		return l
	}
	if before == nil || !equality.Semantic.DeepEqual(before.Spec, l.Spec) {
		g.view.foreignSince = g.now()
	}
	g.view.foreign = l
	return nil
}

// isForeign reports whether a Lease of the group's name has another holder than the group.
func (g *Group) isForeign(l *coordinationv1.Lease) bool {
	holder := lease.HolderOf(l)
	return holder != "" && holder != holderOfMap(g.o.Name)
}

// timeEntriesLocked records the time of the changes that the entries of a map show.
func (g *Group) timeEntriesLocked(entries []handover.Entry) {
	now := g.now()
	for i, e := range entries {
		var before handover.Entry
		if i < len(g.view.contents.Entries) {
			before = g.view.contents.Entries[i]
		}
		isNew := i >= len(g.view.contents.Entries) || before.Owner != e.Owner || before.Epoch != e.Epoch
		if t := &g.view.times[i]; isNew {
			*t = entryTimes{now, now}
		} else if before.Next != e.Next {
			t.next = now
		}
	}
}

// isJoinedLocked reports whether a member's Lease names the map.
func (g *Group) isJoinedLocked(s *observed) bool {
	return g.view.table != nil && s.Record.Map == string(g.view.table.UID)
}

// mapErrorLocked returns why there is no map that members act on; nil if there is one, or none yet.
func (g *Group) mapErrorLocked() error {
	if f := g.view.foreign; f != nil && g.isForeign(f) {
		return fmt.Errorf("%w, held by %s: the group begins once that one is released or runs out; or "+
			"give the group another Name", errForeign, lease.HolderOf(f))
	}
	return g.view.broken
}

// peersLocked returns the members that have not ended long ago, as others see them.
func (g *Group) peersLocked(now time.Time) map[handover.ID]handover.Peer {
	peers := make(map[handover.ID]handover.Peer, len(g.view.members))
	for id, s := range g.view.members {
		p := handover.Peer{
			Standing: s.Standing(now), State: s.Record.State, Refused: s.Record.Refused,
			Joined: g.isJoinedLocked(s),
		}
		if s.lease != nil {
			p.Created = s.lease.CreationTimestamp.Time
		}
		if m := g.present; m != nil && m.id == id {
			// It takes for itself once it takes for others: they would clear what it is given
			// before.
			p.Standing, p.Refused = handover.Live, p.Refused || m.said.refused
			if m.said.state != handover.Takes {
				p.State = m.said.state
			}
		}
		peers[id] = p
	}
	return peers
}

// liveOf returns the live members, in order.
func liveOf(peers map[handover.ID]handover.Peer) []handover.ID {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(peers)), func(id handover.ID) bool {
		return peers[id].Standing != handover.Live
	})
}

// notify wakes the receiver of a channel that holds one notification.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
