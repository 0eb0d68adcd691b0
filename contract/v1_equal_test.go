package contract_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/decode/dedup/deduptest"
)

// TestV1_EqualToTheWholeObject compares views with the whole objects of another informer, field by
// field, while random pods come, change and go: after streamed lists and lists in pages, events and
// relists, in protobuf and in JSON.
func TestV1_EqualToTheWholeObject(t *testing.T) {
	for _, paged := range []bool{false, true} {
		t.Run(fmt.Sprintf("paged %v", paged), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := tidings.FactoryOptions{Transport: tidings.Transport{NoStreamedLists: paged, PageSize: 3}}
				w := newWorld(t, nil, o, apisim.Options{})
				defer w.end()
				equalToTheWhole(w)
			})
		})
	}
}

func equalToTheWhole(w *world) {
	whole, err := tidings.For[*corev1.Pod](w.factory, tidings.Selection{})
	w.must(err)
	views, err := tidings.View[*phaseView, *corev1.Pod](w.factory, tidings.Selection{})
	w.must(err)
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	unchecked, err := tidings.UncheckedView[*phaseView](w.factory, kind, tidings.Selection{})
	w.must(err)
	const seed = 1
	filler, random := deduptest.New(seed), rand.New(rand.NewPCG(seed, 0))
	filled := 0
	change := func() {
		pod := &corev1.Pod{}
		w.must(utiljson.Unmarshal(filler.JSON(w.T, reflect.TypeFor[corev1.Pod](), 5), pod))
		pod.TypeMeta, pod.ObjectMeta = metav1.TypeMeta{}, metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("pod-", random.IntN(9)),
		}
		_, err := w.server.Update(w.Context(), pod)
		switch {
		case apierrors.IsNotFound(err):
			_, err = w.server.Create(w.Context(), pod)
		case err == nil && random.IntN(4) == 0:
			_, err = w.server.Delete(w.Context(), podResource, pod.Namespace, pod.Name)
		}
		w.must(err)
	}
	compare := func(when string) {
		w.Helper()
		for _, of := range []*tidings.Informer[*phaseView]{views, unchecked} {
			if got, want := of.Lister().Len(), whole.Lister().Len(); got != want {
				w.Fatalf("%s: %s has %d objects, want %d", when, of.Name(), got, want)
			}
			for key, view := range of.Lister().All() {
				pod, err := whole.Lister().Get(key)
				w.must(err)
				path := deduptest.Differs(reflect.ValueOf(view).Elem(), reflect.ValueOf(pod).Elem(), "")
				if path != "" {
					w.Fatalf("%s: %s of %s in %s is not the same:\n%+v\n%+v", when, path, key, of.Name(), view, pod)
				}
				if view.Spec.NodeName != "" && len(view.Spec.Volumes) > 0 {
					filled++
				}
			}
		}
	}
	for range 12 {
		change()
	}
	w.start()
	compare("after the list")
	for round := range 30 {
		change()
		synctest.Wait()
		compare("after an event")
		if round%10 == 9 {
			w.server.SetAvailable(false)
			change()
			w.server.Compact()
			w.server.SetAvailable(true)
			time.Sleep(time.Minute)
			synctest.Wait()
			compare("after a relist")
		}
	}
	if lists := views.Health().Lists; lists < 3 || filled < 50 {
		w.Errorf("%d lists, %d objects with all fields: little is proved", lists, filled)
	}
}
