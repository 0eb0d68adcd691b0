package reflector

import (
	"context"

	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/source"
)

// selection is what a request asks the server for. A server may ignore it, and nothing tells for a
// watch. So what it does not select counts as missing in the answer, and what it selects may be
// anything.
type selection struct {
	selector string   // of the slots; "" for all objects
	slots    slot.Set // all without a selector
}

// covers reports whether an answer holds the objects of all slots of a set.
func (s selection) covers(held slot.Set) bool { return held.Minus(s.slots).IsEmpty() }

// mayShard reports whether the server can be asked for slots: not where they are no ranges of the
// hashes that it knows.
func (r *Reflector[T]) mayShard() bool { return r.o.Slots != nil && r.o.Slots.Key() == slot.UID }

// selection returns the selection of a list or a watch that begins now. While the server has not
// honoured a selector, it is asked once more whether it does, except after a failure.
func (r *Reflector[T]) selection(ctx context.Context) selection {
	if r.mayShard() && !r.sharding.Load() && r.attempts.failures == 0 {
		r.probe(ctx)
	}
	if r.o.Slots == nil {
		return selection{slots: slot.All()}
	}
	return r.selectionOf(r.o.Slots.Slots())
}

// selectionOf returns the selection of slots, if the server has honoured a selector.
func (r *Reflector[T]) selectionOf(slots slot.Set) selection {
	if !r.mayShard() || !r.sharding.Load() || slots == slot.All() {
		return selection{slots: slot.All()}
	}
	return selection{slots.UIDSelector(), slots}
}

// probe lists one object, to find out whether the server honours a selector. An error counts as no:
// the request that follows shows what is wrong.
func (r *Reflector[T]) probe(ctx context.Context) {
	slots := r.o.Slots.Slots()
	if slots == slot.All() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestCheck)
	defer cancel()
	r.listPage(ctx, r.source, source.ListOptions{ //nolint:errcheck // see above
		Limit: 1, ShardSelector: slots.UIDSelector(), Selects: r.selects(),
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
