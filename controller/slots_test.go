package controller_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// slotOf returns the slot of a namespace.
func slotOf(namespace string) int { return slot.Namespace.Of("", namespace) }

func slotsOf(namespaces ...string) (s slot.Set) {
	for _, name := range namespaces {
		s.Add(slotOf(name))
	}
	return s
}

// owned returns slots with known versions, which are empty.
func owned(s slot.Set) (all []slot.Owned) {
	for n := range s.Slots() {
		all = append(all, slot.Owned{Number: n, Epoch: 1, Versions: map[string]string{}})
	}
	return all
}

// inSlots runs a test with a controller whose Slots have begun a membership.
func inSlots(
	t *testing.T, by slot.Key, o options, f func(context.Context, request) (controller.Result, error),
	test func(w *world, s *controller.Slots, c *controller.Controller[*corev1.ConfigMap], term *testTerm),
) {
	t.Helper()
	inWorld(t, func(w *world) {
		s := controller.NewSlots(by)
		o.Slots = s
		c := newController(w, o, f)
		stop := start(w, c)
		term := newTerm()
		s.Begin(term)
		fill(w.ctx, t, s, slot.All())
		test(w, s, c, term)
		term.end(errors.New("the test is over"))
		fatal(t, stop())
	})
}

func TestS1_KeysOfServedSlotsAreCalled(t *testing.T) {
	var log calls
	inSlots(t, controller.ByNamespace, options{}, isCalled(&log), func(
		w *world, s *controller.Slots, c *controller.Controller[*corev1.ConfigMap], _ *testTerm,
	) {
		x := create(w, configMap("a", "x"))
		create(w, configMap("b", "y"))
		log.expect(t)
		s.Serve(owned(slotsOf("a")))
		log.expect(t, "a/x")
		if got := c.Calls("a/x")[0].Reasons; len(got) != 1 || got[0].Cause != controller.Moved || got[0].Count != 1 {
			t.Errorf("the reasons are %v", got)
		}
		create(w, configMap("b", "z"))
		update(w, withState(x, "2"))
		log.expect(t, "a/x")
		c.Enqueue("b/y")
		log.expect(t)
		h := c.Health()
		if want := slotsOf("a").String(); h.Slots != want || h.Queued != (controller.Bands{}) || h.ParkedKeys != 0 {
			t.Errorf("the health is %+v, want the slots %s", h, want)
		}
		if work := s.Work(); work.Ready != slotsOf("a") || !work.Late.IsEmpty() || !work.Started || work.Hung ||
			work.Blocked != nil || len(work.Lacks)+len(work.Controllers)+len(work.Reasons) > 0 {
			t.Errorf("the work is %+v", work)
		}
	})
}

// TestS2_ADrainWaitsForCallsAndTheirWrites drains a slot whose call writes late, with a cache that
// lags.
func TestS2_ADrainWaitsForCallsAndTheirWrites(t *testing.T) {
	inWorld(t, func(w *world) {
		x := create(w, configMap("a", "x"))
		delayWatches(w, "configmaps", 300*time.Millisecond)
		s, version := controller.NewSlots(controller.ByNamespace), ""
		c := newController(w, options{Slots: s}, func(ctx context.Context, r request) (controller.Result, error) {
			if r.Object.Data["state"] != "" {
				return controller.Result{}, nil
			}
			time.Sleep(2 * time.Second)
			got, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(x, "1"), updateNow)
			fatal(t, err)
			version = got.ResourceVersion
			return controller.Result{}, nil
		})
		stop := start(w, c)
		term := newTerm()
		s.Begin(term)
		fill(w.ctx, t, s, slot.All())
		s.Serve(owned(slotsOf("a")))
		synctest.Wait()
		began := time.Now()
		versions, err := drain(w.ctx, s, slotsOf("a"))
		fatal(t, err)
		if got := time.Since(began); got < 2300*time.Millisecond || got > 2400*time.Millisecond {
			t.Errorf("the drain took %v", got)
		}
		if versions["configmaps"] != version || version == "" {
			t.Errorf("the versions are %v, want %q", versions, version)
		}
		s.Drop(slotsOf("a"))
		fatal(t, stop())
	})
}

