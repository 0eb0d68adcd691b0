package engine

import (
	"fmt"
	"iter"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/fanout"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

// Keys yields the keys of the cached objects, in ascending order.
func (c *Collection[T]) Keys() iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range c.store.Snapshot().All() {
			if !yield(key) {
				return
			}
		}
	}
}

// Undecodable returns the version and UID of an object whose present state cannot be decoded.
func (c *Collection[T]) Undecodable(key string) (version, uid string, ok bool) {
	state, ok := c.queue.UnusableState(key)
	return state.Version, state.UID, ok
}

// Object returns a cached object.
func (c *Collection[T]) Object(key string) (any, bool) {
	obj, ok := c.store.Get(key)
	return obj, ok
}

// sampledRun is the number of neighbours that a sample has in a row. Neighbours often share more
// with each other than with others.
const sampledRun = 8

// Sample returns up to n cached objects: rows of neighbours at equal distances.
func (c *Collection[T]) Sample(n int) (objects []any) {
	snapshot := c.store.Snapshot()
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
func (c *Collection[T]) Usage() inspect.Usage {
	snapshot := c.store.Snapshot()
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

// Follow calls f for each change from now on, until remove is called. f must return soon.
func (c *Collection[T]) Follow(name string, f func(inspect.Change)) (remove func(), err error) {
	deliver := func(n change.Change[T]) {
		made := inspect.Change{Type: n.Type, Resync: n.Resync, Key: n.Key}
		if n.Type != change.Added {
			made.Old = n.Old
		}
		if n.Type != change.Deleted {
			made.New = n.New
		}
		f(made)
	}
	s, err := c.Subscribe(deliver, true, fanout.SubscriptionOptions{Name: name, IsolatePanics: true})
	if err != nil {
		return nil, err
	}
	return s.Remove, nil
}
