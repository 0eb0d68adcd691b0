package store

import "slices"

// Batch is the write side of one [Store.Update]: what is done with it becomes
// visible as a whole when the function given to Update has returned. It is for that
// function alone and for one goroutine; using it later panics.
type Batch[T any] struct {
	table   *table[T]
	next    state[T] // the state in the making; its trees copy what they change
	open    bool
	changes []change[T]  // in order; what the table and the anchors have to learn
	added   int          // changes of keys that were not there
	removed int          // changes that are deletes
	failed  []IndexError // in order
	places  []place      // scratch
}

// change is a record that was set, or one that was deleted.
type change[T any] struct {
	record  *record[T]
	deleted bool
}

// newBatch begins a batch on a state. It uses the arrays of the given lists.
func newBatch[T any](before *state[T], changes []change[T], places []place) *Batch[T] {
	b := &Batch[T]{table: before.table, next: *before, open: true, changes: changes[:0], places: places[:0]}
	b.next.number++
	b.next.objects.owner = b.next.number
	b.next.indexes = slices.Clone(before.indexes)
	for i := range b.next.indexes {
		b.next.indexes[i].entries.owner = b.next.number
	}
	return b
}

// changed says whether the batch has done anything since the state before.
func (b *Batch[T]) changed(before *state[T]) bool {
	return len(b.changes) > 0 || b.table != before.table || b.next.version != before.version || len(b.next.indexes) != len(before.indexes)
}

// clear empties the batch, into a table of its own: the one before goes on serving
// the states before, unchanged.
func (b *Batch[T]) clear() {
	b.table = newTable[T](b.table.seed, 0)
	b.table.removed.Store(b.next.number)
	b.next.objects.root = nil
	for i := range b.next.indexes {
		b.next.indexes[i].entries.root = nil
	}
}

// addIndex adds an index and puts the objects into it. Each object that has a value
// there gets a new record with a new anchor: those of before belong to states
// without the index.
func (b *Batch[T]) addIndex(x index[T]) {
	added := len(b.next.indexes)
	x.entries.owner = b.next.number
	b.next.indexes = append(b.next.indexes, x)
	objects := b.next.objects // an own version: the walk goes over the objects as they were
	objects.all(func(old *record[T]) bool {
		b.places = b.places[:0]
		b.evaluate(added, old)
		if len(b.places) == 0 {
			return true
		}
		r := &record[T]{key: old.key, hash: old.hash, object: old.object, number: b.next.number, anchor: old.anchor}
		if old.anchor != nil {
			b.places = append(b.places, old.anchor.places...)
		}
		b.stand(r)
		b.next.objects.set(r.key, r)
		b.changes = append(b.changes, change[T]{record: r})
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

// Len returns how many objects there are as the batch has it so far.
func (b *Batch[T]) Len() int {
	b.mustBeOpen()
	return b.next.objects.len()
}

// Set puts the object under the key and returns the one that was there.
func (b *Batch[T]) Set(key string, object T) (previous T, existed bool) {
	b.mustBeOpen()
	r := &record[T]{key: key, hash: b.table.hash(key), object: object, number: b.next.number}
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
	b.stand(r)
	b.changes = append(b.changes, change[T]{record: r})
	return previous, existed
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
	b.changes = append(b.changes, change[T]{record: old, deleted: true})
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
		panic("store: a Batch was used outside of the function that Update called with it; write in that function, or call Update again")
	}
}

// evaluate appends to b.places where the object stands in index i.
func (b *Batch[T]) evaluate(i int, r *record[T]) {
	values, err := b.next.indexes[i].function.call(r.object)
	if err != nil {
		b.failed = append(b.failed, IndexError{Index: b.next.indexes[i].id, Key: r.key, Err: err})
		return
	}
	for _, value := range values {
		b.places = append(b.places, place{index: i, value: value})
	}
}

// stand makes the record stand in the indexes where b.places says. It comes with the
// anchor of the record before it, and keeps it if the places are the same.
func (b *Batch[T]) stand(r *record[T]) {
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
		entries.set(position{value: p.value, key: r.key}, entry[T]{value: p.value, anchor: r.anchor})
	}
}

// commit tells the table and the anchors what has changed and returns the finished
// state, which the caller publishes at once. Readers of the states before ignore
// what it writes, by its number.
func (b *Batch[T]) commit() *state[T] {
	t := b.table.sized(b.table.used+b.added, b.next.number)
	if b.removed > 0 {
		t.removed.Store(b.next.number)
	}
	for _, c := range b.changes {
		if c.deleted {
			t.remove(c.record.hash, c.record.key)
			continue
		}
		t.put(c.record)
		if a := c.record.anchor; a != nil && a.newest.Load() != c.record {
			a.newest.Store(c.record)
		}
	}
	next := b.next
	next.table = t
	return &next
}
