package factory_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// checkObjects compares objects with those wanted, in the form of describe.
func checkObjects(t *testing.T, l library, what string, got []runtime.Object, err error, want ...string) {
	t.Helper()
	var described []string
	for _, o := range got {
		described = append(described, describe(t, l.form, o))
	}
	slices.Sort(described)
	if strings.HasPrefix(what, "List") && got == nil != (l.form == typedForm && len(want) == 0) {
		t.Errorf("%s: a nil list is %v", what, got == nil)
	}
	if err != nil || !slices.Equal(described, want) {
		t.Errorf("%s: %q, %v; want %q", what, described, err, want)
	}
}

// checkNotFound checks that an error is NotFound, and names the resource and the object.
func checkNotFound(t *testing.T, l library, got runtime.Object, err error, name string) {
	t.Helper()
	resource := widgets
	if l.form == typedForm {
		resource = twin(widgets)
	}
	if l.form != typedForm && (got == nil || !reflect.ValueOf(got).IsNil()) || l.form == typedForm && got != nil {
		t.Errorf("Get of a missing object returns a %T %v, want a nil pointer of the form %v, which is no nil interface", got, got, l.form)
	}
	if want := fmt.Sprintf("%s %q not found", resource.GroupResource(), name); !apierrors.IsNotFound(err) || err.Error() != want {
		t.Errorf("Get of a missing object: %v, %v; want the error %s", got, err, want)
	}
}

func TestLister(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widget("a", "one", "red"))
		w.create(t, widget("a", "two", "blue"))
		w.create(t, widget("b", "one", "blue"))
		f := l.factory(w.clients(t), settings{})
		lister := f.ForResource(widgets).Lister()
		got, err := lister.List(labels.Everything())
		checkObjects(t, l, "List before Start", got, err)
		none, err := lister.Get("a/one")
		checkNotFound(t, l, none, err, "a/one")
		start(t, f)

		blue := labels.SelectorFromSet(labels.Set{"color": "blue"})
		got, err = lister.List(labels.Everything())
		checkObjects(t, l, "List", got, err, "a/one red", "a/two blue", "b/one blue")
		got, err = lister.List(blue)
		checkObjects(t, l, "List by label", got, err, "a/two blue", "b/one blue")
		got, err = lister.ByNamespace("a").List(labels.Everything())
		checkObjects(t, l, "List of a namespace", got, err, "a/one red", "a/two blue")
		got, err = lister.ByNamespace("a").List(blue)
		checkObjects(t, l, "List of a namespace by label", got, err, "a/two blue")
		got, err = lister.List(labels.Nothing())
		checkObjects(t, l, "List of nothing", got, err)
		got, err = lister.ByNamespace("c").List(labels.Everything())
		checkObjects(t, l, "List of a namespace without objects", got, err)

		one, err := lister.Get("a/one")
		checkObjects(t, l, "Get", []runtime.Object{one}, err, "a/one red")
		one, err = lister.ByNamespace("b").Get("one")
		checkObjects(t, l, "Get in a namespace", []runtime.Object{one}, err, "b/one blue")
		none, err = lister.Get("b/two")
		checkNotFound(t, l, none, err, "b/two")
		none, err = lister.ByNamespace("b").Get("two")
		checkNotFound(t, l, none, err, "two")
		none, err = lister.Get("one") // a name without a namespace
		checkNotFound(t, l, none, err, "one")
		if again, err := f.ForResource(widgets).Lister().ByNamespace("b").Get("one"); err != nil || again != one {
			t.Errorf("%v, %v; want the same object from both listers", again, err)
		}
	})
}

// TestFactoryIndexesNamespaces checks the one index that informers of a factory begin with, and
// adds another.
func TestFactoryIndexesNamespaces(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widget("a", "one", "red"))
		w.create(t, widget("b", "two", "red"))
		f := l.factory(w.clients(t), settings{})
		informer := f.ForResource(widgets).Informer()
		if indexers := informer.GetIndexer().GetIndexers(); len(indexers) != 1 || indexers[cache.NamespaceIndex] == nil {
			t.Errorf("the indexes are %v, want that of namespaces", indexers)
		}
		start(t, f)
		checkIndex(t, l, informer, cache.NamespaceIndex, "b", "b/two red")
		must(t, informer.AddIndexers(cache.Indexers{"color": byColor}))
		checkIndex(t, l, informer, "color", "red", "a/one red", "b/two red")
		w.update(t, widget("a", "one", "blue"))
		synctest.Wait()
		checkIndex(t, l, informer, "color", "red", "b/two red")
		checkIndex(t, l, informer, "color", "blue", "a/one blue")
		if err := informer.AddIndexers(cache.Indexers{"color": byColor}); err == nil || !strings.Contains(err.Error(), "color") {
			t.Errorf("a second index of the same name: error %v, want one that names it", err)
		}
	})
}

// TestOwnIndexers makes an informer without a factory: it has the given indexes.
func TestOwnIndexers(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widget("a", "one", "red"))
		w.create(t, widget("a", "two", "blue"))
		w.create(t, widget("b", "one", "red"))
		informer := l.informer(w.clients(t), settings{namespace: "a"}, cache.Indexers{"color": byColor})
		run(t, informer)
		checkIndex(t, l, informer, "color", "red", "a/one red")
		if _, err := informer.GetIndexer().ByIndex(cache.NamespaceIndex, "a"); err == nil {
			t.Error("there is an index that was not asked for")
		}
		if indexers := l.informer(w.clients(t), settings{}, nil).GetIndexer().GetIndexers(); len(indexers) != 0 {
			t.Errorf("the indexes are %v, want none", indexers)
		}
	})
}

func byColor(obj any) ([]string, error) {
	o, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	return []string{o.GetLabels()["color"]}, nil
}

func checkIndex(t *testing.T, l library, informer cache.SharedIndexInformer, index, value string, want ...string) {
	t.Helper()
	indexed, err := informer.GetIndexer().ByIndex(index, value)
	var got []runtime.Object
	for _, o := range indexed {
		got = append(got, o.(runtime.Object))
	}
	checkObjects(t, l, "index "+index, got, err, want...)
}
