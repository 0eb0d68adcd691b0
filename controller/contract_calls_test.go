package controller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
)

// TestC01_ACallThatOutlivesItsRunKeepsItsKey: the next run calls the other keys meanwhile.
func TestC01_ACallThatOutlivesItsRunKeepsItsKey(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		create(w, configMap("a", "y"))
		var log calls
		release := make(chan struct{})
		c := newController(w, options{Workers: 2, StopGrace: time.Second},
			func(_ context.Context, r request) (controller.Result, error) {
				log.add("%s begins", r.Key)
				if r.Key == "a/x" {
					<-release
				}
				log.add("%s ends", r.Key)
				return controller.Result{}, nil
			})
		stop := start(w, c)
		synctest.Wait()
		log.take()
		if err := stop(); !errors.Is(err, controller.ErrCallsRunning) {
			t.Errorf("the run ended with %v", err)
		}
		log.take()
		stop = start(w, c)
		time.Sleep(time.Minute)
		log.expect(t, "a/y begins", "a/y ends")
		close(release)
		log.expect(t, "a/x ends", "a/x begins", "a/x ends")
		fatal(t, stop())
	})
}

// TestC01_TheEndOfATermEndsItsCalls, also before the calls begin.
func TestC01_TheEndOfATermEndsItsCalls(t *testing.T) {
	lost := errors.New("the lease is lost")
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		var cause, wrote error
		n := 0
		c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
			n++
			<-ctx.Done()
			cause = context.Cause(ctx)
			_, wrote = w.client.CoreV1().ConfigMaps("a").Update(context.WithoutCancel(ctx), r.Object.DeepCopy(), updateNow)
			return controller.Result{}, wrote
		})
		term := newTerm()
		stop := startTerm(w, c, term)
		synctest.Wait()
		term.end(lost)
		synctest.Wait()
		if !errors.Is(cause, lost) || wrote == nil || !strings.Contains(wrote.Error(), "the term is closed") {
			t.Errorf("the call ended with %v, its write with %v", cause, wrote)
		}
		if err := stop(); !errors.Is(err, lost) {
			t.Errorf("the run ended with %v", err)
		}
		delayWatches(w, "", time.Second)
		w.server.SetAvailable(false)
		c = newController(w, options{}, func(context.Context, request) (controller.Result, error) {
			n++
			return controller.Result{}, nil
		})
		term = newTerm()
		stop = startTerm(w, c, term)
		time.Sleep(time.Second)
		term.end(lost)
		synctest.Wait()
		if err := stop(); !errors.Is(err, lost) || n != 1 {
			t.Errorf("the run that waited ended with %v, after %d calls", err, n)
		}
	})
}

// TestC01_NoCallBeginsAfterTheTerm, though keys are queued and workers are free.
func TestC01_NoCallBeginsAfterTheTerm(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 50 {
			create(w, configMap("a", fmt.Sprint("x", i)))
		}
		term, n := newTerm(), 0
		c := newController(w, options{}, func(context.Context, request) (controller.Result, error) {
			if n++; n == 3 {
				term.end(errLater)
				time.Sleep(time.Millisecond) // the run notices it
			}
			return controller.Result{}, nil
		})
		stop := startTerm(w, c, term)
		time.Sleep(time.Second)
		synctest.Wait()
		if err := stop(); !errors.Is(err, errLater) {
			t.Errorf("the run ended with %v", err)
		}
		if n != 3 {
			t.Errorf("%d calls, want 3", n)
		}
	})
}

// overTerm is a term that has passed its fence, while its channel is open.
type overTerm struct {
	*testTerm
	over atomic.Bool
}

func (t *overTerm) Err() error {
	if t.over.Load() {
		return errLater
	}
	return t.testTerm.Err()
}

// TestC01_NoCallBeginsAfterTheFence, also before the run notices it, as after a process has stood
// still.
func TestC01_NoCallBeginsAfterTheFence(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 50 {
			create(w, configMap("a", fmt.Sprint("x", i)))
		}
		term, n := &overTerm{testTerm: newTerm()}, 0
		c := newController(w, options{}, func(context.Context, request) (controller.Result, error) {
			if n++; n == 3 {
				term.over.Store(true)
			}
			return controller.Result{}, nil
		})
		stop := startTerm(w, c, term)
		time.Sleep(time.Second)
		synctest.Wait()
		if n != 3 {
			t.Errorf("%d calls, want 3", n)
		}
		term.end(errLater)
		synctest.Wait()
		if err := stop(); !errors.Is(err, errLater) {
			t.Errorf("the run ended with %v", err)
		}
	})
}

