package shard

import (
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// State is the present activity of a [Group].
type State string

// The states.
const (
	// Joining: this process is no member yet that slots are given to, or no longer.
	Joining State = "Joining"
	// Member: it owns what the map says.
	Member State = "Member"
	// Leaving: its slots are handed over.
	Leaving State = "Leaving"
	// Stopped: it has left.
	Stopped State = "Stopped"
)

// Moves count changes of owners that this process took part in, since Join.
type Moves struct {
	// In and Out are the slots and controllers that came and went.
	In  uint64 `json:"in"`
	Out uint64 `json:"out"`
	// TakenBack are hand-overs of own ones that failed. Healthy: not growing.
	TakenBack uint64 `json:"takenBack"`
}

// MemberHealth describes a member as this process sees it.
type MemberHealth struct {
	Identity   string `json:"identity"`
	Generation string `json:"generation,omitzero"`
	// Live members renew their Lease. Others own slots that are about to be given away. A member is
	// given none while it joins, until its Lease names the map, nor once it leaves.
	Live    bool `json:"live"`
	Joining bool `json:"joining,omitzero"`
	Leaving bool `json:"leaving,omitzero"`
	// Slots is the number of slots that it owns, and Load the sum of what it reports of them.
	Slots int     `json:"slots"`
	Load  float64 `json:"load"`
	// Controllers are the names of those that it owns.
	Controllers []string `json:"controllers,omitempty"`
	// Age is for how long its Lease has not changed. Healthy: less than half of the duration.
	Age time.Duration `json:"age"`
}

// Health describes a [Group].
type Health struct {
	// Lease is the namespace and the name of the map's Lease.
	Lease    string `json:"lease"`
	State    State  `json:"state"`
	Identity string `json:"identity,omitzero"`
	// Planner is the member that plans, "" if none is known.
	Planner string `json:"planner,omitzero"`
	// Members are those that live, and those that still own slots, by identity.
	Members []MemberHealth `json:"members,omitempty"`
	// Owned are the slots that this process owns, and Serving those that it calls for.
	Owned   int `json:"owned"`
	Serving int `json:"serving"`
	// Remaining is how long the term stays open without another renewal.
	Remaining time.Duration `json:"remaining,omitzero"`
	// Covered is the share of slots and controllers whose owner is live and reports them in order, as of its last
	// renewal; 0 without a map. Healthy: 1. Uncovered are the others, with ranges; "" for none. Controllers
	// that members can lead are uncovered too while the map has no entry for them, as when it is full.
	Covered   float64 `json:"covered"`
	Uncovered string  `json:"uncovered,omitzero"`
	// UncoveredFor is for how long the one is uncovered that is so the longest, as this process has
	// seen it. Healthy: up to Tolerated, in which a crash is found and a hand-over ends.
	UncoveredFor time.Duration `json:"uncoveredFor,omitzero"`
	Tolerated    time.Duration `json:"tolerated"`
	// Moving is the number of slots and controllers that have a next owner, and MovingFor is for how long the one has
	// it that moves the longest. Healthy: less than Options.HandOver.
	Moving    int           `json:"moving"`
	MovingFor time.Duration `json:"movingFor,omitzero"`
	Moves     Moves         `json:"moves"`
	// Map says why the map cannot be read; nil: it can.
	Map error `json:"-"`
	// Polling says why the Leases are read now and then in the place of a watch; nil: they are
	// watched.
	Polling error `json:"-"`
	// Failures counts the requests that failed since Join. LastError is the last failure and
	// LastErrorAt its time. They stay after the recovery.
	Failures    uint64    `json:"failures,omitzero"`
	LastError   error     `json:"-"`
	LastErrorAt time.Time `json:"lastErrorAt,omitzero"`
}

// Health describes the group as this process sees it.
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
	for id := range g.view.members {
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
	slices.SortFunc(h.Members, func(a, b MemberHealth) int {
		return strings.Compare(a.Identity, b.Identity)
	})
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

// Entry is a slot of the map, or a controller that is led singly, as this process sees it. The times
// are those for which it has seen it so.
type Entry struct {
	// Slot is the number of the slot, or of the entry of a controller, from [Count] on.
	Slot int `json:"slot"`
	// Controller is the name of the controller, "" for a slot.
	Controller string `json:"controller,omitzero"`
	Owner      string `json:"owner,omitzero"`
	Epoch      uint64 `json:"epoch,omitzero"`
	// Age is for how long the owner has had it.
	Age time.Duration `json:"age,omitzero"`
	// Load is what the owner reports of it.
	Load float64 `json:"load,omitzero"`
	// Next is to be the owner, and Ready says that it has warmed. MovingFor is for how long it is
	// to be the owner.
	Next      string        `json:"next,omitzero"`
	Ready     bool          `json:"ready,omitzero"`
	MovingFor time.Duration `json:"movingFor,omitzero"`
	// Covered says that the owner is live and reports the slot in order. UncoveredFor is for how
	// long that is not so.
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
