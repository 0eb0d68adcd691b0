package ctrlruntime_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/ctrlruntime"
)

// inWorld runs a test with a cache of NewCache, in a bubble.
func inWorld(t *testing.T, o cache.Options, run func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, o)
		seed(w)
		w.make(ctrlruntime.NewCache)
		w.start()
		run(w)
	})
}

// found returns the names of the objects in a list.
func (w *world) found(list client.ObjectList, opts ...client.ListOption) (names []string) {
	w.Helper()
	if err := w.cache.List(w.Context(), list, opts...); err != nil {
		w.Fatal(err)
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		w.Fatal(err)
	}
	for _, obj := range objects {
		names = append(names, client.ObjectKeyFromObject(obj.(client.Object)).String())
	}
	slices.Sort(names)
	return names
}

func (w *world) want(what string, got []string, want ...string) {
	w.Helper()
	if !slices.Equal(got, want) {
		w.Errorf("%s: %q, want %q", what, got, want)
	}
}

// indexes returns the names of the indexes of the only informer.
func (w *world) indexes() (names []string) {
	w.Helper()
	views := ctrlruntime.Informers(w.cache).Inspect()
	if len(views) != 1 {
		w.Fatalf("%d informers, want 1", len(views))
	}
	for _, index := range views[0].Usage().Indexes {
		names = append(names, index.Name)
	}
	slices.Sort(names)
	return names
}

// TestListByLabel: the first list by a label adds an index of it. A selector whose labels have an
// index already adds none, nor does one without values.
func TestListByLabel(t *testing.T) {
	inWorld(t, cache.Options{}, func(w *world) {
		var list corev1.ConfigMapList
		w.want("without an index", w.found(&list, client.HasLabels{"shade"}), "attic/red", "blog/red", "shop/red")
		w.want("indexes after an existence", w.indexes())
		w.want("red", w.found(&list, client.MatchingLabels{"color": "red"}), "attic/red", "blog/red", "shop/red")
		w.want("red in shop", w.found(&list, client.MatchingLabels{"color": "red"}, client.InNamespace("shop")), "shop/red")
		w.want("red and 1", w.found(&list, client.MatchingLabels{"color": "red", "shade": "1"}), "blog/red")
		w.want("indexes", w.indexes(), "label color")
		w.want("shade", w.found(&list, client.MatchingLabels{"shade": "2"}), "attic/red")
		w.want("indexes of both", w.indexes(), "label color", "label shade")
		for i := range 20 {
			w.found(&list, client.MatchingLabels{fmt.Sprintf("label-%d", i): "x"})
		}
		if n := len(w.indexes()); n != 8 {
			w.Errorf("lists by 22 labels have added %d indexes, want 8", n)
		}
		w.update(configMap("shop", "plain", map[string]string{"color": "red", "label-19": "x"}))
		w.settle()
		w.want("without an index of it", w.found(&list, client.MatchingLabels{"label-19": "x"}), "shop/plain")
		w.want("red after a change", w.found(&list, client.MatchingLabels{"color": "red"}), "attic/red", "blog/red", "shop/plain", "shop/red")
	})
}

// TestListByOwner lists by the UID of an owner, alone and with another field.
func TestListByOwner(t *testing.T) {
	owned := func(namespace, name string, uids ...types.UID) *corev1.ConfigMap {
		m := configMap(namespace, name, map[string]string{"shade": "owned"})
		for _, uid := range uids {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: "n", UID: uid})
		}
		return m
	}
	by := func(uid string) client.MatchingFields { return client.MatchingFields{ctrlruntime.OwnerField: uid} }
	inWorld(t, cache.Options{}, func(w *world) {
		w.create(owned("shop", "a", "u", "v"))
		w.create(owned("shop", "b", "v"))
		w.create(owned("blog", "c", "u"))
		w.settle()
		var list corev1.ConfigMapList
		w.want("u", w.found(&list, by("u")), "blog/c", "shop/a")
		w.want("u in shop", w.found(&list, by("u"), client.InNamespace("shop")), "shop/a")
		w.want("indexes", w.indexes(), "owners")
		if err := w.cache.IndexField(w.Context(), &corev1.ConfigMap{}, "a", shade); err != nil {
			w.Fatal(err)
		}
		both := client.MatchingFields{"a": "owned", ctrlruntime.OwnerField: "v"}
		w.want("v and another field", w.found(&list, both), "shop/a", "shop/b")

		// An index of the program has priority.
		if err := w.cache.IndexField(w.Context(), &corev1.ConfigMap{}, ctrlruntime.OwnerField, shade); err != nil {
			w.Fatal(err)
		}
		w.want("by an index of the program", w.found(&list, by("u")))
		w.want("by its value", w.found(&list, by("owned")), "blog/c", "shop/a", "shop/b")
	})
}
