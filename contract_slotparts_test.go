package tidings_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// refuseIn refuses every request in a namespace.
func refuseIn(namespace string) func(http.ResponseWriter, *http.Request) bool {
	refused := refuse(http.StatusForbidden, "Forbidden")
	return func(rw http.ResponseWriter, r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/namespaces/"+namespace+"/") && refused(rw, r)
	}
}

// haveIn creates n objects in each of some namespaces.
func (w *world) haveIn(n int, namespaces ...string) {
	w.Helper()
	w.haveNamespaces(namespaces...)
	for _, namespace := range namespaces {
		for i := range n {
			w.createIn(namespace, fmt.Sprintf("%s%02d", namespace, i), "1")
		}
	}
}

// within returns a context that ends after a time.
func (w *world) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(w.ctx, d)
	w.Cleanup(cancel)
	return ctx
}

// lists returns the number of requests for pages since the requests were forgotten.
func (w *world) lists() (n int) {
	for _, r := range w.server.Requests() {
		if r.Verb == "list" {
			n++
		}
	}
	return n
}

// TestS6_SlotsComeBesideNamespaces adds slots to an informer of two namespaces, of which one cannot be
// read. Add does not wait for that one, which has the objects once it can be read (P13).
func TestS6_SlotsComeBesideNamespaces(t *testing.T) {
	for name, unreadable := range map[string]string{
		"from the start": "start", "since it was added": "added", "since it was listed": "listed",
	} {
		t.Run(name, func(t *testing.T) {
			withKinds(t, tidings.FactoryOptions{}, func(w *world) {
				slots := tidings.NewSlots(tidings.ByUID, half(0))
				namespaces := []string{"a", "b"}
				if unreadable == "added" {
					namespaces = namespaces[:1]
				}
				w.probe = w.ask(w.T, w.factory, tidings.Selection{Namespaces: namespaces, Slots: slots})
				w.haveIn(40, "a", "b")
				if unreadable != "listed" {
					w.gate.set(refuseIn("b"))
				}
				w.follow()
				w.must(w.factory.Start(w.ctx))
				w.after(10 * time.Second)
				if unreadable == "added" {
					w.must(w.probe.informer().AddNamespace("b"))
					w.after(10 * time.Second)
				}
				w.gate.set(refuseIn("b"))
				err := slots.Add(w.within(time.Minute), half(1))
				if (unreadable == "listed") != (err != nil) {
					w.Errorf("Add: %v", err)
				}
				synctest.Wait()
				if got, want := w.probe.state(), w.serverStateOf("a"); len(got) < len(want) {
					w.Errorf("%d of %d objects of the other namespace", len(got), len(want))
				}
				w.gate.set(nil)
				w.after(30 * time.Minute) // it needs no other Add
				w.must(w.factory.WaitForSync(w.within(time.Minute)))
				if got, want := w.probe.state(), w.serverStateOf("a", "b"); !maps.Equal(got, want) {
					w.Errorf("the cache holds %v, the server %v", got, want)
				}
				if h := w.health(); h.SlotsToList > 0 || h.Listed > 0 {
					w.Errorf("%d slots are not listed; %d objects are on their way", h.SlotsToList, h.Listed)
				}
			})
		})
	}
}

// TestS7_OnlyNamespacesOfASlotAreListed: by namespace, slots that come are listed in their namespaces.
func TestS7_OnlyNamespacesOfASlotAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprintf("team-%03d", i))
		}
		slots := tidings.NewSlots(tidings.ByNamespace, tidings.SlotSet{})
		w.probe = w.ask(w.T, w.factory, tidings.Selection{Namespaces: names, Slots: slots})
		w.haveIn(1, names...)
		w.start()
		w.server.ForgetRequests()
		var one tidings.SlotSet
		one.Add(tidings.ByNamespace.Of("", names[0]))
		w.must(slots.Add(w.ctx, one))
		if lists, held := w.lists(), len(w.probe.state()); lists != held || held == 0 {
			t.Errorf("%d lists for a slot with %d namespaces", lists, held)
		}
	})
}

// TestP18_ListsOfSlotsAreMadeAgain fails one request of the list of slots that come. Add knows nothing
// of it: a page is asked for again, and a first page as any list is.
func TestP18_ListsOfSlotsAreMadeAgain(t *testing.T) {
	for name, fault := range map[string]apisim.Fault{
		"429": apisim.Refuse(429, time.Second), "503": apisim.Refuse(503, time.Second),
		"500": apisim.Refuse(500, 0), "cut": apisim.CutWithin(1), "truncated": apisim.Truncate(1),
		"garbled": apisim.Garble(1), "expired": apisim.Refuse(410, 0),
	} {
		for _, page := range []int{1, 15} {
			if name == "expired" && page == 1 {
				continue // a first page has no token
			}
			t.Run(fmt.Sprint(name, " on page ", page), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, kinds["typed"], paged, apisim.Options{})
					defer w.end()
					s := &slotted{world: w, slots: tidings.NewSlots(tidings.ByUID, half(0))}
					w.probe = w.ask(w.T, w.factory, tidings.Selection{Namespace: "default", Slots: s.slots})
					s.have(40)
					l := s.follow()
					s.start()
					before := s.health()
					s.server.ForgetRequests()
					s.server.Inject(apisim.Match{Verb: "list", Page: page}.Nth(1), fault)
					s.must(s.slots.Add(s.within(10*time.Minute), half(1)))
					synctest.Wait()
					s.agree(l)
					// An expired token leads to a list without pages.
					if lists, h := s.lists(), s.health(); lists > 40 || h.LastError == nil || h.Lists <= before.Lists {
						t.Errorf("%d requests; %d lists, then %d; last error %v", lists, before.Lists, h.Lists, h.LastError)
					}
				})
			})
		}
	}
}

