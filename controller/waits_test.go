package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/controller"
)

// TestC04_WhyAKeyWaits has one worker: a key that runs, one that is queued, one that has failed, and
// one that has asked for a call.
func TestC04_WhyAKeyWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, name := range []string{"again", "fails", "invalid"} {
			create(w, configMap("a", name))
		}
		gate := make(chan struct{})
		c := newController(w, options{FirstDelay: time.Hour}, func(_ context.Context, r request) (controller.Result, error) {
			switch r.Name() {
			case "again":
				return controller.Result{RequeueAfter: time.Hour}, nil
			case "fails":
				return controller.Result{}, errors.New("not yet")
			case "invalid":
				if r.Object != nil && r.Object.Data["state"] == "" {
					return controller.Result{}, controller.Terminal(errors.New("no state"))
				}
			case "runs":
				<-gate
			}
			return controller.Result{}, nil
		})
		if got := c.Waits(""); got != nil {
			t.Errorf("before the run: %+v", got)
		}
		stop := start(w, c)
		time.Sleep(time.Second)
		synctest.Wait()
		create(w, configMap("a", "runs"))
		time.Sleep(time.Second)
		create(w, configMap("a", "queued"))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		now := time.Now()
		found := map[string]controller.Wait{}
		for _, wait := range c.Waits("") {
			found[wait.Key] = wait
		}
		if len(found) != 4 || c.Health().TerminalKeys != 1 {
			t.Errorf("keys that wait: %+v", found)
		}
		for _, test := range []struct {
			key, because string
			state        controller.WaitState
			attempt      int
			hasNext      bool
		}{
			{"a/runs", "a call runs", controller.WaitRunning, 1, false},
			{"a/queued", "the only worker runs a call, the one of a/runs for 11s", controller.WaitQueued, 1, false},
			{"a/fails", "its last call has failed", controller.WaitBackingOff, 2, true},
			{"a/again", "its last call has asked for another one", controller.WaitRequeued, 1, true},
			{"a/invalid", "its last call has failed for good: it waits for a change", controller.WaitTerminal, 1, false},
		} {
			one := c.Waits(test.key)
			if len(one) != 1 {
				t.Fatalf("%s: %+v", test.key, one)
			}
			got := one[0]
			if got.State != test.state || got.Because != test.because || got.Attempt != test.attempt ||
				(got.Next.Sub(now) > 10*time.Minute) != test.hasNext || !got.Since.Before(now) {
				t.Errorf("%s: %+v", test.key, got)
			}
			if listed, ok := found[test.key]; ok && listed != got {
				t.Errorf("%+v in the list, %+v alone", listed, got)
			}
		}
		if fails, queued := found["a/fails"], found["a/queued"]; fails.LastError != "not yet" ||
			found["a/invalid"].LastError != "no state" || queued.Band != "changes" || queued.Flow != "a" {
			t.Errorf("%+v, %+v", fails, queued)
		}
		update(w, withState(configMap("a", "invalid"), "1"))
		synctest.Wait()
		if got := c.Waits("a/invalid"); len(got) != 1 || got[0].State != controller.WaitQueued {
			t.Errorf("after its change, it waits as %+v", got)
		}
		close(gate)
		synctest.Wait()
		if got := c.Waits("a/invalid"); len(got) > 0 {
			t.Errorf("after a call without an error, it waits as %+v", got)
		}
		update(w, configMap("a", "invalid"))
		synctest.Wait()
		if got := c.Waits("a/invalid"); len(got) != 1 || got[0].State != controller.WaitTerminal {
			t.Errorf("after another Terminal error, it waits as %+v", got)
		}
		fatal(t, w.client.CoreV1().ConfigMaps("a").Delete(w.ctx, "invalid", deleteNow))
		synctest.Wait()
		if got := c.Waits("a/invalid"); len(got) > 0 {
			t.Errorf("after its end, it waits as %+v", got)
		}
		if got := c.Waits("a/queued"); len(got) > 0 {
			t.Errorf("it does not wait any more: %+v", got)
		}
		stop()
	})
}

// TestC04_TerminalKeysOfASlotThatMoves: as many keys as are kept have failed for good, when their
// slot goes to another process. They make room for those of another slot.
func TestC04_TerminalKeysOfASlotThatMoves(t *testing.T) {
	const kept = 1000
	invalid := func(context.Context, request) (controller.Result, error) {
		return controller.Result{}, controller.Terminal(errors.New("no state"))
	}
	inSlots(t, controller.ByNamespace, options{Workers: 4}, invalid, func(
		w *world, s *controller.Slots, c *controller.Controller[*corev1.ConfigMap], _ *testTerm,
	) {
		for n := range kept {
			create(w, configMap("a", fmt.Sprint("x", n)))
		}
		create(w, configMap("b", "y"))
		expect := func(when string, want int, key string, isTerminal bool) {
			t.Helper()
			synctest.Wait()
			if got := c.Health().TerminalKeys; got != want {
				t.Errorf("%s: %d keys wait for a change, want %d", when, got, want)
			}
			if got := c.Waits(key); len(got) == 1 != isTerminal || isTerminal && got[0].State != controller.WaitTerminal {
				t.Errorf("%s: %s waits as %+v", when, key, got)
			}
		}
		synctest.Wait()
		s.Serve(owned(slotsOf("a")))
		expect("served", kept, "a/x0", true)
		_, err := drain(w.ctx, s, slotsOf("a"))
		fatal(t, err)
		s.Drop(slotsOf("a"))
		expect("dropped", 0, "a/x0", false)
		s.Serve(owned(slotsOf("b")))
		expect("another slot", 1, "b/y", true)
		deleted(w, "a", "x0")
		deleted(w, "a", "x1")
		s.Serve(owned(slotsOf("a")))
		expect("served again", kept-1, "a/x0", false)
	})
}

func TestParkedBecause(t *testing.T) {
	p := controller.Parked{Key: "a/x", Informer: "pods.v1", Version: "7"}
	for _, test := range []struct {
		object        string
		unknown       bool
		problem, want string
	}{
		{"a/y", false, "", "pods.v1 does not show its write of a/y"},
		{"a/y", true, "", "its write of a/y had no answer, and may still arrive"},
		{"a/", true, "", "its write of a new object in a had no answer, and may still arrive"},
		{"", true, "", "its write of a new object had no answer, and may still arrive"},
		{"a/y", false, "Forbidden", "pods.v1 does not show its write of a/y; the server cannot be asked: Forbidden"},
	} {
		p.Object, p.Unknown, p.Problem = test.object, test.unknown, test.problem
		if got := p.Because(); got != test.want {
			t.Errorf("%+v: %q, want %q", p, got, test.want)
		}
	}
}
