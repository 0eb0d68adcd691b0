package cache_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// TestStoreByHand: tests of programs fill the cache themselves, without Run and while the
// informer runs. No handler is notified.
func TestStoreByHand(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		options := clientgo.SharedIndexInformerOptions{Indexers: clientgo.Indexers{"n": podIndexByLabel}}
		writeByHand(t, newInformer(newSource(t), &corev1.Pod{}, options))

		informer := newInformer(newSource(t), &corev1.Pod{}, options)
		handler := record(t, informer)
		runSynced(t, informer)
		writeByHand(t, informer)
		handler.want(t)
		late := record(t, informer)
		late.want(t, "add default/d 8 initial")
	})
}

// writeByHand uses every method that writes and reads.
func writeByHand(t *testing.T, informer clientgo.SharedIndexInformer) {
	t.Helper()
	store, indexer := informer.GetStore(), informer.GetIndexer()
	one, two := labelled("a", "1"), labelled("a", "2")
	one.ResourceVersion, two.ResourceVersion = "3", "4"
	must(t, store.Add(one))
	must(t, indexer.Add(versioned("b", "5")))
	wantKeys(t, "ListKeys after Add", store.ListKeys(), nil, "default/a", "default/b")
	index(t, indexer, "n", "1", "default/a")

	must(t, store.Update(two))
	index(t, indexer, "n", "1")
	index(t, indexer, "n", "2", "default/a")
	if obj, exists, err := store.GetByKey("default/a"); obj != any(two) || !exists || err != nil {
		t.Errorf("GetByKey after Update returns %v, %v, %v", obj, exists, err)
	}
	if obj, exists, err := store.Get(newPod("a")); obj != any(two) || !exists || err != nil {
		t.Errorf("Get after Update returns %v, %v, %v", obj, exists, err)
	}

	must(t, indexer.Delete(cache.DeletedFinalStateUnknown{Key: "default/a"}))
	must(t, indexer.Delete(newPod("none")))
	wantObjects(t, "List after Delete", indexer.List(), nil, "default/b")
	index(t, indexer, "n", "2")
	if obj, exists, err := store.Get(newPod("a")); obj != nil || exists || err != nil {
		t.Errorf("Get after Delete returns %v, %v, %v", obj, exists, err)
	}

	must(t, indexer.Replace([]any{versioned("c", "6"), versioned("d", "7")}, "9"))
	wantObjects(t, "List after Replace", store.List(), nil, "default/c", "default/d")
	index(t, indexer, "n", "", "default/c", "default/d")
	same(t, "LastStoreSyncResourceVersion after Replace", store.LastStoreSyncResourceVersion(), "9")
	store.Bookmark("12")
	same(t, "LastStoreSyncResourceVersion after Bookmark", store.LastStoreSyncResourceVersion(), "12")
	must(t, store.Resync())
	transact(t, indexer)
}

// transact uses the methods of the store that client-go's queue uses if a store has them.
func transact(t *testing.T, indexer clientgo.Indexer) {
	t.Helper()
	err := indexer.(clientgo.TransactionStore).Transaction(
		clientgo.Transaction{Type: clientgo.TransactionTypeAdd, Object: versioned("e", "7")},
		clientgo.Transaction{Type: clientgo.TransactionTypeUpdate, Object: versioned("d", "8")},
		clientgo.Transaction{Type: clientgo.TransactionTypeAdd, Object: "no object"},
		clientgo.Transaction{Type: clientgo.TransactionTypeDelete, Object: versioned("c", "9")},
		clientgo.Transaction{Type: clientgo.TransactionTypeDelete, Object: versioned("e", "10")},
	)
	if err == nil || err.TotalTransactions != 5 || len(err.Errors) != 1 || len(err.SuccessfulIndices) != 4 {
		t.Errorf("Transaction returns %v, want that one of five has failed", err)
	}
	wantObjects(t, "List after Transaction", indexer.List(), nil, "default/d")
}

// TestStoreKeyErrors: an object without a key is refused with a KeyError, and nothing changes.
func TestStoreKeyErrors(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		indexer := newInformer(newSource(t), &corev1.Pod{}, noOptions).GetIndexer()
		must(t, indexer.Add(newPod("a")))
		_, _, get := indexer.Get("no object")
		for what, err := range map[string]error{
			"Add": indexer.Add("no object"), "Update": indexer.Update("no object"), "Delete": indexer.Delete("no object"),
			"Get": get, "Replace": indexer.Replace([]any{newPod("b"), "no object"}, "1"),
		} {
			if keyError, ok := errors.AsType[clientgo.KeyError](err); !ok || keyError.Obj != "no object" || errors.Unwrap(err) == nil {
				t.Errorf("%s returns the error %v, want a KeyError with the object and the cause", what, err)
			}
		}
		wantKeys(t, "ListKeys", indexer.ListKeys(), nil, "default/a")
	})
}

// TestStoreBeforeList: objects that a program has put into the cache before Run count as known:
// the first list updates them, or deletes them as tombstones.
func TestStoreBeforeList(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a", "b")
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		handler := record(t, informer)
		must(t, informer.GetStore().Add(versioned("b", "1")))
		must(t, informer.GetStore().Add(versioned("c", "1")))
		runSynced(t, informer)
		handler.want(t, "add default/a 1 initial", "update default/b 1→2", "tombstone default/c 1")
		wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, "default/a", "default/b")
	})
}

// TestStoreVersionByHand: the version of a cache that is written to by hand is that of the last
// write with a version.
func TestStoreVersionByHand(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		store := newInformer(newSource(t), &corev1.Pod{}, noOptions).GetStore()
		for _, write := range []struct {
			what string
			do   func() error
			want string
		}{
			{"nothing", func() error { return nil }, ""},
			{"Add", func() error { return store.Add(versioned("a", "10")) }, "10"},
			{"Add of the same version", func() error { return store.Add(versioned("b", "10")) }, "10"},
			{"Update", func() error { return store.Update(versioned("b", "20")) }, "20"},
			{"Delete", func() error { return store.Delete(versioned("b", "30")) }, "30"},
			{"Add of what has only a key", func() error { return store.Add(cache.ExplicitKey("default/d")) }, "30"},
			{"Delete of a key", func() error { return store.Delete(cache.DeletedFinalStateUnknown{Key: "default/a"}) }, "30"},
			{"Add with an empty version", func() error { return store.Add(newPod("c")) }, ""},
			{"Replace", func() error { return store.Replace([]any{versioned("a", "40")}, "50") }, "50"},
		} {
			must(t, write.do())
			if got := store.LastStoreSyncResourceVersion(); got != write.want {
				t.Errorf("after %s the version is %q, want %q", write.what, got, write.want)
			}
		}
	})
}
