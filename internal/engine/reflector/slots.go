package reflector

import (
	"sync/atomic"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// slotFilter selects the objects of the slots that are held. Any goroutine may use it.
type slotFilter struct {
	holding  *slot.Holding // nil holds all slots
	honoured atomic.Bool   // the server has honoured the shard selector of the last list
}

// held returns the slots whose objects are wanted.
func (f *slotFilter) held() slot.Set {
	if f.holding == nil {
		return slot.All()
	}
	return f.holding.Slots()
}

// has reports whether the slot of an object is held.
func (f *slotFilter) has(key, uid string) bool {
	return f.holding == nil || f.holding.Has(uid, slot.NamespaceOf(key))
}

// selects returns the function that tells a source which objects are wanted.
func (f *slotFilter) selects() source.Selects {
	if f.holding == nil {
		return nil
	}
	return f.holding.Has
}

// maySelect reports whether a request for slots can have a selector. Slots by namespace are no
// ranges of the hashes that servers know.
func (f *slotFilter) maySelect(slots slot.Set) bool {
	return f.holding != nil && f.holding.Key() == slot.UID && slots != slot.All()
}

// selection describes the objects that a request asks the server for. A server may ignore it, and
// the answer to a watch does not say so. So objects that it does not select count as missing in the
// answer, which may have them all the same.
type selection struct {
	selector string   // of the slots; "" for all objects
	slots    slot.Set // all without a selector
}

// covers reports whether an answer holds the objects of all slots of a set.
func (s selection) covers(held slot.Set) bool { return held.Minus(s.slots).IsEmpty() }

// selectionOf returns the selection of slots, if the server has honoured a selector.
func (f *slotFilter) selectionOf(slots slot.Set) selection {
	if !f.maySelect(slots) || !f.honoured.Load() {
		return selection{slots: slot.All()}
	}
	return selection{slots.UIDSelector(), slots}
}

// note records whether the server has honoured a selector, after its answer to the request. A
// server that refuses a selector is asked without one.
func (f *slotFilter) note(selector string, honoured bool, err error) {
	switch {
	case selector == "":
	case err == nil:
		f.honoured.Store(honoured)
	default:
		if c := classify(err, false).cause; c == refused || c == undecodable {
			f.honoured.Store(false)
		}
	}
}
