package fanout

import "github.com/tidings-go/tidings/internal/engine/change"

// pending is one entry of a backlog: a notification, or the mark at which the subscription is
// synced.
type pending[T any] struct {
	change.Change[T]
	prev, next *pending[T]
	mark       bool // the synced mark, not a notification
	unseen     bool // ConflateUpdates: begins an incarnation whose end is pending too
	fresh      bool // ConflateState: New is of an incarnation that the handler does not know
}

// open has the pending entries of the incarnation of a key that lives at the end of the backlog.
// ConflateState uses update only, for the key's one entry.
type open[T any] struct {
	begin  *pending[T] // the add, or the update that changed the UID
	update *pending[T] // the update that the next one may fold into
}

// backlog holds the pending notifications of a handler that is beyond its limit:
//
//	head ─▶ add a ⇄ update b ⇄ delete c ⇄ (synced) ⇄ add c ◀─ tail
//	           ▲        ▲                                ▲
//	keys:   a: begin  b: update                       c: begin
//
// It is an ordered list and a map from each key to the entries that can still change. A fold
// happens in place, where the first of the folded notifications stood: at the end, a key that
// changes faster than the handler can follow would never be delivered.
//
// It is guarded by Subscription.mu.
type backlog[T any] struct {
	policy   Policy
	describe func(T) (version, uid string) // nil: there is one incarnation
	head     *pending[T]
	tail     *pending[T]
	keys     map[string]open[T]
	count    int    // notifications in the list
	initial  int    // of these, adds of an initial set
	unseen   int    // whole lifetimes in the list
	folded   uint64 // notifications folded into another or left out
	leftOut  uint64 // incarnations left out
}

func newBacklog[T any](policy Policy, describe func(T) (version, uid string)) *backlog[T] {
	return &backlog[T]{policy: policy, describe: describe, keys: make(map[string]open[T])}
}

// add takes a notification in, at the end or by folding.
func (b *backlog[T]) add(n *change.Change[T]) {
	if b.policy == ConflateState {
		b.addState(n)
	} else {
		b.addUpdates(n)
	}
}

// addMark puts the mark at which the subscription is synced at the end.
func (b *backlog[T]) addMark() { b.link(&pending[T]{mark: true}) }

// addUpdates is add for ConflateUpdates.
func (b *backlog[T]) addUpdates(n *change.Change[T]) {
	o := b.keys[n.Key]
	switch {
	case n.Type == change.Updated && b.incarnationStays(n):
		if u := o.update; u != nil {
			u.New = n.New
			b.folded++
			return
		}
		o.update = b.append(n)
	case n.Type == change.Deleted:
		b.endIncarnation(o)
		b.append(n)
		delete(b.keys, n.Key)
		return
	default:
		b.endIncarnation(o)
		o = open[T]{begin: b.append(n)}
	}
	b.keys[n.Key] = o
}

// endIncarnation counts a lifetime that is pending as a whole.
func (b *backlog[T]) endIncarnation(o open[T]) {
	if o.begin != nil {
		o.begin.unseen = true
		b.unseen++
	}
}

// addState is add for ConflateState. The handler does not know the key of an entry of type Added;
// in any other entry, Old is the state that the handler saw last.
func (b *backlog[T]) addState(n *change.Change[T]) {
	p := b.keys[n.Key].update
	switch {
	case p == nil:
		p = b.append(n)
		p.fresh = n.Type == change.Added || n.Type == change.Updated && !b.incarnationStays(n)
		b.keys[n.Key] = open[T]{update: p}
	case n.Type == change.Deleted && p.Type == change.Added:
		b.leaveOut(p)
		delete(b.keys, n.Key)
		b.unlink(p)
		b.folded += 2
	case n.Type == change.Deleted:
		b.foldEnd(p, n)
	default:
		b.foldPresent(p, n)
	}
}

