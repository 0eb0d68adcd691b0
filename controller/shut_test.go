package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// sorted waits, and returns the calls since the last time, in order.
func (c *calls) sorted() []string {
	synctest.Wait()
	got := c.take()
	slices.Sort(got)
	return got
}

// TestS2_UnshutCallsWhatBecameDue, and nothing else: changes, ends, requests and requeues.
func TestS2_UnshutCallsWhatBecameDue(t *testing.T) {
	var log calls
	inSlots(t, controller.ByNamespace, options{}, func(ctx context.Context, r request) (controller.Result, error) {
		result, err := isCalled(&log)(ctx, r)
		if r.Name() == "requeued" {
			result.RequeueAfter = time.Minute
		}
		return result, err
	}, func(w *world, s *controller.Slots, c *controller.Controller[*corev1.ConfigMap], _ *testTerm) {
		for _, name := range []string{"changed", "ended", "enqueued", "quiet", "requeued"} {
			create(w, configMap("a", name))
		}
		other := create(w, configMap("b", "other"))
		synctest.Wait()
		s.Serve(owned(slotsOf("a", "b")))
		log.sorted()
		s.Shut(slotsOf("a"))
		if work := s.Work(); work.Ready != slotsOf("b") || c.Health().Slots != slotsOf("b").String() || c.Health().SlotsExpected != "" {
			t.Errorf("ready are %v; the health is %+v", work.Ready, c.Health())
		}
		update(w, withState(configMap("a", "changed"), "1"))
		deleted(w, "a", "ended")
		create(w, configMap("a", "new"))
		c.Enqueue("a/enqueued")
		time.Sleep(50 * time.Second)
		update(w, withState(other, "1"))
		log.expect(t, "b/other")
		time.Sleep(20 * time.Second)
		log.expect(t)
		if h := c.Health(); h.ParkedKeys != 5 || h.Queued != (controller.Bands{}) {
			t.Errorf("the health is %+v", h)
		}
		if waits := c.Waits("a/new"); len(waits) != 1 || waits[0].Because != "its slot is not served at present" {
			t.Errorf("why it waits: %+v", waits)
		}
		s.Unshut(slotsOf("a"))
		want := []string{"a/changed", "a/ended gone", "a/enqueued", "a/new", "a/requeued"}
		if got := log.sorted(); !slices.Equal(got, want) {
			t.Errorf("calls: %q, want %q", got, want)
		}
		if ready := s.Work().Ready; ready != slotsOf("a", "b") {
			t.Errorf("ready are %v", ready)
		}
	})
}

// TestS2_AShutWaitGoesOn: a slot is shut while it waits for its versions. They are reached, and the calls come
// with Unshut.
func TestS2_AShutWaitGoesOn(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		create(w, configMap("a", "y"))
		delayWatches(w, "configmaps", 3*time.Second)
		s := controller.NewSlots(controller.ByNamespace)
		var log calls
		c := newController(w, options{Slots: s}, isCalled(&log))
		stop := start(w, c)
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.All())
		given := owned(slotsOf("a"))
		given[0].Versions["configmaps"] = update(w, withState(configMap("a", "x"), "2")).ResourceVersion
		s.Serve(given)
		time.Sleep(time.Second)
		for range 2 {
			s.Shut(slotsOf("a"))
			time.Sleep(200 * time.Millisecond)
			s.Unshut(slotsOf("a"))
		}
		if reasons := s.Work().Reasons; reasons["it waits for versions"] != slotsOf("a") || len(reasons) != 1 {
			t.Errorf("the reasons are %v", reasons)
		}
		s.Shut(slotsOf("a"))
		time.Sleep(time.Minute)
		log.expect(t)
		if c := s.Calls(slotOf("a")); c.Opened || !c.Known || c.Versions["configmaps"] != given[0].Versions["configmaps"] {
			t.Errorf("the calls are %+v", c)
		}
		s.Unshut(slotsOf("a"))
		if got := log.sorted(); !slices.Equal(got, []string{"a/x", "a/y"}) {
			t.Errorf("calls: %q", got)
		}
		if c := s.Calls(slotOf("a")); !c.Opened {
			t.Error("no call counts")
		}
		fatal(t, stop())
	})
}