// TestP13_ListsOfSlotsAreSeen refuses the list of slots that come. Add returns the error at once, and
// health has it. The list is made again until it succeeds.
func TestP13_ListsOfSlotsAreSeen(t *testing.T) {
	withSlots(t, paged, half(0), func(s *slotted) {
		s.have(40)
		l := s.follow()
		s.start()
		refused := refuse(http.StatusForbidden, "Forbidden")
		s.gate.set(func(w http.ResponseWriter, r *http.Request) bool {
			return r.URL.Query().Get("watch") == "" && refused(w, r)
		})
		before := s.health()
		err := s.slots.Add(s.ctx, half(1))
		s.after(time.Minute)
		h := s.health()
		if err == nil || h.LastError == nil || h.SlotsToList != 128 || h.State != tidings.StateWatching || h.Lists-before.Lists > 8 {
			s.Errorf("Add: %v; the health is %+v", err, h.Watch)
		}
		s.gate.set(nil)
		s.after(time.Minute)
		s.agree(l)
		if h := s.health(); h.SlotsToList > 0 {
			s.Errorf("%d slots are not listed", h.SlotsToList)
		}
	})
}

// TestP11_GoexitInATransformOfSlots has a transform call runtime.Goexit for an object of slots that
// come, as a failing test does: the informer ends in order, and Add does not wait for it.
func TestP11_GoexitInATransformOfSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{}, apisim.Options{})
		w.stuck = true
		defer w.end()
		s := &slotted{world: w, slots: tidings.NewSlots(tidings.ByUID, half(0))}
		s.have(40)
		var exit atomic.Bool
		transform := tidings.NewTransform(func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			if exit.Load() {
				runtime.Goexit()
			}
			return c, nil
		})
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{
			Namespace: "default", Slots: s.slots, Transform: transform,
		})
		w.must(err)
		w.probe = newProbe(t, i, nil)
		s.start()
		exit.Store(true)
		w.must(s.slots.Add(s.within(time.Minute), half(1)))
		if err := i.WaitForSync(s.within(time.Minute)); err == nil {
			t.Error("the informer says that it is in sync")
		}
	})
}

// TestP11_TransformIsCalledOneByOne: an informer calls its transform for one object at a time, also if
// it has several namespaces, or slots come while its watch goes on.
func TestP11_TransformIsCalledOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		w.haveIn(10, "a", "b")
		slots := tidings.NewSlots(tidings.ByUID, half(0))
		var running, most atomic.Int64
		transform := tidings.NewTransform(func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(100 * time.Millisecond)
			return c, nil
		})
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{
			Namespaces: []string{"a", "b"}, Slots: slots, Transform: transform,
		})
		w.must(err)
		w.probe = newProbe(t, i, nil)
		w.start()
		added := make(chan error, 1)
		go func() { added <- slots.Add(w.ctx, half(1)) }()
		for n := range 10 {
			w.after(50 * time.Millisecond)
			w.createIn("a", fmt.Sprintf("new%d", n), "1")
		}
		w.must(<-added)
		w.after(time.Minute)
		if got, want := w.probe.state(), w.serverStateOf("a", "b"); most.Load() != 1 || !maps.Equal(got, want) {
			t.Errorf("%d calls at a time; the cache holds %v, the server %v", most.Load(), got, want)
		}
	})
}

// TestP09_ATransformThatAddsANamespace: the transform of a namespace uses the informer while another
// namespace, which has an object for it, is removed.
func TestP09_ATransformThatAddsANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{}, apisim.Options{})
		w.haveIn(2, "a", "b")
		w.haveNamespaces("c")
		var i *tidings.Informer[*corev1.ConfigMap]
		transform := tidings.NewTransform(func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			if c.Labels["n"] == "2" {
				time.Sleep(2 * time.Second)
				_ = i.Health()
				return c, i.AddNamespace("c")
			}
			return c, nil
		})
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Namespaces: []string{"a", "b"}, Transform: transform})
		w.must(err)
		w.probe = newProbe(t, i, nil)
		w.start()
		w.createIn("a", "new", "2")
		synctest.Wait()
		time.Sleep(time.Second)
		w.createIn("b", "other", "1")
		synctest.Wait()
		done := make(chan error, 1)
		go func() { done <- i.RemoveNamespace("b") }()
		w.after(time.Minute)
		select {
		case err := <-done:
			w.must(err)
			w.end()
		default:
			t.Fatal("RemoveNamespace has not returned after a minute")
		}
	})
}
