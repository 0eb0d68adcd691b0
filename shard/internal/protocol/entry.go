package protocol

import "maps"

// ID is the identity of a member. No two memberships have the same ID. "" is no member.
type ID string

// Entry is one line of a map: a slot, or a controller that one member runs.
type Entry struct {
	// Owner may call while its term is open. Epoch rises with each change of the owner.
	Owner ID
	Epoch uint64
	// Next is the next owner, "" without one. Ready reports whether it has warmed.
	Next  ID
	Ready bool
	// Versions are the versions, by resource and selection, at which the last owner saw its own
	// writes. They are nil if they are not known, as after a crash.
	Versions map[string]string
}

// to returns the entry with another owner.
func (e Entry) to(owner ID, versions map[string]string) Entry {
	return Entry{Owner: owner, Epoch: e.Epoch + 1, Versions: maps.Clone(versions)}
}

// still returns the entry without a next owner.
func (e Entry) still() Entry {
	e.Next, e.Ready = "", false
	return e
}

// Standing is the state of a member in the view of another one.
type Standing uint8

// The standings.
const (
	// Held members have not been seen at all, or not for a long time: their term may be open.
	Held Standing = iota
	// Live members have a Lease that changes.
	Live
	// Ended members call and write nothing any more.
	Ended
)

// Planner returns the member that plans: the live member with the lowest identity; "" if no member
// is live.
func Planner(members []ID, standing func(ID) Standing) (planner ID) {
	for _, id := range members {
		if standing(id) == Live && (planner == "" || id < planner) {
			planner = id
		}
	}
	return planner
}

// Move is a change that the planner wants: To becomes the owner of an entry.
type Move struct {
	Entry int
	To    ID
}
