package controller_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// informerIn returns an informer of some namespaces.
func informerIn[T tidings.Object](w *world, namespaces ...string) *tidings.Informer[T] {
	w.Helper()
	i, err := tidings.For[T](w.factory, tidings.Selection{Namespaces: namespaces})
	fatal(w.T, err)
	return i
}

// refuseIn refuses the lists and watches of a resource in a namespace, and ends those that run.
func refuseIn(w *world, resource, namespace string) (lift func()) {
	var faults []*apisim.Injection
	for _, verb := range []string{"list", "watch"} {
		match := apisim.Match{Resource: resource, Namespace: namespace, Verb: verb}
		faults = append(faults, w.server.Inject(match, apisim.Refuse(http.StatusForbidden, 0)))
	}
	w.server.CutConnections()
	return func() {
		for _, f := range faults {
			f.Lift()
		}
	}
}

// TestS5_ASlotIsJudgedByTheNamespacesInIt: by namespace, the slot of a namespace that fails for long is
// not in order, whatever happens to others. By UID, any slot may have its objects.
func TestS5_ASlotIsJudgedByTheNamespacesInIt(t *testing.T) {
	without := func(names ...string) slot.Set { return slot.All().Minus(slotsOf(names...)) }
	for by, want := range map[slot.Key][]slot.Set{
		controller.ByNamespace: {slot.All(), without("b"), without("b"), without("a", "b"), without("a"), slot.All()},
		controller.ByUID:       {slot.All(), {}, {}, {}, {}, slot.All()},
	} {
		inWorld(t, func(w *world) {
			s := controller.NewSlots(by)
			var log calls
			c := control(w, informerIn[*corev1.ConfigMap](w, "a", "b"), options{Slots: s}, isCalled(&log))
			stop, term := start(w, c), newTerm()
			s.Begin(term)
			fill(w.ctx, t, s, slot.All())
			s.Serve(owned(slot.All()))
			step := 0
			inOrder := func(d time.Duration) {
				time.Sleep(d)
				synctest.Wait()
				if got := s.Work().Ready; got != want[step] {
					t.Errorf("%s, step %d: in order are %v, want %v", by, step, got, want[step])
				}
				step++
			}
			inOrder(time.Minute)
			liftB := refuseIn(w, "configmaps", "b")
			inOrder(time.Hour)
			liftA := refuseIn(w, "configmaps", "a")
			inOrder(3 * time.Second)
			inOrder(2 * time.Minute)
			liftB()
			inOrder(10 * time.Minute)
			liftA()
			inOrder(10 * time.Minute)
			term.end(errors.New("the test is over"))
			fatal(t, stop())
		})
	}
}

// TestS5_AWatchThatRunsHasEndedTheFailures, although a quiet namespace has no event for a minute after the
// outage.
func TestS5_AWatchThatRunsHasEndedTheFailures(t *testing.T) {
	inWorld(t, func(w *world) {
		s := controller.NewSlots(controller.ByNamespace)
		var log calls
		c := control(w, informerIn[*corev1.ConfigMap](w, "a", "b"), options{Slots: s}, isCalled(&log))
		stop, term := start(w, c), newTerm()
		s.Begin(term)
		fill(w.ctx, t, s, slot.All())
		s.Serve(owned(slotsOf("b")))
		lift := refuseIn(w, "configmaps", "b")
		time.Sleep(20 * time.Second)
		lift()
		for n := range 120 {
			time.Sleep(time.Second)
			if got := s.Work().Ready; got != slotsOf("b") {
				t.Errorf("after %d s in order are %v", n, got)
				break
			}
		}
		term.end(errors.New("the test is over"))
		fatal(t, stop())
	})
}

