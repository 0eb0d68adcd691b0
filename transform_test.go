package tidings_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/source"
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
var transforms = map[string]func(judge func(metav1.Object) verdict) *tidings.Transform{
	"typed":    judged[*corev1.ConfigMap],
	"dynamic":  judged[*unstructured.Unstructured],
	"metadata": judged[*metav1.PartialObjectMetadata],
}

func judged[T tidings.Object](judge func(metav1.Object) verdict) *tidings.Transform {
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
func transformed(t *testing.T, test func(w *world, fail func(func(metav1.Object) bool))) {
	for kind, newTransform := range transforms {
		for name, how := range map[string]verdict{"error": fails, "panic": panics, "nil": returnsNil} {
			t.Run(kind+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, kinds[kind], tidings.FactoryOptions{}, apisim.Options{})
					defer w.end()
					var isBad atomic.Pointer[func(metav1.Object) bool]
					transform := newTransform(func(obj metav1.Object) verdict {
						if f := isBad.Load(); f != nil && (*f)(obj) {
							return how
						}
						return passes
					})
					w.probe = w.ask(t, w.factory,
						tidings.Selection{Namespace: "default", Transform: transform})
					test(w, func(f func(metav1.Object) bool) { isBad.Store(&f) })
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

func isNamed(name string) func(metav1.Object) bool {
	return func(obj metav1.Object) bool { return obj.GetName() == name }
}

func TestP11_DeleteOfAnObjectWhoseAddIsPending(t *testing.T) {
	transformed(t, func(w *world, fail func(func(metav1.Object) bool)) {
		w.start()
		letGo := w.hold()
		var told follow.Follower
		w.create("a", "1")
		synctest.Wait()
		fail(isNamed("a"))
		w.remove("a")
		synctest.Wait()
		w.probe.handle(told.Handle, tidings.HandlerOptions{})
		told.Take()
		letGo()
		w.agree()
		events := told.Texts()
		expect(w, events[len(events)-2:], "Added default/a 1", "Deleted default/a tombstone 1")
	})
}

// TestP11_ListWithAnObjectWhoseAddIsPending: the state that a failed transform leaves is
// the one that the cache will hold when it comes to the list.
func TestP11_ListWithAnObjectWhoseAddIsPending(t *testing.T) {
	transformed(t, func(w *world, fail func(func(metav1.Object) bool)) {
		w.start()
		letGo := w.hold()
		w.create("a", "1")
		w.create("b", "1")
		synctest.Wait()
		fail(isNamed("a"))
		w.update("a", "2")
		w.remove("b")
		w.create("b", "2")
		w.server.Restart(apisim.RestartOptions{Down: time.Second})
		w.settle()
		var told follow.Follower
		w.probe.handle(told.Handle, tidings.HandlerOptions{})
		told.Take()
		letGo()
		for _, e := range told.Take() {
			if e.Key == "default/a" && e.Type == tidings.Deleted {
				w.Errorf("%v, although it exists", e)
			}
		}
		if got := label(w.probe.get("default/a")) + label(w.probe.get("default/b")); got != "12" {
			w.Errorf("the cache holds the states %q of a and b, want 1 and 2; health %+v",
				got, w.health())
		}
	})
}

// TestP16_FailedTransformLeavesNoStateOfAnOldHistory: it would look newer than all that
// comes.
func TestP16_FailedTransformLeavesNoStateOfAnOldHistory(t *testing.T) {
	transformed(t, func(w *world, fail func(func(metav1.Object) bool)) {
		w.create("a", "1")
		w.start()
		backup := w.server.Snapshot()
		for n := range 20 {
			w.update("a", fmt.Sprint("new-", n))
		}
		synctest.Wait()
		fail(isNamed("a"))
		w.server.Rewind(backup)
		time.Sleep(time.Hour) // the watch is quiet, and the server's version is asked for
		fail(func(metav1.Object) bool { return false })
		w.update("a", "2")
		w.settle()
		w.agree()
	})
}

func TestP11_TransformThatMakesAnotherObjectFails(t *testing.T) {
	for name, change := range map[string]func(*corev1.ConfigMap){
		"keep the name":                           func(c *corev1.ConfigMap) { c.Name = "z" },
		"keep the name and the namespace":         func(c *corev1.ConfigMap) { c.Namespace = "" },
		`changed the uid from "uid-a" to "other"`: func(c *corev1.ConfigMap) { c.UID = "other" },
		`changed the resourceVersion from "5" to`: func(c *corev1.ConfigMap) { c.ResourceVersion = "1000" },
		"": func(c *corev1.ConfigMap) { c.UID, c.ResourceVersion = "", "" },
	} {
		t.Run(name, func(t *testing.T) {
			s := &fakeSource{lists: [][]*corev1.ConfigMap{{stateAt("b", "4", "1"), stateAt("a", "5", "1")}}}
			var o informerOptions
			o.Transform = func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				if c = c.DeepCopy(); c.Name == "a" {
					change(c)
				}
				return c, nil
			}
			runSource(t, s, o, func(i sourced) {
				h := i.Health()
				if name == "" {
					i.send(source.Modified, stateAt("a", "6", "2"))
					expect(t, i.told.Texts(), "Added default/a initial 1",
						"Added default/b initial 1", "Updated default/a 1→2")
					return
				}
				expect(t, i.told.Texts(), "Added default/b initial 1")
				if h.TransformErrors != 1 || !strings.Contains(h.LastTransformError.Error(), name) {
					t.Errorf("%d transform errors, the last: %v",
						h.TransformErrors, h.LastTransformError)
				}
			})
		})
	}
}
