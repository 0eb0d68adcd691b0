package cache_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"

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

// TestAnswersInTheStore: a program puts the answer of its own write into the cache. The events that
// follow, and lists, are compared with what the cache has, as in client-go, not with its version.
func TestAnswersInTheStore(t *testing.T) {
	for name, tt := range map[string]struct {
		byHand func(store clientgo.Store) error
		events []watch.Event
		want   []string
	}{
		"somebody else wrote before":  {func(s clientgo.Store) error { return s.Update(versioned("a", "7")) }, []watch.Event{modified(versioned("a", "6")), modified(versioned("a", "7"))}, []string{"update default/a 7→6", "update default/a 6→7"}},
		"only the program wrote":      {func(s clientgo.Store) error { return s.Update(versioned("a", "6")) }, []watch.Event{modified(versioned("a", "6")), modified(versioned("a", "7"))}, []string{"update default/a 6→6", "update default/a 6→7"}},
		"the program made the object": {func(s clientgo.Store) error { return s.Add(versioned("b", "7")) }, []watch.Event{added(versioned("b", "6")), modified(versioned("b", "7"))}, []string{"update default/b 7→6", "update default/b 6→7"}},
		"deleted before":              {func(s clientgo.Store) error { return s.Update(versioned("a", "9")) }, []watch.Event{deleted(versioned("a", "6"))}, []string{"delete default/a 6"}},
		"written and deleted by hand": {func(s clientgo.Store) error {
			return errors.Join(s.Update(versioned("a", "9")), s.Delete(versioned("a", "9")))
		}, []watch.Event{modified(versioned("a", "6")), deleted(versioned("a", "7"))}, []string{"add default/a 6", "delete default/a 7"}},
		"replaced": {func(s clientgo.Store) error { return s.Replace([]any{versioned("b", "9")}, "9") },
			[]watch.Event{deleted(versioned("a", "6")), added(versioned("b", "7"))}, []string{"delete default/a 6", "update default/b 9→7"}},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				w := watch.NewRaceFreeFake()
				informer, handler := follow(t, newInformer, &script{
					list:  func(metav1.ListOptions) (runtime.Object, error) { return podList("5", versioned("a", "1")), nil },
					watch: func(metav1.ListOptions) (watch.Interface, error) { return w, nil },
				})
				handler.want(t, "add default/a 1 initial")
				must(t, tt.byHand(informer.GetStore()))
				send(w, tt.events...)
				handler.want(t, tt.want...)
			})
		})
	}
}

// TestIndexFailsByHand: a write by hand panics in the goroutine of its caller if an index function
// fails, with the same text on both, and the object is cached.
func TestIndexFailsByHand(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		refused := errors.New("refused")
		indexer := newInformer(newSource(t), &corev1.Pod{}, clientgo.SharedIndexInformerOptions{Indexers: clientgo.Indexers{"n": func(obj any) ([]string, error) {
			switch obj.(*corev1.Pod).Name {
			case "panics":
				panic(refused)
			case "fails":
				return nil, refused
			}
			return nil, nil
		}}}).GetIndexer()
		for name, want := range map[string]string{
			"fails":  `unable to calculate an index entry for key "default/fails" on index "n": refused`,
			"panics": "refused",
		} {
			for what, write := range map[string]func() error{
				"Add": func() error { return indexer.Add(newPod(name)) }, "Update": func() error { return indexer.Update(newPod(name)) },
				"Replace": func() error { return indexer.Replace([]any{newPod(name)}, "1") },
			} {
				func() {
					defer func() {
						if err, ok := recover().(error); !ok || err.Error() != want {
							t.Errorf("%s of an object that %s: the panic is %v, want %s", what, name, err, want)
						}
					}()
					must(t, write())
				}()
			}
			if _, exists, err := indexer.GetByKey("default/" + name); !exists || err != nil {
				t.Errorf("the object that %s is not cached: %v", name, err)
			}
		}
	})
}

// TestFakeDeletesTheUnknown: handlers receive the delete of an object that a fake has never added.
func TestFakeDeletesTheUnknown(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a")
		informer := newInformer(declaredFake{source}, &corev1.Pod{}, noOptions)
		handler := record(t, informer)
		runSynced(t, informer)
		handler.want(t, "add default/a 1 initial")
		source.Delete(newPod("never"))
		settle(time.Second)
		handler.want(t, "delete default/never 2")
	})
}

// declaredFake declares that it cannot stream lists, as client-go's fake clientsets do.
type declaredFake struct {
	*cachetesting.FakeControllerSource
}

func (declaredFake) IsWatchListSemanticsUnSupported() bool { return true }