// TestC09_RunEndsWithItsContext without an error, whatever the cause, in a call or in a wait.
func TestC09_RunEndsWithItsContext(t *testing.T) {
	for _, available := range []bool{true, false} {
		inWorld(t, func(w *world) {
			w.server.SetAvailable(available)
			c := newController(w, options{}, isCalled(&calls{}))
			fatal(t, w.factory.Start(w.ctx))
			ctx, cancel := context.WithCancelCause(w.ctx)
			ended := make(chan error, 1)
			go func() { ended <- c.Run(ctx) }()
			time.Sleep(time.Second)
			cancel(errLater)
			if err := <-ended; err != nil {
				t.Errorf("available %v: %v", available, err)
			}
		})
	}
}

// TestC01_WorkersThatGoAndCome: a worker beyond the number of workers is needed again before it
// has left.
func TestC01_WorkersThatGoAndCome(t *testing.T) {
	inWorld(t, func(w *world) {
		release := make(chan struct{})
		c := newController(w, options{Flow: func(key string) string { return key }},
			func(context.Context, request) (controller.Result, error) {
				<-release
				return controller.Result{}, nil
			})
		stop := start(w, c)
		synctest.Wait()
		for range 300 {
			fatal(t, c.SetWorkers(1))
			runtime.Gosched()
			fatal(t, c.SetWorkers(4))
			runtime.Gosched()
		}
		for i := range 6 {
			create(w, configMap("a", fmt.Sprint("x", i)))
		}
		synctest.Wait()
		if h := c.Health(); h.RunningCalls != 4 {
			t.Errorf("%d calls run, want 4", h.RunningCalls)
		}
		close(release)
		fatal(t, stop())
	})
}

// TestC04_NoFlowStarves: a key of a quiet namespace starts after as many others as there are
// flows.
func TestC04_NoFlowStarves(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 200 {
			create(w, configMap("a", fmt.Sprint("x", i)))
		}
		create(w, configMap("b", "y"))
		n, at := 0, 0
		c := newController(w, options{}, func(_ context.Context, r request) (controller.Result, error) {
			n++
			if r.Namespace() == "b" {
				at = n
			}
			return controller.Result{}, nil
		})
		stop := start(w, c)
		synctest.Wait()
		if n != 201 || at > 2 {
			t.Errorf("%d calls, that of b was number %d", n, at)
		}
		fatal(t, stop())
	})
}

// TestC13_AnyEndOfACallIsItsEnd: a panic, runtime.Goexit, and a call that takes too long.
func TestC13_AnyEndOfACallIsItsEnd(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, name := range []string{"exits", "panics", "waits"} {
			create(w, configMap("a", name))
		}
		var mu sync.Mutex
		seen := map[string]int{}
		c := newController(w, options{Timeout: time.Minute, FirstDelay: time.Second},
			func(ctx context.Context, r request) (controller.Result, error) {
				mu.Lock()
				seen[r.Name()]++
				first := seen[r.Name()] == 1
				mu.Unlock()
				switch {
				case first && r.Name() == "exits":
					runtime.Goexit()
				case first && r.Name() == "panics":
					panic(errLater)
				case first && r.Name() == "waits":
					<-ctx.Done()
					return controller.Result{}, context.Cause(ctx)
				}
				return controller.Result{}, nil
			})
		stop := start(w, c)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		h := c.Health()
		if fmt.Sprint(seen) != "map[exits:2 panics:2 waits:2]" || h.Errors != 3 || h.Panics != 1 {
			t.Errorf("calls %v, health %+v", seen, h)
		}
		if want := "the call took longer than Options.Timeout: context deadline exceeded"; h.LastError != want {
			t.Errorf("the last error is %q, want %q", h.LastError, want)
		}
		fatal(t, stop())
	})
}

// TestC12_LongCalls are logged once, and in health, where durations are text.
func TestC12_LongCalls(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		var logged bytes.Buffer
		o := options{Logger: slog.New(slog.NewTextHandler(&logged, nil))}
		c := newController(w, o, func(ctx context.Context, _ request) (controller.Result, error) {
			<-ctx.Done()
			return controller.Result{}, nil
		})
		stop := start(w, c)
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if n := strings.Count(logged.String(), `msg="a call takes long" controller=test key=a/x`); n != 1 {
			t.Errorf("the call was logged %d times: %s", n, &logged)
		}
		text, err := json.Marshal(c.Health())
		fatal(t, err)
		if !strings.Contains(string(text), `"running":[{"key":"a/x","for":"1m30s"}]`) {
			t.Errorf("health: %s", text)
		}
		fatal(t, stop())
	})
}

