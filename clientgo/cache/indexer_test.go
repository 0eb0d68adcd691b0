package cache_test

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// wantKeys compares keys, in any order.
func wantKeys(t *testing.T, what string, got []string, err error, want ...string) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if got = slices.Sorted(slices.Values(got)); !slices.Equal(got, want) {
		t.Errorf("%s is %q, want %q", what, got, want)
	}
}

// wantObjects compares the keys of objects, in any order.
func wantObjects(t *testing.T, what string, got []any, err error, want ...string) {
	t.Helper()
	keys := make([]string, len(got))
	for n, obj := range got {
		keys[n] = keyOf(obj)
	}
	wantKeys(t, what, keys, err, want...)
}

func index(t *testing.T, indexer clientgo.Indexer, name, value string, want ...string) {
	t.Helper()
	objects, err := indexer.ByIndex(name, value)
	wantObjects(t, "ByIndex "+name+"="+value, objects, err, want...)
	keys, err := indexer.IndexKeys(name, value)
	wantKeys(t, "IndexKeys "+name+"="+value, keys, err, want...)
}

// allLabels indexes objects by the names of all their labels.
func allLabels(obj any) ([]string, error) {
	return slices.Collect(maps.Keys(obj.(metav1.Object).GetLabels())), nil
}

// withLabels returns a pod with labels of these names.
func withLabels(name string, names ...string) *corev1.Pod {
	pod := newPod(name)
	pod.Labels = map[string]string{}
	for _, label := range names {
		pod.Labels[label] = "some"
	}
	return pod
}

// TestIndexesFollow: indexes have the objects of the cache, whether they were given to the
// constructor, added before Run, or added while objects are cached.
func TestIndexesFollow(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t)
		source.Add(withLabels("a", "x", "y"))
		source.Add(withLabels("b", "y"))
		informer := newInformer(source, &corev1.Pod{}, clientgo.SharedIndexInformerOptions{Indexers: clientgo.Indexers{"first": allLabels}})
		must(t, informer.AddIndexers(clientgo.Indexers{"second": allLabels}))
		runSynced(t, informer)
		must(t, informer.AddIndexers(clientgo.Indexers{"third": allLabels}))
		indexer := informer.GetIndexer()
		names := []string{"first", "second", "third"}
		wantKeys(t, "GetIndexers", slices.Collect(maps.Keys(indexer.GetIndexers())), nil, names...)
		for _, name := range names {
			index(t, indexer, name, "x", "default/a")
			index(t, indexer, name, "y", "default/a", "default/b")
			index(t, indexer, name, "z")
			wantKeys(t, name, indexer.ListIndexFuncValues(name), nil, "x", "y")
			objects, err := indexer.Index(name, withLabels("other", "x", "y"))
			wantObjects(t, "Index", objects, err, "default/a", "default/b")
			objects, err = indexer.Index(name, withLabels("other"))
			wantObjects(t, "Index without values", objects, err)
		}
		source.Modify(withLabels("a", "y", "z"))
		source.Delete(withLabels("b", "y"))
		source.Add(withLabels("c", "z"))
		synctest.Wait()
		for _, name := range names {
			index(t, indexer, name, "x")
			index(t, indexer, name, "y", "default/a")
			index(t, indexer, name, "z", "default/a", "default/c")
			// A value that no object has any more is not listed.
			wantKeys(t, name, indexer.ListIndexFuncValues(name), nil, "y", "z")
		}
	})
}

// TestIndexerRefuses: a name of an index that exists, in which case no index of the call is
// added; an index that does not exist; an index after the end.
func TestIndexerRefuses(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		informer := newInformer(newSource(t), &corev1.Pod{}, clientgo.SharedIndexInformerOptions{Indexers: clientgo.Indexers{"n": podIndexByLabel}})
		conflict := clientgo.Indexers{"m": allLabels, "n": podIndexByLabel}
		if informer.AddIndexers(conflict) == nil {
			t.Error("before Run: an index was added twice")
		}
		stop := runSynced(t, informer)
		if informer.AddIndexers(conflict) == nil {
			t.Error("after Run: an index was added twice")
		}
		indexer := informer.GetIndexer()
		wantKeys(t, "GetIndexers", slices.Collect(maps.Keys(indexer.GetIndexers())), nil, "n")
		_, ofIndex := indexer.Index("none", newPod("a"))
		_, ofByIndex := indexer.ByIndex("none", "a")
		_, ofIndexKeys := indexer.IndexKeys("none", "a")
		if ofIndex == nil || ofByIndex == nil || ofIndexKeys == nil {
			t.Errorf("the errors of an index that does not exist are %v, %v and %v", ofIndex, ofByIndex, ofIndexKeys)
		}
		if values := indexer.ListIndexFuncValues("none"); len(values) != 0 {
			t.Errorf("an index that does not exist has the values %q", values)
		}
		stop()
		if informer.AddIndexers(clientgo.Indexers{"late": allLabels}) == nil {
			t.Error("an index was added after the end")
		}
	})
}

// TestNamespaceIndex: the index by namespace, with objects that have one and objects that
// have none. The function is client-go's, or the one of this package, or the program's.
func TestNamespaceIndex(t *testing.T) {
	for name, function := range map[string]clientgo.IndexFunc{
		"of client-go": clientgo.MetaNamespaceIndexFunc,
		"of tidings":   cache.MetaNamespaceIndexFunc,
		"of a program": func(obj any) ([]string, error) { return []string{obj.(*corev1.Pod).Namespace}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				informer := newInformer(newSource(t), &corev1.Pod{}, clientgo.SharedIndexInformerOptions{Indexers: clientgo.Indexers{cache.NamespaceIndex: function}})
				indexer := informer.GetIndexer()
				for _, name := range []string{"x/a", "y/b", "x/c", "d", "xx/e"} {
					namespace, name, err := cache.SplitMetaNamespaceKey(name)
					must(t, err)
					must(t, indexer.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}))
				}
				index(t, indexer, cache.NamespaceIndex, "x", "x/a", "x/c")
				index(t, indexer, cache.NamespaceIndex, "y", "y/b")
				index(t, indexer, cache.NamespaceIndex, "", "d")
				index(t, indexer, cache.NamespaceIndex, "z")
				wantKeys(t, "the namespaces", indexer.ListIndexFuncValues(cache.NamespaceIndex), nil, "", "x", "xx", "y")
				objects, err := indexer.Index(cache.NamespaceIndex, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x"}})
				wantObjects(t, "Index", objects, err, "x/a", "x/c")
				if informer.AddIndexers(clientgo.Indexers{cache.NamespaceIndex: function}) == nil {
					t.Error("the index was added twice")
				}
			})
		})
	}
}

// TestIndexerWithoutIndexers: indexes can be added to an informer that was made with none
// at all. (client-go panics.)
func TestIndexerWithoutIndexers(t *testing.T) {
	informer := cache.NewSharedIndexInformer(&script{}, &corev1.Pod{}, 0, nil)
	must(t, informer.AddIndexers(clientgo.Indexers{"n": podIndexByLabel}))
	must(t, informer.GetStore().Add(labelled("a", "1")))
	index(t, informer.GetIndexer(), "n", "1", "default/a")
}
