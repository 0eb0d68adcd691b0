package shard

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings/shard/internal/handover"
)

// State is the present activity of a [Group].
type State string

// The states.
const (
	// Joining: this process is not yet, or no longer, a member that entries are given to.
	Joining State = "Joining"
	// Member: it owns the entries that the map gives it.
	Member State = "Member"
	// Leaving: its entries are handed over.
	Leaving State = "Leaving"
	// Stopped: it has left.
	Stopped State = "Stopped"
)

// Moves counts the changes of owners that this process took part in, since Join.
type Moves struct {
	// In and Out count the slots and controllers that this process has received and given away.
	In  uint64 `json:"in"`
	Out uint64 `json:"out"`
	// Crashes counts those of In that had an owner which had ended without handing them over.
	Crashes uint64 `json:"crashes"`
}

// MemberHealth describes a member, as this process has observed it.
type MemberHealth struct {
	Identity   string `json:"identity"`
	Generation string `json:"generation,omitzero"`
	// Live members renew their Lease. Entries of others are about to be given away.
	Live bool `json:"live"`
	// Does is what it says of itself: starting, takes, declines, gives or leaving.
	Does string `json:"does"`
	// Joining members have not seen the map. Refused ones cannot write it.
	Joining bool `json:"joining,omitzero"`
	Refused bool `json:"refused,omitzero"`
	// Lacks are the controllers that it cannot serve at present.
	Lacks []string `json:"lacks,omitempty"`
	// Slots is the number of slots that it owns, and Weight the sum of their weights: of a slot, 1
	// and 16 for each object.
	Slots  int    `json:"slots"`
	Weight uint64 `json:"weight"`
	// Controllers are the names of the controllers that it owns.
	Controllers []string `json:"controllers,omitempty"`
	// Age is the time since its Lease last changed. Healthy: less than half of the duration.
	Age time.Duration `json:"age"`
}

// String describes what the member does, as in "gives, cannot serve images".
func (m MemberHealth) String() string {
	text := m.Does
	switch {
	case !m.Live:
		return "does not renew"
	case m.Joining:
		text = "joins"
	}
	if m.Refused {
		text += ", its writes are refused"
	}
	if len(m.Lacks) > 0 {
		text += ", cannot serve " + strings.Join(m.Lacks, ", ")
	}
	return text
}

// Cover tells whether somebody works on an entry.
type Cover string

// The covers of an entry.
const (
	// Covered: its owner lives and calls for it.
	Covered Cover = "covered"
	// Late: it is covered, and a key waits for long. Nothing moves because of it.
	Late Cover = "late"
	// NotReady: its owner lives, and does not call for it yet, or not at present.
	NotReady Cover = "not ready"
	// Nobody: it has no live owner.
	Nobody Cover = "nobody"
)

// Health describes a [Group].
type Health struct {
	// Lease is the namespace and the name of the map's Lease.
	Lease    string `json:"lease"`
	State    State  `json:"state"`
	Identity string `json:"identity,omitzero"`
	// Planner is the member that plans, "" if it is not known.
	Planner string `json:"planner,omitzero"`
	// Members are sorted by identity. Members that are not live are listed if they still own
	// entries, or if their Lease is not released yet.
	Members []MemberHealth `json:"members,omitempty"`
	// Owned is the number of slots that this process owns, and Serving those of them that it calls
	// for.
	Owned   int `json:"owned"`
	Serving int `json:"serving"`
	// Remaining is the time for which the term stays open without another renewal.
	Remaining time.Duration `json:"remaining,omitzero"`
	// Covered is the share of slots and controllers that are covered, late ones included, as of
	// their owners' last renewals; 0 without a map. Healthy: 1. Nobody, NotReady and Late list the
	// others and those that are late, with ranges. Controllers that members can lead have nobody
	// too while the map has no entry for them, as when it is full.
	Covered  float64 `json:"covered"`
	Nobody   string  `json:"nobody,omitzero"`
	NotReady string  `json:"notReady,omitzero"`
	Late     string  `json:"late,omitzero"`
	// Entries counts the slots and controllers by their cover. Without a map nobody has the slots.
	Entries map[Cover]int `json:"entries"`
	// UncoveredFor is the time for which the longest uncovered slot or controller has been
	// uncovered, as this process has observed it. Healthy: up to Tolerated, in which a crash is
	// noticed and caches are filled.
	UncoveredFor time.Duration `json:"uncoveredFor,omitzero"`
	Tolerated    time.Duration `json:"tolerated"`
	// LateFor is the time for which the longest late slot or controller has been late. Healthy: up
	// to ten minutes.
	LateFor time.Duration `json:"lateFor,omitzero"`
	// Moving is the number of slots and controllers that have a next owner, and MovingFor is the
	// longest time for which one of them has had it. It is as long as lists and calls take.
	Moving    int           `json:"moving"`
	MovingFor time.Duration `json:"movingFor,omitzero"`
	Moves     Moves         `json:"moves"`
	// Map is the error of reading the map; nil if it could be read.
	Map error `json:"-"`
	// Polling is the reason why the Leases are listed at intervals; nil if they are watched.
	Polling error `json:"-"`
	// Failures counts the requests that failed since Join. LastError is the last failure and
	// LastErrorAt its time. They stay after the recovery.
	Failures    uint64    `json:"failures,omitzero"`
	LastError   error     `json:"-"`
	LastErrorAt time.Time `json:"lastErrorAt,omitzero"`
}