// TestS2_ALongCallHoldsUpNoOtherKey: a slot with a call of fifteen minutes is shut for a second, again and
// again. Keys of the slot wait for a second at most, and those of others do not.
func TestS2_ALongCallHoldsUpNoOtherKey(t *testing.T) {
	changedAt := map[string]time.Time{}
	var longest [2]time.Duration // of keys of the slot, and of others
	var called atomic.Int64
	inSlots(t, controller.ByNamespace, options{Workers: 3}, func(ctx context.Context, r request) (controller.Result, error) {
		switch r.Key {
		case "a/long":
			time.Sleep(15 * time.Minute)
			return controller.Result{}, ctx.Err()
		case "a/other":
			longest[0] = max(longest[0], time.Since(changedAt[r.Key]))
		default:
			longest[1] = max(longest[1], time.Since(changedAt[r.Key]))
		}
		called.Add(1)
		return controller.Result{}, nil
	}, func(w *world, s *controller.Slots, c *controller.Controller[*corev1.ConfigMap], _ *testTerm) {
		changedAt["a/other"], changedAt["b/x"] = time.Now(), time.Now()
		other, x := create(w, configMap("a", "other")), create(w, configMap("b", "x"))
		began := time.Now()
		create(w, configMap("a", "long"))
		synctest.Wait()
		s.Serve(owned(slotsOf("a", "b")))
		synctest.Wait()
		for n := range 150 {
			time.Sleep(4500 * time.Millisecond)
			s.Shut(slotsOf("a"))
			time.Sleep(500 * time.Millisecond)
			changedAt["a/other"], changedAt["b/x"] = time.Now(), time.Now()
			other, x = update(w, withState(other, fmt.Sprint(n))), update(w, withState(x, fmt.Sprint(n)))
			synctest.Wait()
			if c := s.Calls(slotOf("a")); c.Running != 1 || !c.Oldest.Equal(began) || c.Known {
				t.Fatalf("the calls are %+v", c)
			}
			time.Sleep(500 * time.Millisecond)
			s.Unshut(slotsOf("a"))
			synctest.Wait()
		}
		if called.Load() != 302 || longest[0] > 500*time.Millisecond || longest[1] > 0 {
			t.Errorf("%d calls; keys have waited for %v", called.Load(), longest)
		}
		time.Sleep(5 * time.Minute)
	})
}

// TestS2_AbortEndsTheContexts of the calls of a slot, in all controllers.
func TestS2_AbortEndsTheContexts(t *testing.T) {
	inWorld(t, func(w *world) {
		s := controller.NewSlots(controller.ByNamespace)
		create(w, configMap("a", "x"))
		create(w, configMap("b", "y"))
		var log calls
		var stops []func() error
		for _, name := range []string{"first", "second"} {
			c := newController(w, options{Name: name, Workers: 2, Slots: s}, func(ctx context.Context, r request) (controller.Result, error) {
				<-ctx.Done()
				log.add("%s %s: %v", name, r.Key, context.Cause(ctx))
				return controller.Result{}, nil
			})
			stops = append(stops, start(w, c))
		}
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.All())
		s.Serve(owned(slotsOf("a", "b")))
		synctest.Wait()
		s.Shut(slot.All())
		if c := s.Calls(slotOf("a")); c.Running != 2 || c.Oldest.IsZero() || c.Known || !c.Opened {
			t.Errorf("the calls are %+v", c)
		}
		s.Abort(slotsOf("a"), errors.New("nobody could take it over"))
		want := []string{"first a/x: nobody could take it over", "second a/x: nobody could take it over"}
		if got := log.sorted(); !slices.Equal(got, want) {
			t.Errorf("calls: %q", got)
		}
		if c := s.Calls(slotOf("a")); c.Running != 0 || !c.Known || c.Versions == nil {
			t.Errorf("the calls are %+v", c)
		}
		s.Abort(slotsOf("b"), errors.New("the end"))
		for _, stop := range stops {
			fatal(t, stop())
		}
	})
}

