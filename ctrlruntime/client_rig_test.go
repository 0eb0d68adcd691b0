package ctrlruntime_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/ctrlruntime"
)

// late is the delay of events.
const late = 500 * time.Millisecond

// lateWatches matches the watches that follow a list. The refusal of a streamed list is not late.
var lateWatches = apisim.Match{Verb: "watch", Query: map[string]string{"resourceVersion": ""}}

// clientWorld is a world with a client that reads from its cache.
type clientWorld struct {
	*world
	client client.Client
}

// mapper returns the mapper that a manager gets by discovery.
func (w *world) mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[string]meta.RESTScope{
		"ConfigMap": meta.RESTScopeNamespace, "Secret": meta.RESTScopeNamespace,
		"Pod": meta.RESTScopeNamespace, "Namespace": meta.RESTScopeRoot, "Node": meta.RESTScopeRoot,
	} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), scope)
	}
	mapper.Add(widgetKind, meta.RESTScopeNamespace)
	mapper.AddSpecific(allowListKind, allowListResource, widgetVersion.WithResource("allowlist"), meta.RESTScopeNamespace)
	return mapper
}

// withClient runs a test in a bubble, in which the events of each watch come late, one after the
// other.
func withClient(t *testing.T, o cache.Options, delay time.Duration, run func(*clientWorld)) {
	t.Helper()
	withTimeout(t, 0, o, delay, run)
}

// withTimeout is withClient with a timeout of the rest.Config.
func withTimeout(t *testing.T, timeout time.Duration, o cache.Options, delay time.Duration, run func(*clientWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &clientWorld{world: newWorld(t, o)}
		w.config.Timeout = timeout
		w.server.RefuseStreamedLists(true) // their frames would be late too
		if delay > 0 {
			w.server.Inject(lateWatches, apisim.Stall(apisim.EachFrame, delay))
		}
		w.make(ctrlruntime.NewCache)
		w.start()
		w.client = w.newClient(ctrlruntime.NewClient)
		run(w)
	})
}

// newClient returns a client of the cache.
func (w *world) newClient(newClient client.NewClientFunc) client.Client {
	w.Helper()
	c, err := newClient(w.config, client.Options{
		Scheme: w.options.Scheme, Mapper: w.mapper(),
		Cache: &client.CacheOptions{Reader: w.cache, Unstructured: true},
	})
	w.must(err)
	return c
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// took returns the time that a function takes.
func took(do func()) time.Duration {
	began := time.Now()
	do()
	return time.Since(began)
}

// reads checks that the cached state of an object is that of the last write, or that it is gone,
// and that the read takes a time between two.
func (w *clientWorld) reads(written client.Object, gone bool, least, most time.Duration) {
	w.Helper()
	read := written.DeepCopyObject().(client.Object)
	read.SetResourceVersion("")
	var err error
	d := took(func() {
		err = w.client.Get(w.Context(), client.ObjectKeyFromObject(written), read)
	})
	switch {
	case gone && !apierrors.IsNotFound(err):
		w.Errorf("after the end of %s: version %s, %v", written.GetName(), read.GetResourceVersion(), err)
	case gone:
	case err != nil || read.GetResourceVersion() != written.GetResourceVersion():
		w.Errorf("%s is read with version %q, want %q: %v", written.GetName(),
			read.GetResourceVersion(), written.GetResourceVersion(), err)
	}
	if d < least || d > most {
		w.Errorf("the read of %s took %v, want %v to %v", written.GetName(), d, least, most)
	}
}

// warm makes the informers of the types of lists.
func (w *clientWorld) warm(lists ...client.ObjectList) {
	w.Helper()
	for _, list := range lists {
		w.must(w.client.List(w.Context(), list))
	}
}

// lists returns the names of the objects in a list, and the time that it took.
func (w *clientWorld) lists(list client.ObjectList, o ...client.ListOption) (int, time.Duration) {
	w.Helper()
	d := took(func() { w.must(w.client.List(w.Context(), list, o...)) })
	return meta.LenList(list), d
}

// absent makes the informer of an object that does not exist. controller-runtime looks ten times
// a second whether it is synced.
func (w *clientWorld) absent(o client.Object) {
	w.Helper()
	w.reads(o, true, 0, 200*time.Millisecond)
}

// within returns a context with a deadline.
func (w *clientWorld) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), d)
	w.Cleanup(cancel)
	return ctx
}
