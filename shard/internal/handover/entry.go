package handover

import (
	"maps"
	"time"
)

// ID is the identity of a member. No two memberships have the same ID. "" is no member.
type ID string

// Left is the knowledge about the writes that earlier owners of an entry have made.
type Left uint8

const (
	// Unknown: nothing is known, as after a crash. The owner asks the server for its versions.
	Unknown Left = iota
	// Known: the owner has to reach Entry.Versions.
	Known
	// Reached: the owner has opened the entry, and the map keeps no versions.
	Reached
)

// Entry is one line of a map: a slot, or a controller that one member runs.
type Entry struct {
	// Owner may call while its term is open. Epoch rises with each change of the owner.
	Owner ID
	Epoch uint64
	// Next is the next owner, "" without one. Ready reports that its caches are filled.
	Next  ID
	Ready bool
	// Left tells the owner which versions to wait for before it opens the entry. Versions, by
	// resource and selection, are those of the events that showed the writes; empty unless Left is
	// Known.
	Left     Left
	Versions map[string]string
	// Weight is one more than the number of objects, as the last owner has counted them; 0 if that
	// is not known.
	Weight uint32
}

// to returns the entry with another owner.
func (e Entry) to(owner ID, left Left, versions map[string]string) Entry {
	return Entry{
		Owner: owner, Epoch: e.Epoch + 1, Left: left, Versions: maps.Clone(versions), Weight: e.Weight,
	}
}

// still returns the entry without a next owner.
func (e Entry) still() Entry {
	e.Next, e.Ready = "", false
	return e
}

// Standing is the state of a member in the view of another one.
type Standing uint8

const (
	// Held members were not seen at all, or not for a long time: their term may be open.
	Held Standing = iota
	// Live members have a Lease that changes.
	Live
	// Ended members call and write nothing any more.
	Ended
)

// Peer is a member as its Lease shows it. The zero value is a member that was never seen.
type Peer struct {
	Standing Standing
	// State and Refused are those of its Record.
	State   State
	Refused bool
	// Joined reports that the member acts on the present map.
	Joined bool
	// Created is the time at which the server created the Lease.
	Created time.Time
}

// Inherits reports whether entries may be given to the member.
func (p Peer) Inherits() bool { return p.Standing == Live && p.State == Takes && !p.Refused }

// givesUp reports whether the member names the heirs of its entries itself.
func (p Peer) givesUp() bool { return p.State == Gives || p.State == Leaving }

// EndedOf returns the members that call and write nothing any more.
func EndedOf(peers map[ID]Peer) map[ID]bool {
	ended := map[ID]bool{}
	for id, p := range peers {
		if p.Standing == Ended {
			ended[id] = true
		}
	}
	return ended
}

// Planner returns the member that carries out the plan, "" if there is none: the one with the
// oldest Lease. A member that leaves, or whose writes are refused, plans only if all others do so
// too.
func Planner(peers map[ID]Peer) (planner ID) {
	rank := func(p Peer) (rank int) {
		if p.State == Leaving {
			rank++
		}
		if p.Refused {
			rank += 2
		}
		return rank
	}
	for id, p := range peers {
		if p.Standing != Live || !p.Joined {
			continue
		}
		best, order := peers[planner], 0
		if planner != "" {
			order = rank(p) - rank(best)
		}
		isOlder := p.Created.Before(best.Created) || p.Created.Equal(best.Created) && id < planner
		if planner == "" || order < 0 || order == 0 && isOlder {
			planner = id
		}
	}
	return planner
}

// Move is a change that a plan wants: To becomes the owner of an entry.
type Move struct {
	Entry int
	To    ID
}