// TestS2_WritesWithoutAnAnswerCount until the server has certainly ended them, also those of a resource that
// no informer holds.
func TestS2_WritesWithoutAnAnswerCount(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, w *world) error{
		"of an informer's resource": func(ctx context.Context, w *world) error {
			_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(configMap("a", "x"), "1"), updateNow)
			return err
		},
		"of another one": func(ctx context.Context, w *world) error {
			_, err := w.client.CoreV1().Secrets("a").Create(ctx, secret("a", "s"), createNow)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				s := controller.NewSlots(controller.ByNamespace)
				create(w, configMap("a", "x"))
				for _, verb := range []string{"update", "create"} {
					w.server.Inject(apisim.Match{Verb: verb, Times: 1}, apisim.Drop())
				}
				var log calls
				c := newController(w, options{Slots: s}, func(ctx context.Context, r request) (controller.Result, error) {
					log.add("%s", r.Key)
					time.Sleep(time.Second)
					if err := write(ctx, w); err == nil {
						t.Error("the write has an answer")
					}
					return controller.Result{}, nil
				})
				stop := start(w, c)
				s.Begin(newTerm())
				fill(w.ctx, t, s, slot.All())
				s.Serve(owned(slotsOf("a")))
				time.Sleep(2 * time.Second)
				log.expect(t, "a/x")
				sent := time.Now().Add(-time.Second)
				s.Shut(slotsOf("a"))
				for range 3 {
					if c := s.Calls(slotOf("a")); c.Running != 1 || !c.Oldest.Equal(sent) {
						t.Errorf("the calls are %+v, and the write was sent at %v", c, sent)
					}
					time.Sleep(10 * time.Second)
				}
				ended := time.Now()
				if _, err := drain(w.ctx, s, slotsOf("a")); err != nil || time.Since(ended) > 5*time.Second {
					t.Errorf("the drain took %v longer, %v", time.Since(ended), err)
				}
				fatal(t, stop())
			})
		})
	}
}

// TestS3_ANewMembershipServesNothing of what an earlier one did.
func TestS3_ANewMembershipServesNothing(t *testing.T) {
	var log calls
	inSlots(t, controller.ByNamespace, options{}, isCalled(&log), func(
		w *world, s *controller.Slots, c *controller.Controller[*corev1.ConfigMap], term *testTerm,
	) {
		x := create(w, configMap("a", "x"))
		synctest.Wait()
		s.Serve(owned(slotsOf("a")))
		s.Shut(slotsOf("b"))
		log.expect(t, "a/x")
		term.end(errors.New("the Lease is lost"))
		next := newTerm()
		s.Begin(next)
		fill(w.ctx, t, s, slot.All())
		update(w, withState(x, "1"))
		log.expect(t)
		if work := s.Work(); !work.Ready.IsEmpty() || len(work.Reasons) > 0 || c.Health().Slots+c.Health().SlotsExpected != "" {
			t.Errorf("the work is %+v; the health is %+v", work, c.Health())
		}
		second := newController(w, options{Name: "second", Slots: s}, isCalled(&log))
		if h := second.Health(); h.Slots+h.SlotsExpected != "" {
			t.Errorf("the health of another controller is %+v", h)
		}
		s.Serve(owned(slotsOf("a")))
		s.Shut(slotsOf("a"))
		synctest.Wait()
		early := log.take() // a worker may have taken the key before Shut
		third := newController(w, options{Name: "third", Slots: s}, isCalled(&log))
		stop := start(w, third)
		time.Sleep(5 * time.Second)
		log.expect(t)
		s.Unshut(slotsOf("a"))
		log.expect(t, []string{"a/x", "a/x"}[min(len(early), 2):]...)
		if len(early) > 1 {
			t.Errorf("calls before Shut: %q", early)
		}
		fatal(t, stop())
		next.end(errors.New("the test is over"))
	})
}
