package shard

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// numbering relates the entries of a map to those of a handler. Slots have the same numbers;
// controllers have those of their names, which each of the two lists in an order of its own.
type numbering struct{ ofMap, ofHandler []string }

// own returns the handler's number of an entry of the map, -1 without one.
func (n numbering) own(i int) int { return translate(i, n.ofMap, n.ofHandler) }

// mapped returns entries of the handler as those of the map.
func (n numbering) mapped(entries Set) (all Set) {
	for i := range entries.Slots() {
		if j := translate(i, n.ofHandler, n.ofMap); j >= 0 {
			all.Add(j)
		}
	}
	return all
}

func translate(i int, from, to []string) int {
	if i < slot.Count {
		return i
	}
	if i -= slot.Count; i >= len(from) || from[i] == "" {
		return -1
	}
	if i = slices.Index(to, from[i]); i < 0 {
		return -1
	}
	return slot.Count + i
}

// slotsOf returns a set of entries without those of controllers.
func slotsOf(entries Set) Set { return slot.All().And(entries) }

// nameOf returns the number of a slot, or the name of a controller.
func nameOf(m handover.Map, i int) string {
	if i < slot.Count {
		return strconv.Itoa(i)
	}
	return m.Controllers[i-slot.Count]
}

// namesOf returns the entries of a set as text: slots with ranges, then the names of controllers
// and the other names.
func namesOf(m handover.Map, s Set, others ...string) string {
	var names []string
	slots := slotsOf(s)
	if !slots.IsEmpty() {
		names = append(names, slots.String())
	}
	for i := range s.Minus(slots).Slots() {
		names = append(names, nameOf(m, i))
	}
	return strings.Join(append(names, others...), ",")
}

// isVacant reports whether an entry belongs to no slot and to no controller.
func isVacant(m handover.Map, i int) bool {
	return i >= slot.Count && m.Controllers[i-slot.Count] == ""
}
