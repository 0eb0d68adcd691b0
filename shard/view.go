package shard

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// observed is a member's Lease as it was last observed.
type observed struct {
	lease   *coordinationv1.Lease    // nil: it is gone, or was never observed
	spec    coordinationv1.LeaseSpec // of the last Lease, also once it is gone
	isGone  bool                     // the server has no such Lease
	version string
	record  record
	since   lease.Instant // the time at which this state was first observed
	length  time.Duration // the time for which a Lease that does not change is held
	ended   bool          // it makes no more calls and writes
	tried   time.Time     // the time at which its end, or the delete of the Lease, has failed last
	serves  lease.Instant // the time since which it has reported slots in order
}

// joinedAt returns the time at which the process of a member joined the group. Later Leases of the
// process are newer, but the program is the same.
func (s *observed) joinedAt() time.Time {
	if s.record.joined.IsZero() {
		return s.lease.CreationTimestamp.Time
	}
	return s.record.joined
}

// entryTimes are the times at which this process first observed the present state of an entry.
type entryTimes struct {
	owner lease.Instant // of the present owner and epoch
	next  lease.Instant // of the present next owner
	// inOrder is the last time at which the present owner reported the entry in order. It is that of
	// owner if that was never the case.
	inOrder lease.Instant
}

// view is the last observed state of the group's Leases.
type view struct {
	version string // the newest version of all Leases
	seen    bool   // the Leases were listed
	members map[protocol.ID]*observed

	table    *coordinationv1.Lease // the Lease with the map; nil without one
	sequence uint64                // counts the versions of the map
	contents
	times  [slot.Entries]entryTimes
	broken error // why the map cannot be read

	foreign      *coordinationv1.Lease // a Lease of the group's name that is no map, as of an election; or nil
	foreignSince lease.Instant         // when it has changed last
}

// list lists the Leases into the view.
func (g *Group) list(ctx context.Context) (version string, err error) {
	g.mu.Lock()
	sentAt := g.view.version
	g.mu.Unlock()
	list, err := g.client.List(ctx)
	if err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	// Without an observation meanwhile the list is newer, even if the server has lost versions.
	isNewest := g.view.version == sentAt
	listed := map[string]bool{}
	for i := range list.Items {
		l := &list.Items[i]
		listed[l.Name] = true
		if isNewest || !lease.IsOlder(l.ResourceVersion, g.versionLocked(l.Name)) {
			g.observeLocked(l.Name, l, l.ResourceVersion)
		}
	}
	for name := range g.namedLocked() {
		if !listed[name] && (isNewest || !lease.IsOlder(list.ResourceVersion, g.versionLocked(name))) {
			g.observeLocked(name, nil, list.ResourceVersion)
		}
	}
	g.view.seen = true
	if isNewest {
		g.view.version = list.ResourceVersion
	}
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
	for _, e := range g.view.entries {
		for _, id := range []protocol.ID{e.Owner, e.Next} {
			if id != "" {
				named[string(id)] = true
			}
		}
	}
	return named
}

// versionLocked returns the version of a Lease in the view, "" without one.
func (g *Group) versionLocked(name string) string {
	if name == g.o.Name && g.view.table != nil {
		return g.view.table.ResourceVersion
	}
	if s := g.view.members[protocol.ID(name)]; s != nil {
		return s.version
	}
	return ""
}

