package ctrlruntime_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
)

var seeds = flag.Uint64("ctrlruntime.seeds", 12, "seeds of TestC03_RandomWrites")

// shape is what a writer writes, and how the cache holds it. The number of a seed selects one.
type shape struct {
	kind                 string // of kinds
	resource             schema.GroupVersionResource
	uid, version, labels bool // what a transform leaves out
	options              cache.Options
	timeout              time.Duration
}

func shapeOf(seed uint64) shape {
	r := rand.New(rand.NewPCG(seed, 0))
	s := shape{uid: r.IntN(3) == 0, version: r.IntN(3) == 0, labels: r.IntN(3) == 0}
	s.kind = []string{"ConfigMap", "Widget", "AllowList", "maps", "widget maps", "allow maps"}[r.IntN(6)]
	switch {
	case strings.HasPrefix(strings.ToLower(s.kind), "allow"):
		s.resource = allowListResource
	case strings.HasPrefix(strings.ToLower(s.kind), "widget"):
		s.resource = widgetResource
	default:
		s.resource = configMapResource
	}
	if r.IntN(2) == 0 {
		s.options.DefaultNamespaces = map[string]cache.Config{"shop": {}, "blog": {}}
	}
	if r.IntN(3) == 0 {
		s.options.NewInformer = tidingscache.NewSharedIndexInformer
	}
	if r.IntN(3) == 0 {
		s.timeout = 10 * time.Second
	}
	s.options.DefaultTransform = leavingOut(s.uid, s.version, s.labels)
	return s
}

// TestC03_RandomWrites: writers, each of objects of its own, write and read while events are late
// and answers are lost. Reads return the states that the server has, without what a transform
// leaves out.
func TestC03_RandomWrites(t *testing.T) {
	for seed := range *seeds {
		shape := shapeOf(seed)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			withTimeout(t, shape.timeout, shape.options, 30*time.Millisecond, func(w *clientWorld) {
				faults := []apisim.Fault{
					apisim.RefuseApplied(500), apisim.Refuse(500, 0), apisim.CutBefore(0),
					apisim.CutWithin(0), apisim.ApplyLater(time.Second, 504), apisim.Refuse(429, time.Second),
				}
				// No request has two faults: after an answer of 500, nothing is applied later.
				for n, verb := range []string{"create", "update", "patch", "delete"} {
					w.server.Inject(apisim.Match{Verb: verb, Probability: 0.15}, faults[(n+int(seed))%len(faults)])
				}
				var all sync.WaitGroup
				for n := range 4 {
					all.Go(func() {
						r := &writer{w, rand.New(rand.NewPCG(seed, uint64(n))), shape, n}
						for step := range 60 {
							r.step(step)
						}
					})
				}
				all.Wait()
			})
			if t.Failed() {
				t.Logf("the shape is %+v", shape)
			}
		})
	}
}

// writer writes objects that no other writer writes.
type writer struct {
	*clientWorld
	*rand.Rand
	shape
	number int
}

// object returns an object of the writer's kind, and a list.
func (w *writer) object(namespace, name string) (client.Object, client.ObjectList) {
	o, list := kinds()[w.kind]()
	o.SetNamespace(namespace)
	o.SetName(name)
	return o, list
}

// step writes an object in a random way, and reads it.
func (w *writer) step(step int) {
	m, list := w.object([]string{"shop", "blog"}[w.IntN(2)], fmt.Sprintf("w%d-%d", w.number, w.IntN(2)))
	mine := map[string]string{"step": fmt.Sprint(step), "writer": fmt.Sprint(w.number)}
	m.SetLabels(mine)
	ctx, key := w.Context(), client.ObjectKeyFromObject(m)
	current, _ := w.object("", "")
	err := w.client.Get(ctx, key, current)
	w.check(step, "before", key, current, err)
	what := "create"
	switch n := w.IntN(6); {
	case err != nil:
		if w.IntN(2) == 0 {
			m.SetFinalizers([]string{"example.com/held"})
		}
		err = w.client.Create(ctx, m)
	case n == 0:
		what, err = "delete", w.client.Delete(ctx, current)
	case n == 1 && len(current.GetFinalizers()) > 0:
		current.SetFinalizers(nil)
		what, err = "remove the finalizer", w.client.Update(ctx, current)
	case n == 2:
		changed, patch := patched(current, fmt.Sprint(step))
		what, err = "patch", w.client.Patch(ctx, changed, patch)
	case n == 3:
		what = "delete all"
		err = w.client.DeleteAllOf(ctx, m, client.InNamespace(m.GetNamespace()),
			client.MatchingLabels{"writer": fmt.Sprint(w.number)})
	default:
		current.SetAnnotations(mine)
		what, err = "update", w.client.Update(ctx, current)
	}
	what = fmt.Sprintf("%s (%v)", what, err)
	if w.IntN(2) == 0 {
		read, _ := w.object("", "")
		err = w.client.Get(ctx, key, read)
		w.check(step, what, key, read, err)
		return
	}
	if err := w.client.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
		w.Errorf("writer %d, step %d, list after %s: %v", w.number, step, what, err)
	}
	var read client.Object
	err = apierrors.NewNotFound(w.resource.GroupResource(), key.Name)
	_ = meta.EachListItem(list, func(obj runtime.Object) error {
		if o := obj.(client.Object); o.GetName() == key.Name {
			read, err = o, nil
		}
		return nil
	})
	w.check(step, "list after "+what, key, read, err)
}

// check compares the states that were read with those of the server.
func (w *writer) check(step int, what string, key client.ObjectKey, read client.Object, err error) {
	stored, missing := w.server.Get(w.Context(), w.resource, key.Namespace, key.Name)
	switch {
	case apierrors.IsNotFound(err) && apierrors.IsNotFound(missing):
	case err != nil || missing != nil:
		w.Errorf("writer %d, step %d, %s of %v: %v, on the server: %v", w.number, step, what, key, err, missing)
	default:
		if want, got := w.state(stored.(client.Object)), w.state(read); want != got {
			w.Errorf("writer %d, step %d, %s of %v: %s, on the server %s", w.number, step, what, key, got, want)
		}
	}
}

// state describes the state of an object, as far as the cache holds it.
func (w *writer) state(o client.Object) string {
	o = o.DeepCopyObject().(client.Object)
	_, _ = leavingOut(w.uid, w.version, w.labels)(o)
	return fmt.Sprint(o.GetUID(), " ", o.GetResourceVersion(), " ", o.GetGeneration(), o.GetLabels(),
		o.GetAnnotations(), o.GetFinalizers(), o.GetDeletionTimestamp())
}
