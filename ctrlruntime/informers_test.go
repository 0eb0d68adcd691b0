package ctrlruntime_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/ctrlruntime"
	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/metrics"
)

// TestInformers: the informers of a cache have health, metrics and pages, until they are removed.
func TestInformers(t *testing.T) {
	inWorld(t, cache.Options{}, func(w *world) {
		set := ctrlruntime.Informers(w.cache)
		collector := metrics.New(metrics.Options{})
		if err := collector.Add(set); err != nil {
			w.Fatal(err)
		}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(collector)
		w.found(&corev1.ConfigMapList{})
		w.found(&WidgetList{})
		w.settle()

		var states []string
		for _, h := range set.Health() {
			states = append(states, h.Name+" "+string(h.State))
		}
		w.want("health", states, "configmaps.v1 "+string(health.StateWatching), "widgets.v1.example.com "+string(health.StateWatching))
		families, err := registry.Gather()
		if err != nil || len(families) == 0 {
			w.Errorf("gathered %d metrics, %v", len(families), err)
		}
		w.pages(set)

		if err := w.cache.RemoveInformer(w.Context(), &Widget{}); err != nil {
			w.Fatal(err)
		}
		w.settle()
		if n := len(set.Health()); n != 1 {
			w.Errorf("%d informers after one was removed, want 1", n)
		}
	})
}

// pages reads the first page of package debug.
func (w *world) pages(set *ctrlruntime.InformerSet) {
	w.Helper()
	pages := debug.New(debug.Options{})
	defer pages.Close()
	if err := pages.Add(set); err != nil {
		w.Fatal(err)
	}
	answer := httptest.NewRecorder()
	pages.ServeHTTP(answer, httptest.NewRequest("GET", "http://localhost/", nil))
	for _, name := range []string{"configmaps.v1", "widgets.v1.example.com"} {
		if !strings.Contains(answer.Body.String(), name) {
			w.Errorf("the first page does not name %s", name)
		}
	}
}

// TestWaitFor waits for its own writes, in the informer of the object's form and namespace.
func TestWaitFor(t *testing.T) {
	o := cache.Options{DefaultNamespaces: map[string]cache.Config{"shop": {}, "blog": {}}}
	inWorld(t, o, func(w *world) {
		set := ctrlruntime.Informers(w.cache)
		w.found(&corev1.ConfigMapList{})
		written := func(namespace string) *corev1.ConfigMap {
			obj, err := w.server.Create(w.Context(), configMap(namespace, "new", nil))
			if err != nil {
				w.Fatal(err)
			}
			return obj.(*corev1.ConfigMap)
		}
		inShop, inBlog := written("shop"), written("blog")
		for _, obj := range []*corev1.ConfigMap{inShop, inBlog} {
			if err := set.WaitFor(w.Context(), obj); err != nil {
				w.Fatal(err)
			}
			if err := w.cache.Get(w.Context(), client.ObjectKeyFromObject(obj), &corev1.ConfigMap{}); err != nil {
				w.Errorf("after WaitFor: %v", err)
			}
		}

		untyped, _ := untypedOf(configMapKind)
		untyped.SetNamespace("shop")
		untyped.SetResourceVersion(inShop.ResourceVersion)
		for _, obj := range []client.Object{untyped, written("attic")} {
			if err := set.WaitFor(w.Context(), obj); !errors.Is(err, ctrlruntime.ErrNoInformer) {
				w.Errorf("%T in %s: %v, want ErrNoInformer", obj, obj.GetNamespace(), err)
			}
		}
		inShop.ResourceVersion = "1000000"
		if err := set.WaitFor(w.brief(), inShop); err == nil || !strings.Contains(err.Error(), "version 1000000") {
			w.Errorf("a version of the future: %v", err)
		}
		inShop.ResourceVersion = ""
		if err := set.WaitFor(w.Context(), inShop); err == nil {
			w.Error("no version: want an error")
		}
		time.Sleep(time.Second)
	})
}

// TestOtherCaches: a cache that is not one of NewCache has no informers.
func TestOtherCaches(t *testing.T) {
	inWorld(t, cache.Options{}, func(w *world) {
		of, err := cache.New(w.server.Config(), cache.Options{Scheme: newScheme()})
		if err != nil {
			w.Fatal(err)
		}
		set := ctrlruntime.Informers(of)
		if set != nil || set.Health() != nil || set.WaitFor(w.Context(), configMap("shop", "red", nil)) == nil {
			w.Error("controller-runtime's cache has informers")
		}
	})
}
