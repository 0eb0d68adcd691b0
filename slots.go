package tidings

import (
	"errors"
	"fmt"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// Slots are the slots that this process holds, of the 256 that objects are divided into: by their
// UID or their namespace, as [NewSlots] says. Informers with the same Slots in their [Selection] have
// the objects of these slots alone; all others are not decoded, as far as the source can tell. A
// process needs one Slots for its informers, which package shard and controllers change; Add and
// Remove are for other ways to divide the work.
type Slots = slot.Holding

// SlotSet is a set of slots, which are numbers from 0 to 255.
type SlotSet = slot.Set

// SlotKey is the name by which objects are divided: [ByUID] or [ByNamespace].
type SlotKey = slot.Key

const (
	// ByUID divides objects evenly, each for itself: an object and its owner are in different slots.
	ByUID = slot.UID
	// ByNamespace puts all objects of a namespace into one slot. It is for types with namespaces.
	ByNamespace = slot.Namespace
)

// NewSlots returns Slots that hold a set at first. Its zero value holds none: informers are synced
// and empty then.
func NewSlots(key SlotKey, first SlotSet) *Slots { return slot.NewHolding(key, first) }

// AllSlots returns the set of all slots.
func AllSlots() SlotSet { return slot.All() }

// checkSlots returns an error if objects of a scope cannot be divided so.
func checkSlots(slots *Slots, scope source.Scope) error {
	switch {
	case slots == nil:
		return nil
	case slots.Key() != ByUID && slots.Key() != ByNamespace:
		return fmt.Errorf("Slots are divided by %q: give NewSlots ByUID or ByNamespace", slots.Key())
	case slots.Key() == ByNamespace && scope == source.ScopeCluster:
		return errors.New("Slots are divided by namespace, and objects of the type have none: use ByUID")
	}
	return nil
}
