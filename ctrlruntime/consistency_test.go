package ctrlruntime_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
)

// TestConsistencyOption: controller-runtime's client with EnableReadYourWritesConsistency reads the
// same from the cache of NewCache as from its own, and waits where it waits there. It is not made
// for a cache of several namespaces.
func TestConsistencyOption(t *testing.T) {
	both(t, cache.Options{}, func(w *world) {
		seed(w)
		w.server.RefuseStreamedLists(true) // their frames would be late too
		w.server.Inject(lateWatches, apisim.Stall(apisim.EachFrame, late))
	}, consistentReads)
}

// consistentReads writes and reads with the client of the option.
func consistentReads(w *world) {
	c := w.newClient(func(config *rest.Config, o client.Options) (client.Client, error) {
		o.Cache.EnableReadYourWritesConsistency = new(true)
		return client.New(config, o)
	})
	all := []func() client.Object{
		func() client.Object { return configMap("shop", "x", nil) },
		func() client.Object { return &Widget{ObjectMeta: configMap("blog", "x", nil).ObjectMeta} },
		func() client.Object { return widget("shop", "y", 1, nil) },
	}
	for _, made := range all {
		_, err := w.cache.GetInformer(w.Context(), made())
		w.must(err)
	}
	w.at(10 * time.Second)
	for _, made := range all {
		o := made()
		read := func(when string) {
			got := made()
			began := time.Now()
			err := c.Get(w.Context(), client.ObjectKeyFromObject(o), got)
			w.note("%s: get %T, waits %v: version %s of %s, %v", when, o, time.Since(began) > 0,
				got.GetResourceVersion(), o.GetResourceVersion(), err)
		}
		write := func(what string, err error) {
			w.note("%s: %v", what, err)
			read(what)
		}
		ctx := w.Context()
		read("before")
		write("create", c.Create(ctx, o))
		write("update", c.Update(ctx, labelled(o, "update")))
		o, patch := patched(o, "patch")
		write("patch", c.Patch(ctx, o, patch))
		o.SetFinalizers([]string{"example.com/held"})
		write("finalizer", c.Update(ctx, o))
		write("delete", c.Delete(ctx, o))
		o.SetFinalizers(nil)
		w.must(c.Get(ctx, client.ObjectKeyFromObject(o), o))
		o.SetFinalizers(nil)
		write("last finalizer", c.Update(ctx, o))
		time.Sleep(5 * time.Second)
		o = made()
		write("create again", c.Create(ctx, o))
		write("delete again", c.Delete(ctx, o))
	}
	for _, namespace := range []string{"shop", "blog"} {
		w.must(c.Create(w.Context(), configMap(namespace, "z", nil)))
	}
	for _, in := range []string{"shop", ""} {
		var list corev1.ConfigMapList
		began := time.Now()
		err := c.List(w.Context(), &list, client.InNamespace(in))
		w.note("list in %q, waits %v: %d, %v", in, time.Since(began) > 0, len(list.Items), err)
	}
	w.note("delete all: %v", c.DeleteAllOf(w.Context(), &corev1.ConfigMap{}, client.InNamespace("shop")))
	w.note("read with a deadline: %s", fmt.Sprint(c.Get(w.brief(), client.ObjectKey{Namespace: "shop", Name: "z"}, &corev1.ConfigMap{})))
}
