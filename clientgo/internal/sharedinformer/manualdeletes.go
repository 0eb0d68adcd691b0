package sharedinformer

import (
	"iter"
	"maps"
	"sync/atomic"

	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/store"
)

// manualDeletes has the objects that a program has deleted from the cache itself, until the
// server reports them again. Tests of programs delete objects from the cache and from a fake
// clientset, and expect that handlers receive the delete of the clientset. The delta queue drops
// the delete of an unknown object, so these objects count as known.
type manualDeletes struct {
	objects atomic.Pointer[map[string]any] // immutable; nil without objects
}

// maxManualDeletes bounds these objects. Tests of programs delete fewer.
const maxManualDeletes = 1024

// add records objects that are about to be deleted. No batch is applied meanwhile.
func (m *manualDeletes) add(objects iter.Seq2[string, any]) {
	next := map[string]any{}
	if have := m.objects.Load(); have != nil {
		next = maps.Clone(*have)
	}
	for key, obj := range objects {
		if len(next) == maxManualDeletes {
			clear(next)
		}
		next[key] = obj
	}
	m.objects.Store(&next)
}

// settle corrects changes that were computed as if the objects were still cached, and
// forgets the objects that the batch reports. A complete list reports all objects.
func (m *manualDeletes) settle(batch *delta.Batch[any], cached store.Snapshot[any]) {
	have := m.objects.Load()
	if have == nil {
		return
	}
	left := maps.Clone(*have)
	for n := range batch.Changes {
		d := &batch.Changes[n]
		if _, ok := left[d.Key]; !ok {
			continue
		}
		delete(left, d.Key)
		if _, ok := cached.Get(d.Key); !ok && d.Type == change.Updated {
			d.Type, d.Old = change.Added, nil
		}
	}
	if batch.Replaced || len(left) == 0 {
		m.objects.Store(nil)
		return
	}
	m.objects.Store(&left)
}

// withManualDeletes is a snapshot with the objects that the program has deleted from it.
type withManualDeletes struct {
	store.Snapshot[any]
	objects map[string]any
}

func (w withManualDeletes) Get(key string) (any, bool) {
	if obj, ok := w.Snapshot.Get(key); ok {
		return obj, true
	}
	obj, ok := w.objects[key]
	return obj, ok
}

// known returns the objects with which the delta queue compares changes.
func (m *manualDeletes) known(cache store.Snapshot[any]) delta.Known[any] {
	if deleted := m.objects.Load(); deleted != nil { // loaded after the snapshot was taken
		return withManualDeletes{cache, *deleted}
	}
	return cache
}
