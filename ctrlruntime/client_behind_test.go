package ctrlruntime_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/ctrlruntime"
)

// TestC03_ReadsThatShallNotWait read the cache without a wait.
func TestC03_ReadsThatShallNotWait(t *testing.T) {
	withClient(t, cache.Options{}, late, func(w *clientWorld) {
		m := configMap("shop", "x", nil)
		w.absent(m)
		w.must(w.client.Create(w.Context(), m))
		now := client.DisableReadYourWritesConsistency
		err := w.client.Get(w.Context(), client.ObjectKeyFromObject(m), &corev1.ConfigMap{}, now)
		if n, d := w.lists(&corev1.ConfigMapList{}, now); !apierrors.IsNotFound(err) || n != 0 || d != 0 {
			t.Errorf("%d objects after %v, and %v", n, d, err)
		}
		w.reads(m, false, late, late)
	})
}

// TestC03_ACacheThatLagsForMinutes: a read ends with its context, or after half a minute. A list
// brings the write when two watches do not.
func TestC03_ACacheThatLagsForMinutes(t *testing.T) {
	withClient(t, cache.Options{}, 5*time.Minute, func(w *clientWorld) {
		m := configMap("shop", "x", nil)
		w.absent(m)
		w.must(w.client.Create(w.Context(), m))
		key := client.ObjectKeyFromObject(m)
		d := took(func() {
			if err := w.client.Get(w.within(15*time.Second), key, m.DeepCopy()); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %v", err)
			}
		})
		if d != 15*time.Second {
			t.Errorf("the read with a deadline took %v", d)
		}
		d = took(func() {
			if err := w.client.Get(w.Context(), key, m.DeepCopy()); !errors.Is(err, ctrlruntime.ErrBehind) {
				t.Errorf("the error is %v", err)
			}
		})
		if d != 30*time.Second {
			t.Errorf("the read without a deadline took %v", d)
		}
		w.reads(m, false, 0, 30*time.Second) // the next watch is behind too, and the collection is listed
		time.Sleep(6 * time.Minute)
		w.reads(m, false, 0, 0)
	})
}

// TestC03_WritesThatTheCacheLeavesOut: it has other namespaces, or a selector.
func TestC03_WritesThatTheCacheLeavesOut(t *testing.T) {
	red := labels.SelectorFromSet(labels.Set{"color": "red"})
	for name, o := range map[string]struct {
		options cache.Options
		most    time.Duration // of the first read
	}{
		"namespaces": {cache.Options{DefaultNamespaces: map[string]cache.Config{"shop": {}}}, 0},
		"labels":     {cache.Options{DefaultLabelSelector: red}, 1100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			withClient(t, o.options, time.Hour, func(w *clientWorld) {
				w.warm(&corev1.ConfigMapList{})
				for _, namespace := range []string{"blog", "attic"} {
					w.must(w.client.Create(w.Context(), configMap(namespace, "x", nil)))
				}
				if n, d := w.lists(&corev1.ConfigMapList{}); n != 0 || d > 2*o.most {
					t.Errorf("%d objects after %v", n, d)
				}
				if n, d := w.lists(&corev1.ConfigMapList{}); n != 0 || d != 0 {
					t.Errorf("%d objects after %v", n, d)
				}
			})
		})
	}
}

// TestC03_AWriteThatOthersUndo: the cache passes its version, and the object is gone.
func TestC03_AWriteThatOthersUndo(t *testing.T) {
	withClient(t, cache.Options{}, late, func(w *clientWorld) {
		m := configMap("shop", "x", nil)
		w.absent(m)
		w.must(w.client.Create(w.Context(), m))
		w.remove(configMapResource, "shop", "x")
		time.Sleep(time.Minute)
		w.reads(m, true, 0, 0)
	})
}

