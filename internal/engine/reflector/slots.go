package reflector

import (
	"context"
	"strings"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// held returns the slots whose objects are wanted.
func (r *Reflector[T]) held() slot.Set {
	if r.o.Slots == nil {
		return slot.All()
	}
	return r.o.Slots.Slots()
}

// holds reports whether the slot of an object is held.
func (r *Reflector[T]) holds(key, uid string) bool {
	return r.o.Slots == nil || r.o.Slots.Has(uid, slot.NamespaceOf(key))
}

// forgetGone forgets the last changes of objects whose slots have gone since it was called last: the
// ends of these objects may have come without a key, or not at all, even if the slots have come back.
func (r *Reflector[T]) forgetGone() {
	if r.o.Slots == nil {
		return
	}
	var gone slot.Set
	if gone, r.removes = r.o.Slots.GoneSince(r.removes); gone.IsEmpty() {
		return
	}
	key, stayed := r.o.Slots.Key(), slot.All().Minus(gone)
	r.history.forget(func(k, uid string) bool { return !key.In(stayed, uid, slot.NamespaceOf(k)) })
}

// noteLast notes the last change in a slot.
func (r *Reflector[T]) noteLast(change lastChange) {
	if r.o.Slots == nil {
		return
	}
	h, n := &r.history, r.o.Slots.Key().Of(change.uid, slot.NamespaceOf(change.key))
	if h.bySlot == nil {
		h.bySlot = map[int]lastChange{}
	}
	if !h.isOlder(change.version, h.bySlot[n].version) {
		change.key, change.uid = strings.Clone(change.key), strings.Clone(change.uid)
		h.bySlot[n] = change
	}
}

// ignores reports whether an object is in a slot that is not held.
func (r *Reflector[T]) ignores(item *source.Item[T]) bool {
	return (item.Err == nil || item.IsUndecodable()) && !r.holds(item.Key, item.UID)
}

// selects returns the function that tells a source which objects are wanted.
func (r *Reflector[T]) selects() source.Selects {
	if r.o.Slots == nil {
		return nil
	}
	return r.o.Slots.Has
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

// selection returns the selection of a list or a watch that begins now. While the server has not
// honoured a selector, it is asked once more whether it does, except after a failure.
func (r *Reflector[T]) selection(ctx context.Context) selection {
	if r.maySelect(r.held()) && !r.sharding.Load() && r.attempts.failures == 0 {
		r.checkSharding(ctx)
	}
	return r.selectionOf(r.held())
}

// selectionOf returns the selection of slots, if the server has honoured a selector.
func (r *Reflector[T]) selectionOf(slots slot.Set) selection {
	if !r.maySelect(slots) || !r.sharding.Load() {
		return selection{slots: slot.All()}
	}
	return selection{slots.UIDSelector(), slots}
}

// maySelect reports whether a request for slots can have a selector. Slots by namespace are no
// ranges of the hashes that servers know.
func (r *Reflector[T]) maySelect(slots slot.Set) bool {
	return r.o.Slots != nil && r.o.Slots.Key() == slot.UID && slots != slot.All()
}

// checkSharding lists one object, to find out whether the server honours a selector. An error
// counts as no: the request that follows shows the cause.
func (r *Reflector[T]) checkSharding(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, longestCheck)
	defer cancel()
	r.ask(ctx, source.ListOptions{ //nolint:errcheck // see above
		ShardSelector: r.held().UIDSelector(), Selects: r.selects(),
	})
}

// noteSharding notes whether the server has honoured the selector of a list, after its answer. One
// that refuses it is asked without it.
func (r *Reflector[T]) noteSharding(selector string, honoured bool, err error) {
	if selector == "" {
		return
	}
	if err == nil {
		r.sharding.Store(honoured)
		return
	}
	if c := classify(err, false).cause; c == refused || c == undecodable {
		r.sharding.Store(false)
	}
}

// endWatch ends the running watch.
func (r *Reflector[T]) endWatch(cause error) {
	if watch := r.running.Load(); watch != nil {
		watch.cancel(cause)
	}
}

// endOutdatedWatch ends the running watch if a list is due, or if it does not select slots that are
// held, so that it is begun anew from its last version. Such a watch hands on nothing more in any
// case: see push.
func (r *Reflector[T]) endOutdatedWatch() {
	watch := r.running.Load()
	switch {
	case watch == nil:
	case r.filling.needsList():
		watch.cancel(errOlderList)
	case r.isListDue():
		watch.cancel(errListDue)
	case !watch.asked.covers(r.held()):
		watch.cancel(errSlotsCame)
	}
}