// TestC14_AnAddedNamespaceHoldsUpItsOwnKeysAlone: it cannot be read by a secondary. Keys of others are
// called, also by a run that begins then, and its own once it can be read.
func TestC14_AnAddedNamespaceHoldsUpItsOwnKeysAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
		create(w, configMap("a", "x"))
		create(w, configMap("c", "z"))
		maps, secrets := informerIn[*corev1.ConfigMap](w, "a", "b"), informerIn[*corev1.Secret](w, "a", "b")
		s := controller.NewSlots(controller.ByNamespace)
		var log calls
		c := control(w, maps, options{
			Slots: s, Secondaries: []secondary{controller.Reads(secrets)},
		}, isCalled(&log))
		stop := start(w, c)
		membership := func(want slot.Set) (end func()) {
			term := newTerm()
			s.Begin(term)
			ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
			defer cancel()
			fill(ctx, t, s, slot.All())
			s.Serve(owned(slot.All()))
			time.Sleep(time.Second)
			synctest.Wait()
			if got := s.Work().Ready; got != want {
				t.Errorf("in order are %v, want %v", got, want)
			}
			return func() {
				term.end(errors.New("the membership is over"))
				s.Drop(slot.All())
			}
		}
		end := membership(slot.All())
		log.expect(t, "a/x")
		lift := refuseIn(w, "secrets", "c")
		fatal(t, secrets.AddNamespace("c"))
		fatal(t, maps.AddNamespace("c"))
		time.Sleep(time.Minute)
		c.Enqueue("a/x")
		c.Enqueue("c/z")
		log.expect(t, "a/x")
		if got, want := s.Work().Ready, slot.All().Minus(slotsOf("c")); got != want {
			t.Errorf("in order are %v, want %v", got, want)
		}
		end()
		end = membership(slot.All().Minus(slotsOf("c")))
		log.expect(t, "a/x")
		lift()
		time.Sleep(10 * time.Minute)
		log.expect(t, "c/z")
		end()
		fatal(t, stop())
	})
}

// TestC14_StalenessIsOfTheNamespaceOfAKey: the watch of one namespace is out of contact, and that of
// another one receives events all the time.
func TestC14_StalenessIsOfTheNamespaceOfAKey(t *testing.T) {
	inWorld(t, func(w *world) {
		x := create(w, configMap("a", "x"))
		create(w, configMap("b", "y"))
		var log calls
		c := control(w, informerIn[*corev1.ConfigMap](w, "a", "b"), options{MaxStaleness: 3 * time.Minute}, isCalled(&log))
		stop := start(w, c)
		log.expect(t, "a/x", "b/y")
		lift := refuseIn(w, "configmaps", "b")
		for n := range 10 {
			time.Sleep(30 * time.Second)
			x = update(w, withState(x, fmt.Sprint(n)))
		}
		synctest.Wait()
		log.take()
		c.Enqueue("a/x")
		c.Enqueue("b/y")
		log.expect(t, "a/x")
		h := c.Health()
		if h.State != controller.StateRunning || len(h.WaitingFor) != 1 || h.ParkedKeys != 1 {
			t.Errorf("health: %+v", h)
		}
		lift()
		time.Sleep(10 * time.Minute)
		log.expect(t, "b/y")
		if h := c.Health(); h.State != controller.StateRunning || len(h.WaitingFor) != 0 {
			t.Errorf("health: %+v", h)
		}
		fatal(t, stop())
	})
}

// TestC02_ANewHistoryOfANamespace: a server is set back to a version that one namespace has passed, and
// another one, whose versions are lower, has not. Every key is called.
func TestC02_ANewHistoryOfANamespace(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("b", "y"))
		x := create(w, configMap("a", "x"))
		backup := w.server.Snapshot()
		var log calls
		c := control(w, informerIn[*corev1.ConfigMap](w, "a", "b"), options{}, isCalled(&log))
		stop := start(w, c)
		time.Sleep(time.Second) // no bookmark has come: the version of b is that of its list
		for n := range 50 {
			x = update(w, withState(x, fmt.Sprint(n)))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		log.take()
		w.server.Rewind(backup)
		w.server.CutConnections()
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		if got := log.take(); !slices.Contains(got, "b/y") {
			t.Errorf("calls: %q, want one of b/y", got)
		}
		fatal(t, stop())
	})
}
