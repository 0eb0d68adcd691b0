package store

import "slices"

// Batch is the write side of one [Store.Update]. Its changes become visible as a whole when
// the function given to Update has returned. It is for that function and one goroutine; using
// it later panics.
type Batch[T any] struct {
	byKey   *hashTable[T]
	next    state[T] // the state in the making; its trees copy what they change
	open    bool
	changes []change[T]  // in order; not yet in the hash table and the anchors
	added   int          // changes of keys that were not there
	removed int          // changes that are deletes
	failed  []IndexError // in order
	places  []place      // scratch
}

// change is an item that was set, or one that was deleted.
type change[T any] struct {
	item    *item[T]
	deleted bool
}

// newBatch begins a batch on a state. It uses the arrays of the given lists.
func newBatch[T any](before *state[T], changes []change[T], places []place) *Batch[T] {
	b := &Batch[T]{
		byKey: before.byKey, next: *before, open: true, changes: changes[:0], places: places[:0],
	}
	b.next.number++
	b.next.objects.owner = b.next.number
	b.next.indexes = slices.Clone(before.indexes)
	for i := range b.next.indexes {
		b.next.indexes[i].entries.owner = b.next.number
	}
	return b
}

func (b *Batch[T]) changed(before *state[T]) bool {
	return len(b.changes) > 0 || b.byKey != before.byKey ||
		b.next.version != before.version || len(b.next.indexes) != len(before.indexes)
}

// clear empties the batch, into a hash table of its own: the one before goes on serving
// the states before, unchanged.
func (b *Batch[T]) clear() {
	b.byKey = newHashTable[T](b.byKey.seed, 0)
	b.byKey.removed.Store(b.next.number)
	b.next.objects.root = nil
	for i := range b.next.indexes {
		b.next.indexes[i].entries.root = nil
	}
}

// addIndex adds an index and puts the objects into it. Each object that has a value
// there gets a new item with a new anchor: those of before belong to states
// without the index.
func (b *Batch[T]) addIndex(x index[T]) {
	added := len(b.next.indexes)
	x.entries.owner = b.next.number
	b.next.indexes = append(b.next.indexes, x)
	objects := b.next.objects // an own version: the walk goes over the objects as they were
	objects.all(func(old *item[T]) bool {
		b.places = b.places[:0]
		b.evaluate(added, old)
		if len(b.places) == 0 {
			return true
		}
		r := new(item[T])
		*r = *old
		r.number = b.next.number
		if old.anchor != nil {
			b.places = append(b.places, old.anchor.places...)
		}
		b.index(r)
		b.next.objects.set(r.key, r)
		b.changes = append(b.changes, change[T]{item: r})
		return true
	})
}

// Get returns the object of the key as the batch has it so far.
func (b *Batch[T]) Get(key string) (object T, ok bool) {
	b.mustBeOpen()
	if r, ok := b.next.objects.find(key); ok {
		return r.object, true
	}
	return object, false
}

// Len returns the number of objects in the batch's present state.
func (b *Batch[T]) Len() int {
	b.mustBeOpen()
	return b.next.objects.len()
}

// Set puts the object under the key and returns the one that was there.
func (b *Batch[T]) Set(key string, object T) (previous T, existed bool) {
	b.mustBeOpen()
	r := &item[T]{key: key, hash: b.byKey.hash(key), object: object, number: b.next.number}
	old, existed := b.next.objects.set(key, r)
	if existed {
		previous, r.anchor = old.object, old.anchor
	} else {
		b.added++
	}
	b.places = b.places[:0]
	for i := range b.next.indexes {
		b.evaluate(i, r)
	}
	b.index(r)
	b.changes = append(b.changes, change[T]{item: r})
	return previous, existed
}

// SetEqual puts an object in the place of the present one, which it equals. The key keeps its
// entries in the indexes, without a call of an index function. A key that is not there stays
// absent.
func (b *Batch[T]) SetEqual(key string, object T) {
	b.mustBeOpen()
	old, ok := b.next.objects.find(key)
	if !ok {
		return
	}
	r := new(item[T])
	*r = *old
	r.object, r.number = object, b.next.number
	b.next.objects.set(key, r)
	b.changes = append(b.changes, change[T]{item: r})
}

// Delete removes the object of the key and returns it.
func (b *Batch[T]) Delete(key string) (previous T, existed bool) {
	b.mustBeOpen()
	old, existed := b.next.objects.delete(key)
	if !existed {
		return previous, false
	}
	if old.anchor != nil {
		for _, p := range old.anchor.places {
			b.next.indexes[p.index].entries.delete(position{value: p.value, key: key})
		}
	}
	b.removed++
	b.changes = append(b.changes, change[T]{item: old, deleted: true})
	return old.object, true
}

// SetVersion sets the version that the new state carries, [Snapshot.Version]. A
// batch that does not set one keeps that of the state before.
func (b *Batch[T]) SetVersion(version string) {
	b.mustBeOpen()
	b.next.version = version
}

func (b *Batch[T]) mustBeOpen() {
	if !b.open {
		panic("store: a Batch was used outside of the function that Update called with it; " +
			"write in that function, or call Update again")
	}
}

// evaluate appends the places of an object in index i to b.places.
func (b *Batch[T]) evaluate(i int, r *item[T]) {
	values, err := b.next.indexes[i].function.call(r.object)
	if err != nil {
		b.failed = append(b.failed, IndexError{Index: b.next.indexes[i].id, Key: r.key, Err: err})
		return
	}
	for _, value := range values {
		b.places = append(b.places, place{index: i, value: value})
	}
}

// index enters an item into the indexes at b.places. The item has the anchor of the item
// before it, and keeps it if the places are the same.
func (b *Batch[T]) index(r *item[T]) {
	if len(b.places) > 1 {
		slices.SortFunc(b.places, comparePlaces)
		b.places = slices.Compact(b.places)
	}
	var before []place
	if r.anchor != nil {
		before = r.anchor.places
	}
	if slices.Equal(before, b.places) {
		return
	}
	for _, p := range before {
		if !hasPlace(b.places, p) {
			b.next.indexes[p.index].entries.delete(position{value: p.value, key: r.key})
		}
	}
	r.anchor = nil
	if len(b.places) == 0 {
		return
	}
	places := slices.Clone(b.places)
	r.anchor = newAnchor(r, places)
	for i := range places {
		p := &places[i]
		entries := &b.next.indexes[p.index].entries
		p.value = canonical(*entries, p.value)
		at := position{value: p.value, key: r.key}
		entries.set(at, entry[T]{value: p.value, anchor: r.anchor})
	}
}

// commit enters the changes into the hash table and the anchors and returns the finished
// state, which the caller publishes at once. Readers of the states before ignore these
// writes, by their number.
func (b *Batch[T]) commit() *state[T] {
	t := b.byKey.sized(b.byKey.used+b.added, b.next.number)
	if b.removed > 0 {
		t.removed.Store(b.next.number)
	}
	for _, c := range b.changes {
		if c.deleted {
			t.remove(c.item.hash, c.item.key)
			continue
		}
		t.put(c.item)
		if a := c.item.anchor; a != nil && a.newest.Load() != c.item {
			a.newest.Store(c.item)
		}
	}
	next := b.next
	next.byKey = t
	return &next
}
