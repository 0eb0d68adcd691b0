package ctrlruntime_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/ctrlruntime"
)

// informers returns the number of informers of the cache.
func (w *clientWorld) informers() int { return len(ctrlruntime.Informers(w.cache).Health()) }

// TestC03_AnInformerThatIsRemovedBeforeTheStart: it never runs, so that no page shows it, no read
// waits for it, and no writes are kept for it.
func TestC03_AnInformerThatIsRemovedBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := cache.Options{DefaultNamespaces: map[string]cache.Config{"shop": {}}}
		w := &clientWorld{world: newWorld(t, o)}
		w.server.RefuseStreamedLists(true)
		w.server.Inject(lateWatches, apisim.Stall(apisim.EachFrame, late))
		w.make(ctrlruntime.NewCache)
		m := configMap("shop", "x", nil)
		w.must(w.cache.IndexField(t.Context(), m, "any", func(client.Object) []string { return nil }))
		w.must(w.cache.RemoveInformer(t.Context(), m))
		if n := w.informers(); n != 0 {
			t.Errorf("%d informers after one was removed", n)
		}
		w.start()
		w.client = w.newClient(ctrlruntime.NewClient)
		w.absent(m)
		w.must(w.client.Create(t.Context(), m))
		w.reads(m, false, late, late)
		w.must(ctrlruntime.Informers(w.cache).WaitFor(w.within(time.Second), m))
	})
}

// TestC03_ANamespaceForATypeWithoutNamespaces: controller-runtime ignores it.
func TestC03_ANamespaceForATypeWithoutNamespaces(t *testing.T) {
	for name, o := range map[string]cache.Options{
		"one cache": {}, "caches of namespaces": {DefaultNamespaces: map[string]cache.Config{"blog": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			withClient(t, o, late, func(w *clientWorld) {
				n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
				w.absent(n)
				w.must(w.client.Create(w.Context(), n))
				d := took(func() {
					w.must(w.client.Get(w.Context(), client.ObjectKey{Namespace: "shop", Name: "x"}, n))
				})
				if d != late {
					t.Errorf("the read took %v, want %v", d, late)
				}
			})
		})
	}
}

// TestC03_AllNamespacesBesideOne: the informer of the others never shows the objects in that one.
func TestC03_AllNamespacesBesideOne(t *testing.T) {
	o := cache.Options{DefaultNamespaces: map[string]cache.Config{"shop": {}, cache.AllNamespaces: {}}}
	withClient(t, o, late, func(w *clientWorld) {
		w.warm(&corev1.ConfigMapList{})
		for _, namespace := range []string{"shop", "blog"} {
			w.must(w.client.Create(w.Context(), configMap(namespace, "x", nil)))
			if _, d := w.lists(&corev1.ConfigMapList{}); d != late {
				t.Errorf("the list after a write in %s took %v, want %v", namespace, d, late)
			}
		}
		if n, d := w.lists(&corev1.ConfigMapList{}); n != 2 || d != 0 {
			t.Errorf("%d objects after %v, want 2 at once", n, d)
		}
	})
}

// TestC03_ReadsThatMakeNoInformer have controller-runtime's error at once, with or without
// writes.
func TestC03_ReadsThatMakeNoInformer(t *testing.T) {
	inShop := map[string]cache.Config{"shop": {}}
	notCached := func(err error) bool {
		wrong := new(cache.ErrResourceNotCached)
		return errors.As(err, &wrong)
	}
	for name, test := range map[string]struct {
		options cache.Options
		is      func(error) bool
	}{
		"an unknown namespace": {cache.Options{DefaultNamespaces: inShop}, func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "unknown namespace")
		}},
		"ReaderFailOnMissingInformer": {cache.Options{ReaderFailOnMissingInformer: true}, notCached},
	} {
		t.Run(name, func(t *testing.T) {
			withClient(t, test.options, time.Hour, func(w *clientWorld) {
				_, err := w.cache.GetInformer(w.Context(), configMap("shop", "x", nil))
				w.must(err)
				w.must(w.client.Create(w.Context(), configMap("shop", "x", nil)))
				d := took(func() {
					err = w.client.Get(w.Context(), client.ObjectKey{Namespace: "blog", Name: "x"}, &corev1.Secret{})
				})
				if !test.is(err) || d != 0 {
					t.Errorf("the read took %v: %v", d, err)
				}
				if n := w.informers(); n != 1 {
					t.Errorf("there are %d informers, want the first one alone", n)
				}
			})
		})
	}
}

// TestC03_TheFirstReadOfATypeAfterAnUnknownOutcome: the informer that it makes holds the state
// before the write, which the server applies later.
func TestC03_TheFirstReadOfATypeAfterAnUnknownOutcome(t *testing.T) {
	withClient(t, cache.Options{}, late, func(w *clientWorld) {
		m, err := apisim.Create(w.Context(), w.server, configMap("shop", "x", nil))
		w.must(err)
		w.server.Inject(apisim.Match{Verb: "update", Times: 1}, apisim.ApplyLater(5*time.Second, 504))
		if err := w.client.Update(w.Context(), labelled(m.DeepCopy(), "2")); err == nil {
			t.Fatal("the write has no error")
		}
		read := &corev1.ConfigMap{}
		w.must(w.client.Get(w.Context(), client.ObjectKeyFromObject(m), read))
		if read.Labels["written-by"] != "2" {
			t.Errorf("the labels are %v", read.Labels)
		}
	})
}

// TestC03_TheInformerOfAllOtherNamespaces: it shows nothing of a namespace that has a cache of its
// own, and no read of that namespace waits for it.
func TestC03_TheInformerOfAllOtherNamespaces(t *testing.T) {
	o := cache.Options{DefaultNamespaces: map[string]cache.Config{cache.AllNamespaces: {}, "shop": {}}}
	for _, deleted := range []bool{false, true} {
		withClient(t, o, late, func(w *clientWorld) {
			w.must(w.client.List(w.Context(), &corev1.PodList{}, client.InNamespace("blog")))
			_, untyped := untypedOf(corev1.SchemeGroupVersion.WithKind("Pod")) // whose watch is late
			w.must(w.client.List(w.Context(), untyped, client.InNamespace("shop")))
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}
			pod.Namespace, pod.Name = "shop", "x"
			w.must(w.client.Create(w.Context(), pod))
			if err := ctrlruntime.Informers(w.cache).WaitFor(w.Context(), pod); !errors.Is(err, ctrlruntime.ErrNoInformer) {
				t.Errorf("WaitFor: %v, want ErrNoInformer", err)
			}
			if deleted {
				w.must(w.client.Delete(w.Context(), pod))
			}
			began := time.Now()
			err := w.client.Get(w.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})
			if d := time.Since(began); apierrors.IsNotFound(err) != deleted || d > late {
				t.Errorf("deleted %v: after %v: %v", deleted, d, err)
			}
		})
	}
}