// TestC03_AServerThatForbidsTheQuestion: the error names the verbs to grant.
func TestC03_AServerThatForbidsTheQuestion(t *testing.T) {
	withClient(t, cache.Options{}, late, func(w *clientWorld) {
		m := configMap("shop", "x", nil)
		w.absent(m)
		w.must(w.client.Create(w.Context(), m))
		w.reads(m, false, late, late)
		w.server.Inject(apisim.Match{Verb: "update", Times: 1}, apisim.RefuseApplied(500))
		forbidden := w.server.Inject(apisim.Match{Verb: "get"}, apisim.Refuse(403, 0))
		if err := w.client.Update(w.Context(), labelled(m.DeepCopy(), "2")); err == nil {
			t.Fatal("the write has no error")
		}
		err := w.client.Get(w.Context(), client.ObjectKeyFromObject(m), m.DeepCopy())
		if !errors.Is(err, ctrlruntime.ErrBehind) || !strings.Contains(err.Error(), "grant get on configmaps") {
			t.Errorf("the error is %v", err)
		}
		forbidden.Lift()
		read := &corev1.ConfigMap{}
		w.must(w.client.Get(w.Context(), client.ObjectKeyFromObject(m), read))
		if read.Labels["written-by"] != "2" {
			t.Errorf("the labels are %v", read.Labels)
		}
	})
}

// TestC03_ARemovedInformerHoldsNothingUp: the read makes another one, which has the write.
func TestC03_ARemovedInformerHoldsNothingUp(t *testing.T) {
	withClient(t, cache.Options{}, time.Hour, func(w *clientWorld) {
		m := configMap("shop", "x", nil)
		w.absent(m)
		w.must(w.client.Create(w.Context(), m))
		w.must(w.cache.RemoveInformer(w.Context(), m))
		w.reads(m, false, 0, late)
	})
}

// TestC03_BeforeTheCacheRuns reads before the cache runs, which is an error at once.
func TestC03_BeforeTheCacheRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, cache.Options{})
		w.make(ctrlruntime.NewCache)
		c := w.newClient(ctrlruntime.NewClient)
		m := configMap("shop", "x", nil)
		for range 2 {
			var err error
			d := took(func() { err = c.Get(t.Context(), client.ObjectKeyFromObject(m), m) })
			if notStarted := new(cache.ErrCacheNotStarted); !errors.As(err, &notStarted) || d != 0 {
				t.Errorf("the error after %v is %v", d, err)
			}
			_ = c.Create(t.Context(), m)
			w.server.Inject(apisim.Match{Verb: "create"}, apisim.Refuse(500, 0))
		}
	})
}

// TestNewClient checks that other caches are refused, and that a client without a cache is
// controller-runtime's.
func TestNewClient(t *testing.T) {
	withClient(t, cache.Options{}, 0, func(w *clientWorld) {
		stock, err := cache.New(w.server.Config(), cache.Options{Scheme: w.options.Scheme, Mapper: w.mapper()})
		w.must(err)
		o := client.Options{Scheme: w.options.Scheme, Mapper: w.mapper()}
		c, err := ctrlruntime.NewClient(w.server.Config(), o)
		w.must(err)
		w.must(c.Create(w.Context(), configMap("shop", "x", nil)))
		err = c.Get(w.Context(), types.NamespacedName{Namespace: "shop", Name: "x"}, &corev1.ConfigMap{})
		w.must(err)
		o.Cache = &client.CacheOptions{Reader: stock}
		if _, err := ctrlruntime.NewClient(w.server.Config(), o); err == nil || !strings.Contains(err.Error(), "NewCache") {
			t.Errorf("the error for another cache is %v", err)
		}
	})
}

// TestC03_EndsThatTheCacheCannotShow: a program deletes a pod that its cache leaves out. No event
// comes, and its reads go on.
func TestC03_EndsThatTheCacheCannotShow(t *testing.T) {
	red := labels.SelectorFromSet(labels.Set{"color": "red"})
	withClient(t, cache.Options{DefaultLabelSelector: red}, late, func(w *clientWorld) {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}
		pod.Namespace, pod.Name = "shop", "x"
		w.must(w.client.List(w.Context(), &corev1.PodList{}, client.InNamespace("shop")))
		w.must(w.client.Create(w.Context(), pod))
		time.Sleep(5 * time.Second)
		w.must(w.client.Delete(w.Context(), pod))
		began := time.Now()
		err := w.client.Get(w.Context(), client.ObjectKeyFromObject(pod), &corev1.Pod{})
		if d := time.Since(began); !apierrors.IsNotFound(err) || d > 2*time.Second {
			t.Errorf("after %v: %v", d, err)
		}
	})
}