// read reads one Lease into the view. It returns an error if the answer is neither the Lease nor
// that the Lease does not exist.
func (g *Group) read(ctx context.Context, name string) error {
	g.mu.Lock()
	sentAt := g.versionLocked(name)
	g.mu.Unlock()
	l, err := g.client.Get(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.versionLocked(name) == sentAt {
			g.observeLocked(name, nil, sentAt)
		}
		return nil
	case err != nil:
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.versionLocked(name); now == sentAt || !lease.IsOlder(l.ResourceVersion, now) {
		g.observeLocked(name, l, l.ResourceVersion)
	}
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
	return sending{l.ResourceVersion, g.view.version}
}

// wrote puts the Lease of the answer to a write into the view. A version that the server had given
// before the write was sent shows that a backup was restored: others may own by now what this member
// has got since the backup was made, so its membership ends, and all Leases are listed.
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

// observe puts the Lease of an event, or of the answer to a write, into the view. A version that
// is older than the view has no effect.
func (g *Group) observe(l *coordinationv1.Lease, deleted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch version := l.ResourceVersion; {
	case lease.IsOlder(version, g.versionLocked(l.Name)):
	case deleted:
		g.observeLocked(l.Name, nil, version)
	default:
		g.observeLocked(l.Name, l, version)
	}
}

// observeLocked puts a Lease into the view, nil for one that does not exist.
func (g *Group) observeLocked(name string, l *coordinationv1.Lease, version string) {
	if version != "" && !lease.IsOlder(version, g.view.version) {
		g.view.version = version
	}
	notify(g.changed)
	if name == g.o.Name {
		g.observeMapLocked(l)
		return
	}
	id := protocol.ID(name)
	s := g.observedLocked(id)
	isSame := s.isGone
	if l != nil { // it may appear again unchanged, as one whose label was removed does when it is read
		isSame = s.version != "" && equality.Semantic.DeepEqual(s.spec, l.Spec)
		s.spec = l.Spec
	}
	if !isSame {
		s.since = g.clock.Now()
	}
	s.lease, s.isGone, s.version = l, l == nil, version
	if l != nil {
		wasSilent := slotsOf(s.record.serving).IsEmpty()
		s.record = readRecord(l)
		if wasSilent && !slotsOf(s.record.serving).IsEmpty() {
			s.serves = g.clock.Now()
		}
		g.noteLoadsLocked(id, s.record)
		s.length = lengthOf(l, g.o.Duration)
		s.ended = lease.HolderOf(l) != name
	}
	if m := g.present; m != nil && m.id == id {
		if g.state == Joining && g.isJoinedLocked(s) {
			g.state = Member
		}
		if loss := m.term.Loss(l); loss != nil {
			m.term.End(loss)
		}
	}
}

// lengthOf returns the duration of a Lease, which is at least that of the group.
func lengthOf(l *coordinationv1.Lease, least time.Duration) time.Duration {
	if seconds := l.Spec.LeaseDurationSeconds; seconds != nil {
		return max(least, time.Duration(*seconds)*time.Second)
	}
	return least
}

// isName reports whether a Lease can have the name of a member. A map that was written by hand may have
// others, which are no members.
func isName(id protocol.ID) bool { return len(validation.IsDNS1123Subdomain(string(id))) == 0 }

// observedLocked returns the last observed Lease of a member. A member that was never observed is
// held from now on.
func (g *Group) observedLocked(id protocol.ID) *observed {
	s := g.view.members[id]
	if id == "" {
		return &observed{}
	}
	if s == nil {
		s = &observed{since: g.clock.Now(), length: g.o.Duration, ended: !isName(id)}
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
	if before != nil && (l == nil || l.UID != before.UID) {
		isLost = true
		g.view.contents = contents{}
		clear(g.plan.tried)
	}
	if l != nil {
		c, err := decode(l)
		if err == nil && g.view.isAfter(c) {
			err, isLost = errMapRestored, true
		}
		if g.view.broken = err; err == nil {
			g.timeEntriesLocked(c.entries)
			g.view.contents = c
			g.view.sequence++
		}
	}
	if m := g.present; m != nil && isLost && m.mapUID != "" {
		m.term.End(errMapDeleted)
	}
}

// observeForeignLocked returns the Lease if it is a map. A Lease of the group's name that is none, as
// that of an election, is kept in view.foreign, and the result is nil.
func (g *Group) observeForeignLocked(l *coordinationv1.Lease) *coordinationv1.Lease {
	before := g.view.foreign
	g.view.foreign = nil
	if l == nil || l.Labels[groupLabel] != "" || l.Annotations[entriesAnnotation] != "" {
		return l
	}
	if before == nil || !equality.Semantic.DeepEqual(before.Spec, l.Spec) {
		g.view.foreignSince = g.clock.Now()
	}
	g.view.foreign = l
	return nil
}

// isAfter reports whether a map lacks an entry, or a change of an owner, that was seen in it before.
func (v *view) isAfter(c contents) bool {
	for i, e := range v.entries {
		if i >= len(c.entries) || e.Epoch > c.entries[i].Epoch {
			return true
		}
	}
	return false
}

// timeEntriesLocked records the time of the changes that the entries of a map show.
func (g *Group) timeEntriesLocked(entries []protocol.Entry) {
	now := g.clock.Now()
	for i, e := range entries {
		var before protocol.Entry
		if i < len(g.view.entries) {
			before = g.view.entries[i]
		}
		if t := &g.view.times[i]; i >= len(g.view.entries) || before.Owner != e.Owner || before.Epoch != e.Epoch {
			*t = entryTimes{now, now, now}
		} else if before.Next != e.Next {
			t.next = now
		}
	}
}

// isJoinedLocked reports whether a member's Lease names the map.
func (g *Group) isJoinedLocked(s *observed) bool {
	return g.view.table != nil && s.record.mapUID == string(g.view.table.UID)
}

// standingLocked returns the standing of a member.
func (g *Group) standingLocked(id protocol.ID) protocol.Standing {
	if m := g.present; m != nil && m.id == id {
		return protocol.Live
	}
	switch s := g.observedLocked(id); {
	case s.ended:
		return protocol.Ended
	case s.lease == nil || g.expiredLocked(s) >= 0:
		return protocol.Held
	default:
		return protocol.Live
	}
}

// expiredLocked returns the time for which a member's Lease has not changed, beyond its duration.
func (g *Group) expiredLocked(s *observed) time.Duration { return g.clock.Since(s.since) - s.length }

// notify wakes the receiver of a channel that holds one notification.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
