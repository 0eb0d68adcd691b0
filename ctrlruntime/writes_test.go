package ctrlruntime

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/controller/guard"
)

// fakeInformer is an informer of the ConfigMaps of all namespaces, which has reached a version.
type fakeInformer struct {
	toolscache.SharedIndexInformer
	reached string
	cached  map[string]string // versions by key; the UID of each is its key
}

func (*fakeInformer) IsStopped() bool                            { return false }
func (*fakeInformer) HasStarted() bool                           { return true }
func (*fakeInformer) Over() error                                { return nil }
func (*fakeInformer) WaitFor(context.Context, string) error      { return nil }
func (f *fakeInformer) Reached(string) (version string, ok bool) { return f.reached, true }
func (f *fakeInformer) SuspectWatch(string, string, string)      {}
func (f *fakeInformer) CatchUp(string, string)                   {}

func (*fakeInformer) Await(context.Context, func() (bool, error)) error { return nil }

func (f *fakeInformer) Cached(key string) (version, uid string, ok bool) {
	version, ok = f.cached[key]
	return version, key, ok
}

func (f *fakeInformer) Received(key string) (version, uid string, ok bool) { return f.Cached(key) }

// TestWritesAreForgotten when all informers show them.
func TestWritesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		configMaps := schema.GroupResource{Resource: "configmaps"}
		of := func(w guard.Write) []guard.Write {
			w.Resource, w.Namespace = configMaps, "shop"
			return []guard.Write{w}
		}
		s := newWrites(nil, &InformerSet{})
		expect := func(when string, want int64) {
			t.Helper()
			if n := s.open.Load(); n != want || s.none() != (want == 0) {
				t.Errorf("%s: %d writes, want %d", when, n, want)
			}
			kept := 0
			for _, at := range s.places {
				kept += len(at)
			}
			if int64(kept) != want {
				t.Errorf("%s: %d writes are kept, want %d", when, kept, want)
			}
		}
		s.record(of(guard.Write{Name: "x", UID: "shop/x", Version: "5"}))
		expect("without an informer", 0)
		s.record(of(guard.Write{Name: "x", Unknown: true, NotBefore: time.Now().Add(time.Minute)}))
		expect("an unknown one without an informer", 1)
		time.Sleep(time.Minute)
		s.sweep()
		expect("once its request has ended", 0)

		f := &fakeInformer{reached: "5"}
		s.informers.all = []*member{{
			informerKey{kindKey: kindKey{kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}}, resource: "configmaps"}, f, f,
		}}
		for _, version := range []string{"6", "7", "8"} {
			s.record(of(guard.Write{Name: "x", UID: "shop/x", Version: version}))
			expect("the newest of an object", 1)
		}
		s.record(of(guard.Write{Name: "x", UID: "shop/x", Gone: true}))
		expect("the end of an object that has yet to show", 2)
		f.reached = "7"
		s.record(of(guard.Write{Name: "y", UID: "shop/y", Version: "9"}))
		expect("another object", 3)
		f.reached = "8"
		time.Sleep(sweepAfter)
		s.sweep()
		expect("the first one shows", 1)
		f.reached = "10"
		s.record(of(guard.Write{Name: "z", UID: "shop/z", Version: "10"}))
		expect("all show", 0)
	})
}