// TestS2_ADrainOutlastsTheEndOfTheRun: a process ends while one of its slots is drained. The
// controller goes on until it has found out whether the last write was applied, and the group was left.
func TestS2_ADrainOutlastsTheEndOfTheRun(t *testing.T) {
	inWorld(t, func(w *world) {
		x := create(w, configMap("a", "x"))
		w.server.Inject(apisim.Match{Verb: "update", Times: 1}, apisim.Refuse(500, 0))
		s := controller.NewSlots(controller.ByNamespace)
		c := newController(w, options{Slots: s}, func(ctx context.Context, r request) (controller.Result, error) {
			time.Sleep(2 * time.Second)
			_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(x, "1"), updateNow)
			return controller.Result{}, err
		})
		stop := start(w, c)
		fatal(t, s.Claim())
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.All())
		s.Serve(owned(slotsOf("a")))
		synctest.Wait()
		s.Shut(slotsOf("a"))
		ended := make(chan error, 1)
		go func() { ended <- stop() }()
		<-s.Ends()
		ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
		defer cancel()
		_, err := drain(ctx, s, slotsOf("a"))
		fatal(t, err)
		s.Drop(slotsOf("a"))
		time.Sleep(time.Hour)
		select {
		case err := <-ended:
			t.Errorf("Run returns %v before the group was left", err)
		default:
		}
		s.Left(nil)
		fatal(t, <-ended)
	})
}

// TestS2_VersionsArePassedOn drains a slot whose calls have written nothing: the next owner has to
// reach the versions that this one had to reach.
func TestS2_VersionsArePassedOn(t *testing.T) {
	var log calls
	inSlots(t, controller.ByNamespace, options{}, isCalled(&log), func(
		w *world, s *controller.Slots, c *controller.Controller[*corev1.ConfigMap], _ *testTerm,
	) {
		x := create(w, configMap("a", "x"))
		synctest.Wait()
		given := owned(slotsOf("a"))
		given[0].Versions["configmaps"] = x.ResourceVersion
		s.Serve(given)
		log.expect(t, "a/x")
		versions, err := drain(w.ctx, s, slotsOf("a"))
		fatal(t, err)
		if versions["configmaps"] != x.ResourceVersion {
			t.Errorf("the versions are %v, want %s", versions, x.ResourceVersion)
		}
		s.Drop(slotsOf("a"))
		given[0].Versions["configmaps"] = "1000000" // which the cache does not reach
		s.Serve(given)
		if versions, err = drain(w.ctx, s, slotsOf("a")); err != nil || versions["configmaps"] != "1000000" {
			t.Errorf("the versions are %v, %v while they are waited for", versions, err)
		}
		s.Drop(slotsOf("a"))
		w.server.Inject(apisim.Match{Verb: "list", Resource: "configmaps"}, apisim.Delay(100*time.Millisecond))
		s.Serve([]slot.Owned{{Number: slotOf("a"), Epoch: 2}}) // after a crash
		s.Shut(slotsOf("a"))
		if c := s.Calls(slotOf("a")); c.Known || c.Versions != nil || c.Running > 0 {
			t.Errorf("the calls are %+v before the server was asked", c)
		}
		if versions, err = drain(w.ctx, s, slotsOf("a")); err != nil || versions["configmaps"] == "" {
			t.Errorf("the versions are %v, %v once the server was asked", versions, err)
		}
	})
}

// TestS2_NoCallBeforeTheVersions serves slots with versions that the cache has not reached yet.
func TestS2_NoCallBeforeTheVersions(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		delayWatches(w, "configmaps", 3*time.Second)
		s := controller.NewSlots(controller.ByNamespace)
		var log calls
		c := newController(w, options{Slots: s}, func(_ context.Context, r request) (controller.Result, error) {
			log.add("%s %s", r.Key, r.Object.Data["state"])
			return controller.Result{}, nil
		})
		stop := start(w, c)
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.All())
		x := update(w, withState(configMap("a", "x"), "2"))
		given := owned(slotsOf("a"))
		given[0].Versions["configmaps"] = x.ResourceVersion
		s.Serve(given)
		time.Sleep(2 * time.Second)
		log.expect(t)
		if inOrder := s.Work().Ready; !inOrder.IsEmpty() || c.Health().SlotsExpected != slotsOf("a").String() {
			t.Errorf("in order are %v; the health is %+v", inOrder, c.Health())
		}
		time.Sleep(2 * time.Second)
		// The event that has ended the wait may be another reason of the call, or lead to one more.
		if got := slices.Compact(log.take()); !slices.Equal(got, []string{"a/x 2"}) {
			t.Errorf("calls: %q", got)
		}
		fatal(t, stop())
	})
}

