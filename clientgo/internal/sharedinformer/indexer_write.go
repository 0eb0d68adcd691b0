package sharedinformer

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/store"
)

// keyOf returns the key of an object as the caches of client-go make it.
func keyOf(obj any) (string, error) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return "", cache.KeyError{Obj: obj, Err: err}
	}
	return key, nil
}

// Add puts an object into the cache.
func (x *indexer) Add(obj any) error { return x.writeOne(cache.TransactionTypeAdd, obj) }

// Update puts an object into the cache.
func (x *indexer) Update(obj any) error { return x.writeOne(cache.TransactionTypeUpdate, obj) }

// Delete deletes the object with the key of obj from the cache.
func (x *indexer) Delete(obj any) error { return x.writeOne(cache.TransactionTypeDelete, obj) }

func (x *indexer) writeOne(t cache.TransactionType, obj any) (err error) {
	x.write(func(b *store.Batch[any]) { err = x.transact(b, cache.Transaction{Type: t, Object: obj}) })
	return err
}

// Replace replaces the whole content of the cache.
func (x *indexer) Replace(list []any, version string) error {
	items := make(map[string]any, len(list))
	for _, obj := range list {
		key, err := keyOf(obj)
		if err != nil {
			return err
		}
		items[key] = obj
	}
	x.byHand(func(s *store.Store[any]) {
		for key, obj := range s.Snapshot().All() {
			if _, stays := items[key]; !stays {
				x.informer.manualWrites.remove(key, obj)
			}
		}
		for key := range items {
			x.informer.manualWrites.set(key)
		}
		s.Replace(version, func(yield func(string, any) bool) {
			for _, key := range slices.Sorted(maps.Keys(items)) {
				if !yield(key, items[key]) {
					return
				}
			}
		})
	})
	return nil
}

// Bookmark sets the version up to which the cache is complete.
func (x *indexer) Bookmark(version string) {
	x.write(func(b *store.Batch[any]) { b.SetVersion(version) })
}

// Resync does nothing, as in client-go's caches.
func (x *indexer) Resync() error { return nil }

// Transaction makes several writes at once. It leaves out the writes that fail.
func (x *indexer) Transaction(writes ...cache.Transaction) *cache.TransactionError {
	failed := cache.TransactionError{TotalTransactions: len(writes)}
	x.write(func(b *store.Batch[any]) {
		for n, w := range writes {
			if err := x.transact(b, w); err != nil {
				failed.Errors = append(failed.Errors, err)
				continue
			}
			failed.SuccessfulIndices = append(failed.SuccessfulIndices, n)
		}
	})
	if len(failed.Errors) == 0 {
		return nil
	}
	return &failed
}

func (x *indexer) transact(b *store.Batch[any], w cache.Transaction) error {
	key, err := keyOf(w.Object)
	if err != nil {
		return err
	}
	switch w.Type {
	case cache.TransactionTypeAdd, cache.TransactionTypeUpdate:
		x.informer.manualWrites.set(key)
		b.Set(key, w.Object)
	case cache.TransactionTypeDelete:
		if cached, ok := b.Get(key); ok {
			x.informer.manualWrites.remove(key, cached)
		}
		b.Delete(key)
	default:
		return fmt.Errorf("transaction %q of %s: the type is none of Add, Update and Delete", w.Type, key)
	}
	if m := metadata(w.Object); m != nil {
		b.SetVersion(m.GetResourceVersion())
	}
	return nil
}

func (x *indexer) write(f func(*store.Batch[any])) {
	x.byHand(func(s *store.Store[any]) { s.Update(f) })
}

// byHand writes for the program. If an index function fails, the object is in the cache, without
// the entry, and byHand panics, as client-go's caches do and in their words: the program is there
// to see it.
func (x *indexer) byHand(write func(*store.Store[any])) {
	failures := x.informer.collection.WriteByHand(write)
	if len(failures) == 0 {
		return
	}
	if of, ok := failures[0].Err.(*store.PanicError); ok {
		panic(of.Value)
	}
	f := failures[0]
	panic(fmt.Errorf("unable to calculate an index entry for key %q on index %q: %w",
		f.Key, f.Index, f.Err))
}
