package controller_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/slot"
)

// TestC03_ALargeQuietCollection takes longer to compare than an ordinary question.
func TestC03_ALargeQuietCollection(t *testing.T) {
	inWorld(t, func(w *world) {
		w.server.Inject(apisim.Match{Verb: "watch"}, apisim.DropBookmarks())
		for i := range 1600 {
			create(w, withState(configMap("a", fmt.Sprint("x", i)), "1"))
		}
		var log calls
		c := newController(w, options{}, logsStates(&log))
		fatal(t, w.factory.Start(w.ctx))
		fatal(t, w.factory.WaitForSync(w.ctx))
		w.server.Inject(apisim.Match{Verb: "list", Resource: "configmaps", Query: map[string]string{"limit": "500"}}, apisim.Delay(3*time.Second))
		other := create(w, secret("a", "s"))
		term := handingTerm{newTerm()}
		term.left, term.ok = map[string]string{"configmaps": other.ResourceVersion}, true
		stop := startTerm(w, c, term)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := len(log.take()); got == 0 {
			t.Errorf("no calls in an hour: waits for %q", c.Health().WaitingFor)
		}
		fatal(t, stop())
	})
}

// TestC03_AnOptionalSecondaryThatAppearsAfterTheTakeOver shows what the last holder has written.
func TestC03_AnOptionalSecondaryThatAppearsAfterTheTakeOver(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		delayWatches(w, "secrets", 5*time.Second)
		w.server.Inject(apisim.Match{Verb: "list", Resource: "secrets", Times: 1}, apisim.Stall(0, 3*time.Second))
		secrets := informer[*corev1.Secret](w)
		stale, read := 0, 0
		c := newController(w, options{Secondaries: []secondary{controller.Reads[*corev1.ConfigMap](secrets).Optional()}},
			func(ctx context.Context, r request) (controller.Result, error) {
				if secrets.HasSynced() {
					read++
					if controller.Read(ctx, secrets).Len() != 1 {
						stale++
					}
				}
				return controller.Result{}, nil
			})
		fatal(t, w.factory.Start(w.ctx))
		time.Sleep(time.Second)
		synctest.Wait()
		s := create(w, secret("a", "s")) // by the last holder
		term := handingTerm{newTerm()}
		term.left, term.ok = map[string]string{"secrets": s.ResourceVersion}, true
		stop := startTerm(w, c, term)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if stale > 0 || read == 0 {
			t.Errorf("%d of %d calls do not read what the last holder has written", stale, read)
		}
		fatal(t, stop())
	})
}

// TestS2_SlotsAreOpenedWhileTheServerIsAskedAboutOthers whose answers do not come.
func TestS2_SlotsAreOpenedWhileTheServerIsAskedAboutOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		var names, hanging []string
		for i := range 8 {
			name := fmt.Sprint("h", i)
			create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
			hanging = append(hanging, name)
		}
		names = append(append(names, hanging...), "z")
		create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "z"}})
		y := create(w, withState(configMap("z", "y"), "1"))
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Namespaces: names})
		fatal(t, err)
		var log calls
		began := time.Time{}
		called := time.Duration(0)
		s := controller.NewSlots(controller.ByNamespace)
		c := control(w, i, options{Slots: s}, func(_ context.Context, r request) (controller.Result, error) {
			if called == 0 {
				called = time.Since(began)
			}
			log.add("%s %s", r.Key, r.Object.Data["state"])
			return controller.Result{}, nil
		})
		stop := start(w, c)
		s.Begin(newTerm())
		fatal(t, s.Warm(w.ctx, slot.All()))
		var lags *apisim.Injection
		for _, name := range names {
			lags = w.server.Inject(apisim.Match{Verb: "watch", Namespace: name}, apisim.Lag()) // the last is that of z
		}
		w.server.CutConnections()
		time.Sleep(time.Second)
		synctest.Wait()
		y = update(w, withState(y, "2"))
		given := owned(slotsOf(names...))
		for n := range given {
			for _, name := range names {
				if slotsOf(name).Has(given[n].Number) {
					given[n].Versions["configmaps in "+name] = y.ResourceVersion
				}
			}
		}
		for _, name := range hanging {
			w.server.Inject(apisim.Match{Verb: "list", Namespace: name}, apisim.Delay(time.Hour))
		}
		began = time.Now()
		s.Serve(given)
		time.Sleep(22 * time.Second)
		synctest.Wait()
		// the watch of z shows the write at last
		lags.Lift()
		w.server.CutConnections()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if v, ok := i.Lister().Get("z/y"); ok != nil || v.Data["state"] != "2" {
			t.Fatal("the cache does not show it")
		}
		if called == 0 || called > 30*time.Second {
			t.Errorf("the slot was served after %v: %q", called, log.take())
		}
		fatal(t, stop())
	})
}

