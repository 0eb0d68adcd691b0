package ctrlruntime_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
)

// TestC03_RandomWrites: writers, each of objects of its own, write and read while events are late
// and answers are lost. Reads return the states that the server has.
func TestC03_RandomWrites(t *testing.T) {
	inTwo := cache.Options{DefaultNamespaces: map[string]cache.Config{"shop": {}, "blog": {}}}
	for seed := range uint64(6) {
		o := cache.Options{}
		if seed%2 == 1 {
			o = inTwo
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			withClient(t, o, 30*time.Millisecond, func(w *clientWorld) {
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
						r := &writer{w, rand.New(rand.NewPCG(seed, uint64(n))), n}
						for step := range 60 {
							r.step(step)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

// writer writes objects that no other writer writes.
type writer struct {
	*clientWorld
	*rand.Rand
	number int
}

// step writes an object in a random way, and reads it.
func (w *writer) step(step int) {
	m := configMap([]string{"shop", "blog"}[w.IntN(2)], fmt.Sprintf("w%d-%d", w.number, w.IntN(2)), nil)
	m.Labels = map[string]string{"step": fmt.Sprint(step), "writer": fmt.Sprint(w.number)}
	ctx, key := w.Context(), client.ObjectKeyFromObject(m)
	current := &corev1.ConfigMap{}
	err := w.client.Get(ctx, key, current)
	w.check(step, "before", key, current, err)
	what := "create"
	switch n := w.IntN(6); {
	case err != nil:
		if w.IntN(2) == 0 {
			m.Finalizers = []string{"example.com/held"}
		}
		err = w.client.Create(ctx, m)
	case n == 0:
		what, err = "delete", w.client.Delete(ctx, current)
	case n == 1 && len(current.Finalizers) > 0:
		current.Finalizers = nil
		what, err = "remove the finalizer", w.client.Update(ctx, current)
	case n == 2:
		changed, patch := patched(current, fmt.Sprint(step))
		what, err = "patch", w.client.Patch(ctx, changed, patch)
	case n == 3:
		what = "delete all"
		err = w.client.DeleteAllOf(ctx, m, client.InNamespace(m.Namespace),
			client.MatchingLabels{"writer": fmt.Sprint(w.number)})
	default:
		current.Data = map[string]string{"step": fmt.Sprint(step)}
		what, err = "update", w.client.Update(ctx, current)
	}
	what = fmt.Sprintf("%s (%v)", what, err)
	if w.IntN(2) == 0 {
		read := &corev1.ConfigMap{}
		err = w.client.Get(ctx, key, read)
		w.check(step, what, key, read, err)
		return
	}
	var list corev1.ConfigMapList
	if err := w.client.List(ctx, &list, client.InNamespace(m.Namespace)); err != nil {
		w.Errorf("writer %d, step %d, list after %s: %v", w.number, step, what, err)
	}
	read, err := &corev1.ConfigMap{}, error(apierrors.NewNotFound(configMapResource.GroupResource(), key.Name))
	for i := range list.Items {
		if list.Items[i].Name == key.Name {
			read, err = &list.Items[i], nil
		}
	}
	w.check(step, "list after "+what, key, read, err)
}

// check compares the states that were read with those of the server.
func (w *writer) check(step int, what string, key client.ObjectKey, read *corev1.ConfigMap, err error) {
	stored, missing := w.server.Get(w.Context(), configMapResource, key.Namespace, key.Name)
	switch {
	case apierrors.IsNotFound(err) && apierrors.IsNotFound(missing):
	case err != nil || missing != nil:
		w.Errorf("writer %d, step %d, %s of %v: %v, on the server: %v", w.number, step, what, key, err, missing)
	case stored.(metav1.Object).GetResourceVersion() != read.ResourceVersion:
		w.Errorf("writer %d, step %d, %s of %v: version %s, on the server %s", w.number, step, what, key,
			read.ResourceVersion, stored.(metav1.Object).GetResourceVersion())
	}
}
