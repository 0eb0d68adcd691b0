package sharedinformer

import (
	"iter"
	"maps"
	"sync/atomic"

	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/store"
)

// takenOut has the objects that a program itself has taken out of the cache, until the
// server tells of them again. Tests of programs do that beside a
// fake clientset, and expect handlers to be told of the delete that it sends: one of an
// object that the cache does not hold is otherwise dropped, as a replay.
type takenOut struct {
	objects atomic.Pointer[map[string]any] // not changed once it stands here; nil is none
}

// mostTakenOut bounds them. A program that takes out more has no informer in mind.
const mostTakenOut = 1024

// add notes objects that are about to be taken out. The caller holds Informer.writing.
func (t *takenOut) add(objects iter.Seq2[string, any]) {
	next := map[string]any{}
	if have := t.objects.Load(); have != nil {
		next = maps.Clone(*have)
	}
	for key, obj := range objects {
		if len(next) == mostTakenOut {
			clear(next)
		}
		next[key] = obj
	}
	t.objects.Store(&next)
}

// settle corrects what was resolved as if the objects had still been cached, and forgets
// those that the batch tells of; a new list tells of all. The caller holds Informer.writing.
func (t *takenOut) settle(batch *delta.Batch[any], cached store.Snapshot[any]) {
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

// withTakenOut is the cache as changes are resolved against it.
type withTakenOut struct {
	store.Snapshot[any]
	objects map[string]any
}

func (w withTakenOut) Get(key string) (any, bool) {
	if obj, ok := w.Snapshot.Get(key); ok {
		return obj, true
	}
	obj, ok := w.objects[key]
	return obj, ok
}

// cached returns what changes are resolved against.
func (i *Informer) cached() delta.Known[any] {
	snapshot := i.store.Snapshot()
	if taken := i.takenOut.objects.Load(); taken != nil { // after the snapshot: what is not in it is here
		return withTakenOut{snapshot, *taken}
	}
	return snapshot
}
