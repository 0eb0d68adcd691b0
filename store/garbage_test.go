package store

import (
	"fmt"
	"runtime"
	"testing"
	"weak"
)

// A cursor that has reached the end keeps nothing alive.
func TestCursorAtTheEndHoldsNothing(t *testing.T) {
	s := newStore(t, Options[*thing]{})
	set(s, "a", &thing{1, nil})
	c := s.Snapshot().Cursor()
	for _, _, ok := c.Next(); ok; _, _, ok = c.Next() {
	}
	if c.objects.root != nil || c.at != (cursor[string, *item[*thing]]{}) {
		t.Error("the cursor still holds the objects")
	}
}

// The lists that writers share do not stay as long as a relist makes them.
func TestLongListsOfABatchAreNotKept(t *testing.T) {
	s := newStore(t, Options[*thing]{Indexes: map[any]IndexFunc[*thing]{"parity": byParity}})
	s.Update(func(b *Batch[*thing]) {
		for i := range 10_000 {
			b.Set(fmt.Sprint(i), &thing{i, nil})
		}
	})
	if n := cap(s.changes); n != 0 {
		t.Errorf("room for %d changes is kept", n)
	}
	set(s, "one", &thing{1, nil})
	if cap(s.changes) == 0 {
		t.Error("no room is kept for the next batch")
	}
}

// An object that the store no longer holds is garbage, whatever the order of writes, and
// whether an index entry of its key lives on or not.
func TestReplacedObjectsAreNotKept(t *testing.T) {
	s := newStore(t, Options[*thing]{Indexes: map[any]IndexFunc[*thing]{"tag": byTag}})
	const keys = 3000
	var old []weak.Pointer[thing]
	s.Update(func(b *Batch[*thing]) {
		for i := range keys {
			object := &thing{i, []string{"x"}}
			old = append(old, weak.Make(object))
			b.Set(fmt.Sprintf("%05d", i), object)
		}
	})
	for i := 0; i < keys; i += 3 {
		set(s, fmt.Sprintf("%05d", i), &thing{i, []string{"x"}})
		remove(s, fmt.Sprintf("%05d", i+1))
	}
	runtime.GC()
	for i, object := range old {
		if kept := object.Value() != nil; kept != (i%3 == 2) {
			t.Errorf("object %d: kept is %v", i, kept)
			break
		}
	}
	runtime.KeepAlive(s)
}