func TestS2_ADrainThatIsGivenUpLeadsBackToCalls(t *testing.T) {
	var log calls
	inSlots(t, controller.ByNamespace, options{Workers: 2}, func(_ context.Context, r request) (controller.Result, error) {
		if r.Gone {
			log.add("%s gone", r.Key)
			return controller.Result{}, nil
		}
		log.add("%s", r.Key)
		if r.Key == "a/long" {
			time.Sleep(40 * time.Second)
		}
		return controller.Result{}, nil
	}, func(w *world, s *controller.Slots, c *controller.Controller[*corev1.ConfigMap], _ *testTerm) {
		create(w, configMap("a", "x"))
		synctest.Wait()
		s.Serve(owned(slotsOf("a")))
		log.expect(t, "a/x")
		create(w, configMap("a", "long"))
		log.expect(t, "a/long")
		ctx, cancel := context.WithTimeout(w.ctx, 30*time.Second)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := drain(ctx, s, slotsOf("a"))
			ended <- err
		}()
		time.Sleep(time.Second)
		deleted(w, "a", "x")
		create(w, configMap("a", "new"))
		log.expect(t)
		if err := <-ended; !errors.Is(err, controller.ErrCallsRunning) {
			t.Errorf("the drain ended with %v", err)
		}
		s.Unshut(slotsOf("a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		got := log.take()
		slices.Sort(got)
		if want := []string{"a/new", "a/x gone"}; !slices.Equal(got, want) {
			t.Errorf("calls: %q, want %q", got, want)
		}
	})
}

// TestS2_ADroppedSlotIsForgotten drops a slot with a key that backs off, one that waits for a requeue
// and one whose object is deleted.
func TestS2_ADroppedSlotIsForgotten(t *testing.T) {
	var log calls
	inSlots(t, controller.ByNamespace, options{FirstDelay: time.Minute}, func(_ context.Context, r request) (controller.Result, error) {
		log.add("%s %d %v", r.Key, r.Failures, r.Gone)
		if r.Name() == "fails" {
			return controller.Result{}, errors.New("not yet")
		}
		return controller.Result{RequeueAfter: time.Hour}, nil
	}, func(w *world, s *controller.Slots, c *controller.Controller[*corev1.ConfigMap], _ *testTerm) {
		create(w, configMap("a", "fails"))
		create(w, configMap("a", "x"))
		synctest.Wait()
		s.Serve(owned(slotsOf("a", "b")))
		log.expect(t, "a/fails 0 false", "a/x 0 false")
		_, err := drain(w.ctx, s, slotsOf("a"))
		fatal(t, err)
		s.Drop(slotsOf("a"))
		deleted(w, "a", "x")
		time.Sleep(2 * time.Hour)
		log.expect(t)
		if h := c.Health(); h.BackingOff != 0 || h.ParkedKeys != 0 || h.Queued != (controller.Bands{}) ||
			h.Slots != slotsOf("b").String() {
			t.Errorf("the health is %+v", h)
		}
		s.Serve(owned(slotsOf("a")))
		log.expect(t, "a/fails 0 false")
	})
}

// TestS6_ByUIDARecreatedObjectHasAnotherSlot serves the slot of an object, and not that of the object
// that is created next under its key.
func TestS6_ByUIDARecreatedObjectHasAnotherSlot(t *testing.T) {
	var log calls
	inSlots(t, controller.ByUID, options{}, func(_ context.Context, r request) (controller.Result, error) {
		log.add("%s %s %v", r.Key, known(r).Data["state"], r.Gone)
		return controller.Result{}, nil
	}, func(w *world, s *controller.Slots, c *controller.Controller[*corev1.ConfigMap], _ *testTerm) {
		at := func(o metav1.Object) slot.Set { return slot.Of(slot.UID.Of(string(o.GetUID()), "")) }
		first := create(w, withState(configMap("a", "x"), "1"))
		synctest.Wait()
		s.Serve(owned(at(first)))
		log.expect(t, "a/x 1 false")
		deleted(w, "a", "x")
		second := createOutside(w, at(first), "2")
		log.expect(t, "a/x 1 true")
		update(w, withState(second, "3"))
		log.expect(t)
		s.Serve(owned(at(second)))
		log.expect(t, "a/x 3 false")
		// There is no call for the end once the slot is drained: the end is forgotten, and the next
		// call of the key is for its next object.
		_, err := drain(w.ctx, s, at(second))
		fatal(t, err)
		deleted(w, "a", "x")
		third := createOutside(w, at(first).Union(at(second)), "4")
		synctest.Wait() // The cache has it: its event makes no call of its own.
		s.Serve(owned(at(third)))
		log.expect(t)
		s.Drop(at(second))
		log.expect(t, "a/x 4 false")
	})
}

// createOutside creates the ConfigMap a/x, again and again until it is not in some slots.
func createOutside(w *world, slots slot.Set, state string) *corev1.ConfigMap {
	w.Helper()
	for {
		made := create(w, withState(configMap("a", "x"), state))
		if !slots.Has(slot.UID.Of(string(made.UID), "")) {
			return made
		}
		deleted(w, "a", "x")
	}
}

// TestS1_SecondariesLeadToServedSlots changes a Secret that both an object of a served slot and one
// of another slot refer to.
func TestS1_SecondariesLeadToServedSlots(t *testing.T) {
	inWorld(t, func(w *world) {
		s := controller.NewSlots(controller.ByNamespace)
		var log calls
		secrets := informer[*corev1.Secret](w)
		c := newController(w, options{Slots: s, Secondaries: []secondary{
			controller.References(secrets, func(*corev1.ConfigMap) []string { return []string{"a/s"} }),
		}}, isCalled(&log))
		create(w, configMap("a", "x"))
		create(w, configMap("b", "y"))
		stop := start(w, c)
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.All())
		s.Serve(owned(slotsOf("b")))
		log.expect(t, "b/y")
		create(w, secret("a", "s"))
		log.expect(t, "b/y")
		fatal(t, stop())
	})
}

