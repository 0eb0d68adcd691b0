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
// server reports them again. Tests of programs do that beside a fake clientset, and expect
// that handlers receive the delete that it sends. Without this, the delete of an object that
// the cache does not hold is dropped, as a replay.
type manualDeletes struct {
	objects atomic.Pointer[map[string]any] // not changed once it stands here; nil is none
}

// mostManualDeletes bounds them. A program that deletes more is no test of an informer.
const mostManualDeletes = 1024

// add notes objects that are about to be deleted. No batch is applied meanwhile.
func (t *manualDeletes) add(objects iter.Seq2[string, any]) {
	next := map[string]any{}
	if have := t.objects.Load(); have != nil {
		next = maps.Clone(*have)
	}
	for key, obj := range objects {
		if len(next) == mostManualDeletes {
			clear(next)
		}
		next[key] = obj
	}
	t.objects.Store(&next)
}

// settle corrects changes that were computed as if the objects were still cached, and
// forgets the objects that the batch reports; a new list reports all.
func (t *manualDeletes) settle(batch *delta.Batch[any], cached store.Snapshot[any]) {
	have := t.objects.Load()
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
		t.objects.Store(nil)
		return
	}
	t.objects.Store(&left)
}

// withManualDeletes is the cache with the objects that the program has deleted.
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

// known returns what changes are compared with.
func (t *manualDeletes) known(cache store.Snapshot[any]) delta.Known[any] {
	if deleted := t.objects.Load(); deleted != nil { // after the snapshot: what is not in it is here
		return withManualDeletes{cache, *deleted}
	}
	return cache
}
