package engine

import (
	"fmt"
	"iter"

	"github.com/tidings-go/tidings/internal/see/inspect"
)

// view shows the cache. It has no state of its own.
type view[T any] struct{ *shared[T] }

// Keys yields the keys of the cached objects, in ascending order.
func (v view[T]) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range v.store.Snapshot().All() {
			if !yield(key) {
				return
			}
		}
	}
}

// Undecodable returns the version and UID of an object whose present state cannot be decoded.
func (v view[T]) Undecodable(key string) (version, uid string, ok bool) {
	state, ok := v.queue.UnusableState(key)
	return state.Version, state.UID, ok
}

// Object returns a cached object.
func (v view[T]) Object(key string) (any, bool) {
	obj, ok := v.store.Get(key)
	return obj, ok
}

// sampledRun is the number of neighbours that a sample has in a row. Neighbours often share more
// with each other than with others.
const sampledRun = 8

// Sample returns up to n cached objects: rows of neighbours at equal distances.
func (v view[T]) Sample(n int) (objects []any) {
	snapshot := v.store.Snapshot()
	all := snapshot.Len()
	rows := max(1, min(n, all)/sampledRun)
	for row := range rows {
		first := row * all / rows
		for i := first; i < all && i < first+sampledRun && len(objects) < n; i++ {
			_, object := snapshot.At(i)
			objects = append(objects, object)
		}
	}
	return objects
}

// Usage describes the memory of the cache beside its objects.
func (v view[T]) Usage() inspect.Usage {
	snapshot := v.store.Snapshot()
	memory := snapshot.Memory()
	usage := inspect.Usage{Objects: snapshot.Len(), KeyBytes: memory.Keys}
	for i, id := range snapshot.Indexes() {
		index, _ := snapshot.Index(id)
		usage.Indexes = append(usage.Indexes, inspect.Index{
			Name: fmt.Sprint(id), Entries: index.Entries(), Bytes: memory.Indexes[i],
		})
	}
	return usage
}