// Entry is a slot of the map, or a controller that is led as a whole, as this process has observed
// it. Its times begin when this process first observed the state.
type Entry struct {
	// Slot is the number of the slot, or of the entry of a controller, from [Count] on.
	Slot int `json:"slot"`
	// Controller is the name of the controller, "" for a slot.
	Controller string `json:"controller,omitzero"`
	Owner      string `json:"owner,omitzero"`
	Epoch      uint64 `json:"epoch,omitzero"`
	// Age is the time since it has had its owner.
	Age time.Duration `json:"age,omitzero"`
	// Weight is 1 and 16 for each object, with two digits; 0 if it is not known.
	Weight uint32 `json:"weight,omitzero"`
	// Next is the next owner, and Ready reports whether its caches are filled. MovingFor is the
	// time since it became the next owner.
	Next      string        `json:"next,omitzero"`
	Ready     bool          `json:"ready,omitzero"`
	MovingFor time.Duration `json:"movingFor,omitzero"`
	// Cover tells whether somebody works on it, Reason why not, as far as its owner says it, and
	// CoverFor for how long it has not been covered, or has been late.
	Cover    Cover         `json:"cover"`
	Reason   string        `json:"reason,omitzero"`
	CoverFor time.Duration `json:"coverFor,omitzero"`
}

// Health describes the group, as this process has observed it.
func (g *Group) Health() Health {
	h := Health{
		Lease: g.o.Namespace + "/" + g.o.Name, Tolerated: g.tolerated(), Polling: g.follower.Polling(),
	}
	h.Failures, h.LastErrorAt, h.LastError = g.failures.Get()
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	h.State, h.Moves, h.Map = g.state, g.moves, g.mapErrorLocked()
	peers := g.peersLocked(now)
	h.Planner = string(handover.Planner(peers))
	for i, e := range g.view.contents.Entries {
		if e.Next != "" && !isVacant(g.view.contents, i) {
			h.Moving++
			h.MovingFor = max(h.MovingFor, now.Sub(g.view.times[i].next))
		}
	}
	h.Members = g.memberHealthLocked(peers, now)
	if m := g.present; m != nil {
		h.Identity, h.Remaining = string(m.id), m.term.Remaining()
		h.Serving = slotsOf(m.said.open).Len()
		for _, other := range h.Members {
			if other.Identity == h.Identity {
				h.Owned = other.Slots
			}
		}
	}
	c := g.noteCoverLocked(now)
	h.Covered, h.Nobody = c.share(), namesOf(g.view.contents, c.nobody, c.unlisted...)
	h.NotReady, h.Late = namesOf(g.view.contents, c.notReady), namesOf(g.view.contents, c.late)
	h.Entries = c.counts()
	h.UncoveredFor, h.LateFor = longest(&g.cover.uncovered, now), longest(&g.cover.late, now)
	return h
}

// memberHealthLocked describes the members that live, or own something, or have not been ended.
func (g *Group) memberHealthLocked(
	peers map[handover.ID]handover.Peer, now time.Time,
) (all []MemberHealth) {
	members := map[handover.ID]*MemberHealth{}
	for i, e := range g.view.contents.Entries {
		if e.Owner == "" || isVacant(g.view.contents, i) {
			continue
		}
		h := members[e.Owner]
		if h == nil {
			h = &MemberHealth{}
			members[e.Owner] = h
		}
		h.Weight += uint64(g.weightLocked(i, e))
		if i < Count {
			h.Slots++
		} else {
			h.Controllers = append(h.Controllers, nameOf(g.view.contents, i))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(g.view.members)) {
		s, h := g.view.members[id], members[id]
		isLive := peers[id].Standing == handover.Live
		if !isLive && h == nil && (s.Ended || s.lease == nil) {
			continue
		}
		if h == nil {
			h = &MemberHealth{}
		}
		h.Identity, h.Generation, h.Live = string(id), s.Record.Generation, isLive
		h.Does, h.Joining, h.Refused = string(peers[id].State), !g.isJoinedLocked(s), peers[id].Refused
		h.Lacks, h.Age = s.Record.Lacks, now.Sub(s.Since)
		slices.Sort(h.Controllers)
		all = append(all, *h)
	}
	return all
}

// weightLocked returns the weight of an entry that its owner reports, or else the one in the map.
func (g *Group) weightLocked(i int, e handover.Entry) uint32 {
	if s := g.view.members[e.Owner]; s != nil {
		if weight, ok := s.Record.Weights[i]; ok {
			return weight
		}
	}
	return e.Weight
}

// Map returns the entries of the map: the slots, then controllers. It is nil before there is a map.
func (g *Group) Map() (all []Entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	c := g.noteCoverLocked(now)
	for i, e := range g.view.contents.Entries {
		if isVacant(g.view.contents, i) {
			continue
		}
		entry := Entry{
			Slot: i, Owner: string(e.Owner), Epoch: e.Epoch, Age: now.Sub(g.view.times[i].owner),
			Weight: g.weightLocked(i, e), Next: string(e.Next), Ready: e.Ready,
			Cover: c.of(i), Reason: g.reasonLocked(i, e),
		}
		if i >= Count {
			entry.Controller = nameOf(g.view.contents, i)
		}
		if e.Next != "" {
			entry.MovingFor = now.Sub(g.view.times[i].next)
		}
		switch entry.Cover {
		case Nobody, NotReady:
			entry.CoverFor = now.Sub(g.cover.uncovered[i])
		case Late:
			entry.CoverFor = now.Sub(g.cover.late[i])
		}
		all = append(all, entry)
	}
	return all
}

// reasonLocked returns why an entry is not ready, as its owner says.
func (g *Group) reasonLocked(i int, e handover.Entry) string {
	s := g.view.members[e.Owner]
	if s == nil {
		return ""
	}
	for reason, entries := range s.Record.Reasons {
		if slices.Contains(entries, i) {
			return reason
		}
	}
	return ""
}
