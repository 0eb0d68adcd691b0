package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// A writer sets all objects of a group to the number of its batch, while their number
// goes up and down, so that the hash table grows, shrinks and moves its items. Any
// reader must find all of a group at one number, in every way of asking, and never
// go back.
func TestP03_P08_ReadersSeeWholeBatchesOnly(t *testing.T) {
	const batches = 1500
	s := newStore(t, Options[*thing]{Indexes: map[any]IndexFunc[*thing]{"tag": byTag, "parity": byParity}})
	key := func(i int) string { return fmt.Sprintf("group/%03d", i) }
	size := func(batch int) int { return 10 + batch*37%90 }
	group := []string{"group"}
	s.Update(func(b *Batch[*thing]) {
		for i := range size(0) {
			b.Set(key(i), &thing{0, group})
		}
	})

	var writing atomic.Bool
	writing.Store(true)
	var readers sync.WaitGroup
	read := func(check func(last int) int) {
		readers.Go(func() {
			for last := 0; writing.Load() && !t.Failed(); {
				number := check(last)
				if number < last {
					t.Errorf("saw batch %d after batch %d", number, last)
				}
				last = number
			}
		})
	}
	read(func(int) int { // point reads, each of the newest state
		first, ok := s.Get(key(0))
		last, ok2 := s.Get(key(9))
		if !ok || !ok2 || last.number < first.number {
			t.Errorf("%v, then %v", first, last)
		}
		return last.number
	})
	read(func(int) int { // one snapshot, every way
		held := s.Snapshot()
		first, _ := held.Get(key(0))
		for range 3 {
			verifyGroup(t, held, first.number, size(first.number), key)
		}
		return first.number
	})
	read(func(last int) int { // a key that comes and goes is there exactly when its state has it
		held := s.Snapshot()
		first, _ := held.Get(key(0))
		for i := range 100 {
			if _, ok := held.Get(key(i)); ok != (i < size(first.number)) {
				t.Errorf("batch %d: Get of object %d says %v", first.number, i, ok)
			}
		}
		return first.number
	})

	for batch := 1; batch <= batches && !t.Failed(); batch++ {
		if batch%100 == 0 {
			s.Replace("", func(yield func(string, *thing) bool) {
				for i := 0; i < size(batch) && yield(key(i), &thing{batch, group}); i++ {
				}
			})
			continue
		}
		s.Update(func(b *Batch[*thing]) {
			for i := range size(batch) {
				b.Set(key(i), &thing{batch, group})
			}
			for i := size(batch); i < size(batch-1); i++ {
				b.Delete(key(i))
			}
		})
	}
	writing.Store(false)
	readers.Wait()
	verifyStore(t, s)
}

func verifyGroup(t *testing.T, s Snapshot[*thing], number, size int, key func(int) string) {
	t.Helper()
	tags, ok := s.Index("tag")
	if !ok {
		t.Error("no such index")
		return
	}
	parity, ok := s.Index("parity")
	if !ok {
		t.Error("no such index")
		return
	}
	value, _ := byParity(&thing{number: number})
	for _, objects := range []func(func(string, *thing) bool){s.All(), s.Prefix("group/"), tags.Lookup("group"), parity.Lookup(value[0])} {
		i := 0
		for k, object := range objects {
			if k != key(i) || object.number != number {
				t.Errorf("%s of batch %d beside batch %d, at place %d", k, object.number, number, i)
				return
			}
			i++
		}
		if i != size {
			t.Errorf("%d objects of batch %d, want %d", i, number, size)
		}
	}
}

// Writers of any goroutine are taken one after another: none of their changes is lost.
func TestP08_WritersAreSerialised(t *testing.T) {
	const writers, updates = 8, 200
	s := newStore(t, Options[*thing]{Indexes: map[any]IndexFunc[*thing]{"parity": byParity}})
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range updates {
				s.Update(func(b *Batch[*thing]) {
					count := &thing{number: 1}
					if old, ok := b.Get("count"); ok {
						count.number = old.number + 1
					}
					b.Set("count", count)
					b.Set(fmt.Sprint(w, "/", i%20), count)
				})
			}
		})
	}
	group.Go(func() {
		if err := s.AddIndex("tag", byTag); err != nil {
			t.Error(err)
		}
	})
	group.Wait()
	if count, _ := s.Get("count"); count.number != writers*updates {
		t.Errorf("counted %d updates, want %d", count.number, writers*updates)
	}
	verifyStore(t, s)
}