// TestC12_WhyAKeyWaits has every state in which keys wait for a worker.
func TestC12_WhyAKeyWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, name := range []string{"x", "y", "z"} {
			create(w, configMap("a", name))
		}
		gate := make(chan bool)
		c := newController(w, options{Workers: 2}, func(context.Context, request) (controller.Result, error) {
			<-gate
			return controller.Result{}, nil
		})
		stop := start(w, c)
		time.Sleep(time.Second)
		why := func() string {
			synctest.Wait()
			h := c.Health()
			return h.Oldest + ": " + h.WaitingBecause
		}
		if got, want := why(), "a/z: all 2 workers run calls, the one of a/x for "; !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		fatal(t, c.SetWorkers(3))
		synctest.Wait()
		create(w, configMap("b", "w"))
		time.Sleep(time.Second)
		if got := why(); !strings.HasPrefix(got, "b/w: all 3 workers run calls") {
			t.Errorf("with three workers: %q", got)
		}
		close(gate)
		time.Sleep(time.Second)
		if got := why(); got != ": " {
			t.Errorf("without queued keys: %q", got)
		}
		fatal(t, stop())
	})
}

// TestC12_Loops: a controller that answers each of its own writes with another one. There are enough
// keys for some events to come while their call ends.
func TestC12_Loops(t *testing.T) {
	inWorld(t, func(w *world) {
		const keys = 50
		for i := range keys {
			create(w, withState(configMap("a", fmt.Sprint("x", i)), ""))
		}
		c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
			if n := len(r.Object.Data["state"]); n > 0 && (len(r.Reasons) != 1 || !r.Reasons[0].Own) {
				t.Errorf("call %d of %s has the reasons %v", n+1, r.Key, r.Reasons)
			}
			if len(r.Object.Data["state"]) == 5 {
				return controller.Result{}, nil
			}
			_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, r.Object.Data["state"]+"+"), updateNow)
			return controller.Result{}, err
		})
		stop := start(w, c)
		time.Sleep(time.Second)
		synctest.Wait()
		if h := c.Health(); h.Calls != 6*keys || h.Loops != 5*keys {
			t.Errorf("health %+v", h)
		}
		fatal(t, stop())
	})
}

// TestC14_NoCallsWhileAnInformerIsStale: each informer is named, and calls go on by themselves.
func TestC14_NoCallsWhileAnInformerIsStale(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		var log calls
		c := newController(w, options{MaxStaleness: 3 * time.Minute}, isCalled(&log))
		stop := start(w, c)
		log.expect(t, "a/x")
		w.server.SetAvailable(false)
		w.server.CutConnections()
		time.Sleep(4 * time.Minute)
		c.Enqueue("a/x")
		log.expect(t)
		if h := c.Health(); h.State != controller.StateStale || len(h.WaitingFor) != 1 || h.ParkedKeys != 1 {
			t.Errorf("health: %+v", h)
		}
		if waits := c.Waits("a/x"); len(waits) != 1 || waits[0].State != controller.WaitHeldBack ||
			!strings.HasPrefix(waits[0].Because, "configmaps.v1 is out of contact") {
			t.Errorf("why it waits: %+v", waits)
		}
		calls := c.Health().Calls
		w.server.SetAvailable(true)
		time.Sleep(2 * time.Minute)
		log.expect(t, "a/x")
		if h := c.Health(); h.State != controller.StateRunning || h.Calls != calls+1 {
			t.Errorf("health: %+v", h)
		}
		fatal(t, stop())
	})
}

// TestC14_NoCallsBeforeAllAreSynced: health names the informers that the run waits for.
func TestC14_NoCallsBeforeAllAreSynced(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		lists := w.server.Inject(apisim.Match{Verb: "watch", Resource: "secrets"}, apisim.Stall(0, 0))
		var log calls
		c := newController(w, options{Secondaries: []secondary{
			controller.Reads(informer[*corev1.Secret](w)),
			controller.Reads(informer[*corev1.Node](w)),
		}}, isCalled(&log))
		stop := start(w, c)
		time.Sleep(time.Second)
		log.expect(t)
		if h := c.Health(); h.State != controller.StateWaiting || fmt.Sprint(h.WaitingFor) != "[secrets.v1]" {
			t.Errorf("health: %+v", h)
		}
		lists.Lift()
		time.Sleep(time.Second)
		log.expect(t, "a/x")
		fatal(t, stop())
	})
}
