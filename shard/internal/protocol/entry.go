package protocol

import "maps"

// ID is the identity of a member. No two lives of a process have the same. "" is nobody.
type ID string

// Entry is one line of a map: a slot, or a controller that one member runs.
type Entry struct {
	// Owner may call, while its term is open; Epoch rises with each change of it.
	Owner ID     `json:"owner,omitempty"`
	Epoch uint64 `json:"epoch,omitempty"`
	// Next is to be the owner, "" if nobody is; Ready says that it has warmed.
	Next  ID   `json:"next,omitempty"`
	Ready bool `json:"ready,omitempty"`
	// Versions are those by resource at which the last owner saw its own writes. They are nil if
	// they are not known, as after a crash.
	Versions map[string]string `json:"versions,omitempty"`
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

// Standing is what a member knows of another one.
type Standing uint8

// The standings.
const (
	// Held stands for a member that was not seen, or not for long: its term may be open.
	Held Standing = iota
	// Live members have a Lease that changes.
	Live
	// Ended members call and write nothing any more.
	Ended
)

// Planner returns the member that plans: of those that are live, the one with the lowest identity;
// "" if none is.
func Planner(members []ID, standing func(ID) Standing) (planner ID) {
	for _, id := range members {
		if standing(id) == Live && (planner == "" || id < planner) {
			planner = id
		}
	}
	return planner
}

// Move is a change that the planner wants: To is to become the owner of an entry.
type Move struct {
	Entry int
	To    ID
}
