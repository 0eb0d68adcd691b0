package sharedinformer

import (
	"iter"
	"maps"
	"sync"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/store"
)

// manualWrites has the keys that a program has written in the cache itself, until the server
// reports them. A program puts the answers of its own updates there, so that it does not read the
// state before; tests delete objects from the cache and from a fake clientset. client-go applies
// each event to the object that its cache holds by then. So no event is older than an object of
// the program, which no handler has received, and an object that the program has deleted counts as
// known: the delta queue drops the delete of an unknown one.
type manualWrites struct {
	mu      sync.Mutex // guards the rest
	keys    map[string]manual
	deletes int // of keys
}

// manual is an object that the program has put into the cache or deleted from there. The queue
// receives it in the place of the object, whose version it must not compare.
type manual struct {
	object  any
	deleted bool
}

// maxManualDeletes bounds the deleted objects. Tests of programs delete fewer.
const maxManualDeletes = 1024

// set records a key that is about to be set; remove one whose object is about to be deleted. No
// batch is applied meanwhile.
func (m *manualWrites) set(key string) { m.add(key, manual{}) }

func (m *manualWrites) remove(key string, obj any) { m.add(key, manual{obj, true}) }

func (m *manualWrites) add(key string, of manual) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forgetLocked(key)
	if of.deleted {
		if m.deletes == maxManualDeletes {
			m.forgetDeletesLocked()
		}
		m.deletes++
	}
	if m.keys == nil {
		m.keys = map[string]manual{}
	}
	m.keys[key] = of
}

func (m *manualWrites) forgetLocked(key string) {
	if m.keys[key].deleted {
		m.deletes--
	}
	delete(m.keys, key)
}

func (m *manualWrites) forgetDeletesLocked() {
	maps.DeleteFunc(m.keys, func(_ string, of manual) bool { return of.deleted })
	m.deletes = 0
}

// settle makes changes follow from the cache, as it is now, and forgets the keys that the batch
// reports. A complete list reports all deleted objects.
func (m *manualWrites) settle(batch *delta.Batch[any], cached store.Snapshot[any]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n := range batch.Changes {
		d := &batch.Changes[n]
		before, known := d.Old.(manual)
		if _, ok := m.keys[d.Key]; !ok && !known {
			continue
		}
		m.forgetLocked(d.Key)
		old, exists := cached.Get(d.Key)
		d.Unchanged = false
		switch {
		case d.Type == change.Deleted:
			if !exists && known {
				old, exists = before.object, true
			}
			if exists {
				d.Old = old
			}
			if d.Tombstone {
				d.New = d.Old
			}
		case exists:
			d.Type, d.Old = change.Updated, old
		default:
			d.Type, d.Old = change.Added, nil
		}
	}
	if batch.Replaced {
		m.forgetDeletesLocked()
	}
}

// withManualWrites is a snapshot that shows what the program has written.
type withManualWrites struct {
	store.Snapshot[any]
	writes *manualWrites
}

func (w withManualWrites) Get(key string) (any, bool) {
	obj, ok := w.Snapshot.Get(key)
	return w.replaced(key, obj, ok)
}

func (w withManualWrites) replaced(key string, obj any, ok bool) (any, bool) {
	w.writes.mu.Lock()
	of, written := w.writes.keys[key]
	w.writes.mu.Unlock()
	switch {
	case !written:
		return obj, ok
	case ok:
		return manual{object: obj}, true
	}
	return of, of.deleted
}

// Prefix does not yield deleted objects: a list deletes the objects that the cache has.
func (w withManualWrites) Prefix(prefix string) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for key, obj := range w.Snapshot.Prefix(prefix) {
			if obj, _ = w.replaced(key, obj, true); !yield(key, obj) {
				return
			}
		}
	}
}

// known returns the objects with which the delta queue compares changes.
func (m *manualWrites) known(cache store.Snapshot[any]) delta.Known[any] {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.keys) == 0 {
		return cache
	}
	return withManualWrites{cache, m}
}