// foldEnd folds a delete into the entry of a key that the handler knows. If another incarnation has
// ended, the handler receives the end of the one that it knows, whose final state is not kept.
func (b *backlog[T]) foldEnd(p *pending[T], n *change.Change[T]) {
	b.leaveOut(p)
	p.Type, p.Tombstone, p.Moved, p.New = change.Deleted, n.Tombstone, n.Moved, n.New
	if p.fresh {
		p.Tombstone, p.Moved, p.New = true, false, p.Old
	}
	p.fresh = false
	b.folded++
}

// foldPresent folds an add or update into the entry of its key.
func (b *backlog[T]) foldPresent(p *pending[T], n *change.Change[T]) {
	switch {
	case n.Type == change.Updated && !b.incarnationStays(n):
		b.leaveOut(p)
		p.fresh = !b.isKnown(p, n.New)
	case p.Type == change.Deleted:
		if p.fresh = !b.isKnown(p, n.New); !p.fresh && b.isSeen(p, n.New) { // it has come back as it was
			delete(b.keys, n.Key)
			b.unlink(p)
			b.folded += 2
			return
		}
	}
	if p.Type != change.Added {
		p.Type = change.Updated
	}
	p.Tombstone, p.Moved, p.New = false, false, n.New
	b.folded++
}

// isKnown reports whether a state is of the incarnation that the handler knows. An object that has
// left the selection or its slot comes back with the same UID.
func (b *backlog[T]) isKnown(p *pending[T], state T) bool {
	if p.Type == change.Added || b.describe == nil {
		return false
	}
	_, uid := b.describe(state)
	_, known := b.describe(p.Old)
	return uid != "" && uid == known
}

// isSeen reports whether a state of the incarnation that the handler knows is the one that it saw
// last.
func (b *backlog[T]) isSeen(p *pending[T], state T) bool {
	version, _ := b.describe(state)
	seen, _ := b.describe(p.Old)
	return version != "" && version == seen
}

// leaveOut counts the incarnation that ends before the handler saw it.
func (b *backlog[T]) leaveOut(p *pending[T]) {
	if p.fresh {
		b.leftOut++
	}
}

// take moves entries from the front to buf, up to its capacity or to the mark. If the mark stands
// at the front, it is taken and synced is true.
func (b *backlog[T]) take(buf []change.Change[T]) (run []change.Change[T], synced bool) {
	for b.head != nil && len(buf) < cap(buf) {
		p := b.head
		if p.mark {
			if len(buf) == 0 {
				b.unlink(p)
				synced = true
			}
			break
		}
		b.forget(p)
		b.unlink(p)
		buf = append(buf, p.Change)
	}
	return buf, synced
}

// empty reports whether nothing is left, not even the mark.
func (b *backlog[T]) empty() bool { return b.head == nil }

// forget makes sure that nothing folds into p any more.
func (b *backlog[T]) forget(p *pending[T]) {
	if p.unseen {
		b.unseen--
	}
	o := b.keys[p.Key]
	if o.begin != p && o.update != p {
		return
	}
	if o.begin == p {
		o.begin = nil
	}
	if o.update == p {
		o.update = nil
	}
	if o.begin == nil && o.update == nil {
		delete(b.keys, p.Key)
		return
	}
	b.keys[p.Key] = o
}

// append links a copy of n at the end.
func (b *backlog[T]) append(n *change.Change[T]) *pending[T] {
	p := &pending[T]{Change: *n}
	b.link(p)
	b.count++
	if n.Initial {
		b.initial++
	}
	return p
}

func (b *backlog[T]) link(p *pending[T]) {
	p.prev = b.tail
	if b.tail == nil {
		b.head = p
	} else {
		b.tail.next = p
	}
	b.tail = p
}

func (b *backlog[T]) unlink(p *pending[T]) {
	if p.prev == nil {
		b.head = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		b.tail = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.prev, p.next = nil, nil
	if p.mark {
		return
	}
	b.count--
	if p.Initial {
		b.initial--
	}
}

// incarnationStays reports whether both states of an update are of one incarnation.
func (b *backlog[T]) incarnationStays(n *change.Change[T]) bool {
	if b.describe == nil {
		return true
	}
	_, before := b.describe(n.Old)
	_, now := b.describe(n.New)
	return before == now
}
