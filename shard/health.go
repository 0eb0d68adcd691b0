package shard

import (
	"maps"
	"slices"
	"time"

	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// State is the present activity of a [Group].
type State string

// The states.
const (
	// Joining: this process is not yet, or no longer, a member that slots are given to.
	Joining State = "Joining"
	// Member: it owns the slots that the map gives it.
	Member State = "Member"
	// Leaving: its slots are handed over.
	Leaving State = "Leaving"
	// Stopped: it has left.
	Stopped State = "Stopped"
)

// Moves counts the changes of owners that this process took part in, since Join.
type Moves struct {
	// In and Out count the slots and controllers that this process has received and given away.
	In  uint64 `json:"in"`
	Out uint64 `json:"out"`
	// TakenBack counts the hand-overs of own slots and controllers that failed. Healthy: not
	// growing.
	TakenBack uint64 `json:"takenBack"`
}

// MemberHealth describes a member, as this process has observed it.
type MemberHealth struct {
	Identity   string `json:"identity"`
	Generation string `json:"generation,omitzero"`
	// Live members renew their Lease. Slots of others are about to be given away. A member gets no
	// slots while it joins, which is until its Lease names the map, nor once it leaves.
	Live    bool `json:"live"`
	Joining bool `json:"joining,omitzero"`
	Leaving bool `json:"leaving,omitzero"`
	// Slots is the number of slots that it owns, and Load the sum of the loads that it reports.
	Slots int     `json:"slots"`
	Load  float64 `json:"load"`
	// Controllers are the names of the controllers that it owns.
	Controllers []string `json:"controllers,omitempty"`
	// Age is the time since its Lease last changed. Healthy: less than half of the duration.
	Age time.Duration `json:"age"`
}

// Health describes a [Group].
type Health struct {
	// Lease is the namespace and the name of the map's Lease.
	Lease    string `json:"lease"`
	State    State  `json:"state"`
	Identity string `json:"identity,omitzero"`
	// Planner is the member that plans, "" if it is not known.
	Planner string `json:"planner,omitzero"`
	// Members are sorted by identity. Members that are not live are listed if they still own
	// slots or controllers, or if their Lease is not released yet.
	Members []MemberHealth `json:"members,omitempty"`
	// Owned is the number of slots that this process owns, and Serving the number of slots that
	// it calls for.
	Owned   int `json:"owned"`
	Serving int `json:"serving"`
	// Remaining is the time for which the term stays open without another renewal.
	Remaining time.Duration `json:"remaining,omitzero"`
	// Covered is the share of slots and controllers whose owner is live and reports them in order, as
	// of its last renewal; 0 without a map. Healthy: 1. Uncovered lists the others, with ranges; ""
	// without others. Controllers that members can lead are uncovered too while the map has no entry
	// for them, as when it is full.
	Covered   float64 `json:"covered"`
	Uncovered string  `json:"uncovered,omitzero"`
	// UncoveredFor is the time for which the longest uncovered slot or controller has been
	// uncovered, as this process has observed it. Healthy: up to Tolerated, in which a crash is
	// noticed and a hand-over ends.
	UncoveredFor time.Duration `json:"uncoveredFor,omitzero"`
	Tolerated    time.Duration `json:"tolerated"`
	// Moving is the number of slots and controllers that have a next owner, and MovingFor is the
	// longest time for which one of them has had it. Healthy: less than Options.HandOver.
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

// Health describes the group, as this process has observed it.
func (g *Group) Health() Health {
	h := Health{
		Lease: g.o.Namespace + "/" + g.o.Name, Tolerated: g.tolerated(), Polling: g.follower.Polling(),
	}
	h.Failures, h.LastErrorAt, h.LastError = g.failures.Get()
	g.mu.Lock()
	defer g.mu.Unlock()
	h.State, h.Moves, h.Map = g.state, g.moves, g.view.broken
	owned, loads, led := map[protocol.ID]int{}, map[protocol.ID]float64{}, map[protocol.ID][]string{}
	entries := 0
	for i, e := range g.view.entries {
		switch {
		case g.view.isFree(i):
			continue
		case i < Count:
			owned[e.Owner]++
		default:
			led[e.Owner] = append(led[e.Owner], g.view.name(i))
		}
		entries++
		loads[e.Owner] += g.observedLocked(e.Owner).record.loads[i]
		if e.Next != "" {
			h.Moving++
			h.MovingFor = max(h.MovingFor, g.clock.Since(g.view.times[i].next))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(g.view.members)) {
		s, isLive := g.observedLocked(id), g.standingLocked(id) == protocol.Live
		if !isLive && owned[id]+len(led[id]) == 0 && (s.ended || s.lease == nil) {
			continue
		}
		h.Members = append(h.Members, MemberHealth{
			Identity: string(id), Generation: s.record.generation, Live: isLive,
			Joining: !g.isJoinedLocked(s), Leaving: s.record.leaving,
			Slots: owned[id], Load: loads[id],
			Controllers: slices.Sorted(slices.Values(led[id])), Age: g.clock.Since(s.since),
		})
	}
	h.Planner = string(g.plannerLocked())
	if m := g.present; m != nil {
		h.Identity, h.Remaining = string(m.id), m.term.Remaining()
		h.Owned, h.Serving = owned[m.id], slotsOf(m.serving).Len()
	}
	uncovered, _ := g.noteCoverLocked()
	unlisted := g.unlistedLocked()
	if entries > 0 {
		h.Covered = float64(entries-uncovered.Len()) / float64(entries+len(unlisted))
	}
	h.Uncovered, h.UncoveredFor = g.view.names(uncovered, unlisted...), g.uncoveredForLocked()
	return h
}

// Entry is a slot of the map, or a controller that is led singly, as this process has observed it.
// Its times begin when this process first observed the state.
type Entry struct {
	// Slot is the number of the slot, or of the entry of a controller, from [Count] on.
	Slot int `json:"slot"`
	// Controller is the name of the controller, "" for a slot.
	Controller string `json:"controller,omitzero"`
	Owner      string `json:"owner,omitzero"`
	Epoch      uint64 `json:"epoch,omitzero"`
	// Age is the time since it has had its owner.
	Age time.Duration `json:"age,omitzero"`
	// Load is the load that the owner reports.
	Load float64 `json:"load,omitzero"`
	// Next is the next owner, and Ready reports whether it has warmed. MovingFor is the time
	// since it became the next owner.
	Next      string        `json:"next,omitzero"`
	Ready     bool          `json:"ready,omitzero"`
	MovingFor time.Duration `json:"movingFor,omitzero"`
	// Covered reports whether the owner is live and reports the entry in order. UncoveredFor is
	// the time since that was last the case.
	Covered      bool          `json:"covered"`
	UncoveredFor time.Duration `json:"uncoveredFor,omitzero"`
}

// Map returns the entries of the map: the slots, then controllers. It is nil before there is a map.
func (g *Group) Map() []Entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	uncovered, _ := g.noteCoverLocked()
	var all []Entry
	for i, e := range g.view.entries {
		if g.view.isFree(i) {
			continue
		}
		entry := Entry{
			Slot: i, Owner: string(e.Owner), Epoch: e.Epoch, Age: g.clock.Since(g.view.times[i].owner),
			Load: g.observedLocked(e.Owner).record.loads[i], Next: string(e.Next), Ready: e.Ready,
			Covered: !uncovered.Has(i),
		}
		if i >= Count {
			entry.Controller = g.view.name(i)
		}
		if e.Next != "" {
			entry.MovingFor = g.clock.Since(g.view.times[i].next)
		}
		if !entry.Covered {
			entry.UncoveredFor = g.clock.Since(g.uncovered[i])
		}
		all = append(all, entry)
	}
	return all
}