// TestC03_ADeletedObjectThatOthersMakeAgain is read by no call after its end.
func TestC03_ADeletedObjectThatOthersMakeAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		old := create(w, secret("a", "s"))
		delayWatches(w, "secrets", 5*time.Minute)
		w.server.Inject(apisim.Match{Verb: "list", Resource: "secrets", Skip: 1}, apisim.Delay(time.Hour))
		secrets := informer[*corev1.Secret](w)
		n, stale, unshown := 0, 0, false
		took, began := time.Duration(0), time.Time{}
		c := newController(w, options{Secondaries: []secondary{controller.Reads[*corev1.ConfigMap](secrets)}},
			func(ctx context.Context, r request) (controller.Result, error) {
				if n++; n > 1 {
					if s, err := controller.Read(ctx, secrets).Get("a/s"); err == nil && s.UID == old.UID {
						stale++
						unshown, took = r.Unshown, time.Since(began)
					}
					return controller.Result{}, nil
				}
				began = time.Now()
				fatal(t, w.client.CoreV1().Secrets("a").Delete(ctx, "s", deleteNow))
				create(w, secret("a", "s"))
				return controller.Result{RequeueAfter: time.Millisecond}, nil
			})
		stop := start(w, c)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if stale > 0 {
			t.Errorf("%d calls read the deleted object after %v, unshown %v", stale, took, unshown)
		}
		fatal(t, stop())
	})
}

// TestC03_ASecondaryThatIsAddedBetweenRuns shows what the run before has written.
func TestC03_ASecondaryThatIsAddedBetweenRuns(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		delayWatches(w, "secrets", 5*time.Second)
		secrets := informer[*corev1.Secret](w)
		fatal(t, w.factory.Start(w.ctx))
		fatal(t, secrets.WaitForSync(w.ctx))
		n, stale := 0, 0
		c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
			if n++; n > 1 {
				if controller.Read(ctx, secrets).Len() != 1 {
					stale++
				}
				return controller.Result{}, nil
			}
			_, err := w.client.CoreV1().Secrets("a").Create(ctx, secret("a", "s"), createNow)
			return controller.Result{}, err
		})
		stop := start(w, c)
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		fatal(t, stop())
		fatal(t, c.AddSecondary(controller.Reads[*corev1.ConfigMap](secrets)))
		stop = start(w, c)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n < 2 || stale > 0 {
			t.Errorf("%d calls, %d do not read what was written before", n, stale)
		}
		fatal(t, stop())
	})
}

// TestC03_ASecondaryThatIsRemovedWhileItIsBehind holds back no key any more.
func TestC03_ASecondaryThatIsRemovedWhileItIsBehind(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		delayWatches(w, "secrets", time.Hour)
		secrets := informer[*corev1.Secret](w)
		fatal(t, w.factory.Start(w.ctx))
		fatal(t, secrets.WaitForSync(w.ctx))
		n := 0
		c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
			if n++; n > 1 {
				return controller.Result{}, nil
			}
			_, err := w.client.CoreV1().Secrets("a").Create(ctx, secret("a", "s"), createNow)
			return controller.Result{}, err
		})
		stop := start(w, c)
		time.Sleep(time.Second)
		synctest.Wait()
		fatal(t, c.AddSecondary(controller.Reads[*corev1.ConfigMap](secrets)))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		fatal(t, c.RemoveSecondary(secrets))
		before := n
		c.Enqueue("a/x")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if n == before {
			t.Errorf("no call in 20 seconds: waits for %q", c.Health().WaitingFor)
		}
		fatal(t, stop())
	})
}