// TestC10_AMembershipThatIsLostStopsAllCalls closes a term, and begins the next one.
func TestC10_AMembershipThatIsLostStopsAllCalls(t *testing.T) {
	var log calls
	lost := errors.New("the lease is lost")
	inWorld(t, func(w *world) {
		s := controller.NewSlots(controller.ByNamespace)
		x := create(w, configMap("a", "x"))
		c := newController(w, options{Slots: s}, func(ctx context.Context, r request) (controller.Result, error) {
			log.add("%s", r.Key)
			<-ctx.Done()
			_, err := w.client.CoreV1().ConfigMaps("a").Update(context.WithoutCancel(ctx), x, updateNow)
			log.add("%v %v", context.Cause(ctx), errors.Is(err, lost))
			return controller.Result{}, err
		})
		if h := c.Health(); h.State != controller.StateStopped {
			t.Errorf("the health is %+v", h)
		}
		stop := start(w, c)
		synctest.Wait()
		if h := c.Health(); h.State != controller.StateWaiting || !slices.Equal(h.WaitingFor, []string{"a membership of the group"}) {
			t.Errorf("the health is %+v", h)
		}
		for range 2 {
			term := newTerm()
			s.Begin(term)
			fill(w.ctx, t, s, slot.All())
			s.Serve(owned(slot.All()))
			log.expect(t, "a/x")
			term.end(lost)
			log.expect(t, "the lease is lost true")
			if inOrder := s.Work().Ready; !inOrder.IsEmpty() {
				t.Errorf("in order are %v", inOrder)
			}
			s.Shut(slot.All())
			if c := s.Calls(slotOf("a")); !c.Opened || c.Running > 0 || c.Known || c.Versions != nil {
				t.Errorf("the calls are %+v", c)
			}
			s.Drop(slot.All())
			time.Sleep(time.Minute)
			log.expect(t)
		}
		fatal(t, stop())
	})
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// deleted deletes a ConfigMap past the clients.
func deleted(w *world, namespace, name string) {
	w.Helper()
	_, err := w.server.Delete(w.ctx, configMaps, namespace, name)
	fatal(w.T, err)
}
