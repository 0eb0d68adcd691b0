package contract_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// verdict is the treatment of an object by a transform of a test.
type verdict int

const (
	passes verdict = iota
	fails
	panics
	returnsNil
)

// transforms make, for each kind of informer, a transform that follows judge.
var transforms = map[string]func(judge func(tidings.Object) verdict) *tidings.Transform{
	"typed":    judged[*corev1.ConfigMap],
	"dynamic":  judged[*unstructured.Unstructured],
	"metadata": judged[*metav1.PartialObjectMetadata],
}

func judged[T tidings.Object](judge func(tidings.Object) verdict) *tidings.Transform {
	return tidings.NewTransform(func(obj T) (result T, err error) {
		switch judge(obj) {
		case fails:
			return result, errors.New("I do not take these")
		case panics:
			panic("I cannot bear these")
		case returnsNil:
			return result, nil
		}
		return obj, nil
	})
}

// transformed runs a test for every kind of informer with every way of a transform to
// fail. The test says which objects the transform fails for.
func transformed(t *testing.T, test func(w *world, fail func(func(tidings.Object) bool))) {
	for kind, newTransform := range transforms {
		for name, how := range map[string]verdict{"error": fails, "panic": panics, "nil": returnsNil} {
			t.Run(kind+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, kinds[kind], tidings.FactoryOptions{}, apisim.Options{})
					defer w.end()
					var isBad atomic.Pointer[func(tidings.Object) bool]
					transform := newTransform(func(obj tidings.Object) verdict {
						if f := isBad.Load(); f != nil && (*f)(obj) {
							return how
						}
						return passes
					})
					w.probe = w.ask(t, w.factory,
						tidings.Selection{Namespace: "default", Transform: transform})
					test(w, func(f func(tidings.Object) bool) { isBad.Store(&f) })
				})
			})
		}
	}
}

// hold keeps the cache as it is until the returned function is called: a handler that
// blocks the cache is stuck in a call.
func (w *world) hold() (letGo func()) {
	w.Helper()
	stuck := make(chan struct{})
	w.probe.handle(func(event) { <-stuck },
		tidings.HandlerOptions{Name: "brake", Policy: tidings.PolicyBlock, Limit: 1})
	for i := range 3 {
		w.create(fmt.Sprint("brake-", i), "1")
		synctest.Wait()
	}
	return func() {
		close(stuck)
		synctest.Wait()
	}
}

func isNamed(name string) func(tidings.Object) bool {
	return func(obj tidings.Object) bool { return obj.GetName() == name }
}

// TestTransformsAndSlotsArePartsOfWhatIsShared asks for pods of the same and of other transforms
// and slots.
func TestTransformsAndSlotsArePartsOfWhatIsShared(t *testing.T) {
	f := offline(t, tidings.FactoryOptions{})
	same := func(p *corev1.Pod) (*corev1.Pod, error) { return p, nil }
	one, other := tidings.NewTransform(same), tidings.NewTransform(same)
	half, rest := tidings.NewSlots(tidings.ByUID, half(0)), tidings.NewSlots(tidings.ByUID, half(1))
	for _, s := range []tidings.Selection{
		{}, {Transform: one}, {Transform: other}, {Transform: one}, {Slots: half}, {Slots: rest},
		{Slots: half}, {Transform: one, Slots: half}, {},
	} {
		if _, err := tidings.For[*corev1.Pod](f, s); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, h := range f.Health() {
		names = append(names, h.Name)
	}
	expect(t, names, "pods.v1", "pods.v1 [transformed]", "pods.v1 [transformed]",
		"pods.v1 [slots by uid]", "pods.v1 [slots by uid]", "pods.v1 [transformed, slots by uid]")
}
