package controller_test

import (
	"context"
	"fmt"
	"sync/atomic"
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

// reader is a function of a controller. Its first call writes; the calls after start count what they read.
type reader struct {
	write func(ctx context.Context) error
	has   func(ctx context.Context) bool // a call reads what was written

	started             atomic.Bool
	calls, reads, stale atomic.Int64
}

func (r *reader) call(ctx context.Context, _ request) (controller.Result, error) {
	if r.started.Load() {
		r.reads.Add(1)
		if !r.has(ctx) {
			r.stale.Add(1)
		}
	}
	if r.calls.Add(1) == 1 && r.write != nil {
		return controller.Result{}, r.write(ctx)
	}
	return controller.Result{}, nil
}

// expect checks that calls have read, and that all have read what was written.
func (r *reader) expect(t *testing.T) {
	t.Helper()
	synctest.Wait()
	if reads, stale := r.reads.Load(), r.stale.Load(); reads == 0 || stale > 0 {
		t.Errorf("%d of %d calls have not read what was written before", stale, reads)
	}
}

// createsSecret returns a write of the Secret s in a namespace.
func createsSecret(w *world, namespace string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		_, err := w.client.CoreV1().Secrets(namespace).Create(ctx, secret(namespace, "s"), createNow)
		return err
	}
}

// hasOne returns a read of an informer that has one object.
func hasOne[S tidings.Object](i *tidings.Informer[S]) func(ctx context.Context) bool {
	return func(ctx context.Context) bool { return controller.Read(ctx, i).Len() == 1 }
}

// TestC03_ALargeQuietCollection: the server is compared with a cache that no event will bring on, which takes
// longer than an ordinary question.
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
		pages := map[string]string{"limit": "500"}
		w.server.Inject(apisim.Match{Verb: "list", Resource: "configmaps", Query: pages}, apisim.Delay(3*time.Second))
		other := create(w, secret("a", "s"))
		term := handingTerm{newTerm()}
		term.left, term.ok = map[string]string{"configmaps": other.ResourceVersion}, true
		stop := startTerm(w, c, term)
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(log.take()) == 0 {
			t.Errorf("no calls in an hour: it waits for %q", c.Health().WaitingFor)
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
		r := &reader{has: func(ctx context.Context) bool {
			return !secrets.HasSynced() || hasOne(secrets)(ctx)
		}}
		r.started.Store(true)
		c := newController(w, options{Secondaries: []secondary{controller.Reads(secrets).Optional()}}, r.call)
		fatal(t, w.factory.Start(w.ctx))
		time.Sleep(time.Second)
		synctest.Wait()
		s := create(w, secret("a", "s")) // by the last holder
		term := handingTerm{newTerm()}
		term.left, term.ok = map[string]string{"secrets": s.ResourceVersion}, true
		stop := startTerm(w, c, term)
		time.Sleep(30 * time.Second)
		r.expect(t)
		fatal(t, stop())
	})
}

// TestC03_WithoutAGuard the versions of a hand-over that caches do not reach hold up no call for long.
func TestC03_WithoutAGuard(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		var log calls
		c, err := controller.New(informer[*corev1.ConfigMap](w), options{Name: "test", Logger: discard}, isCalled(&log))
		fatal(t, err)
		fatal(t, w.factory.Start(w.ctx))
		term := handingTerm{newTerm()}
		term.left, term.ok = map[string]string{"configmaps": "1000000"}, true
		stop := startTerm(w, c, term)
		time.Sleep(20 * time.Second)
		log.expect(t, "a/x")
		fatal(t, stop())
	})
}

// TestC03_ASecondaryThatAppearsWhileTheServerIsAsked about another one holds keys back, too.
func TestC03_ASecondaryThatAppearsWhileTheServerIsAsked(t *testing.T) {
	inWorld(t, func(w *world) {
		secrets := lateSecrets(w, 3*time.Second)
		w.server.Inject(apisim.Match{Verb: "watch", Resource: "services"},
			apisim.Stall(apisim.EachFrame, 30*time.Second))
		services := informer[*corev1.Service](w)
		fatal(t, w.factory.Start(w.ctx))
		fatal(t, services.WaitForSync(w.ctx))
		r := &reader{has: hasOne(services), write: func(ctx context.Context) error {
			fatal(t, createsSecret(w, "a")(ctx))
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "s"},
				Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
			_, err := w.client.CoreV1().Services("a").Create(ctx, service, createNow)
			return err
		}}
		c := newController(w, options{}, r.call)
		stop := start(w, c)
		time.Sleep(100 * time.Millisecond)
		w.server.Inject(apisim.Match{Verb: "list", Resource: "secrets"}, apisim.Delay(4*time.Second))
		fatal(t, c.AddSecondary(controller.Reads(secrets)))
		time.Sleep(2500 * time.Millisecond)
		fatal(t, c.AddSecondary(controller.Reads(services)))
		time.Sleep(1500 * time.Millisecond)
		r.started.Store(true)
		for range 26 {
			c.Enqueue("a/x")
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Minute)
		r.expect(t)
		fatal(t, stop())
	})
}

// TestC03_SecondariesThatAppearOneAfterAnother: the server is asked about each at once, where no event shows
// that its cache is as new as the server.
func TestC03_SecondariesThatAppearOneAfterAnother(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("b", "x"))
		w.server.Inject(apisim.Match{Verb: "watch"}, apisim.DropBookmarks())
		secrets, err := tidings.For[*corev1.Secret](w.factory, tidings.Selection{Namespaces: []string{"a"}})
		fatal(t, err)
		r := &reader{write: createsSecret(w, "b")}
		c := newController(w, options{}, r.call)
		fatal(t, w.factory.Start(w.ctx))
		fatal(t, w.factory.WaitForSync(w.ctx))
		stop := start(w, c)
		time.Sleep(time.Second)
		for round := range 7 {
			before := r.calls.Load()
			fatal(t, c.AddSecondary(controller.Reads(secrets)))
			time.Sleep(15 * time.Second)
			synctest.Wait()
			if r.calls.Load() == before {
				t.Errorf("round %d: no call in 15 seconds", round)
			}
			fatal(t, c.RemoveSecondary(secrets))
		}
		fatal(t, stop())
	})
}

// TestS2_SlotsAreOpenedWhileTheServerIsAskedAboutOthers: questions about eight namespaces hang, and the slot of
// a ninth is served as soon as its cache shows the hand-over.
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
		var began time.Time
		var called time.Duration
		s := controller.NewSlots(controller.ByNamespace)
		c := control(w, i, options{Slots: s}, func(context.Context, request) (controller.Result, error) {
			if called == 0 {
				called = time.Since(began)
			}
			return controller.Result{}, nil
		})
		stop := start(w, c)
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.All())
		var lags *apisim.Injection
		for _, name := range names {
			lags = w.server.Inject(apisim.Match{Verb: "watch", Namespace: name}, apisim.Lag())
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
		lags.Lift() // that of z
		w.server.CutConnections()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if called == 0 || called > 30*time.Second {
			t.Errorf("the slot was served after %v", called)
		}
		fatal(t, stop())
	})
}

// TestC03_ADeletedObjectThatOthersMakeAgain: a key is held while the cache has the object that its call has
// deleted, though the server has another one of that name.
func TestC03_ADeletedObjectThatOthersMakeAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		old := create(w, secret("a", "s"))
		secrets := lateSecrets(w, 5*time.Minute)
		lists := w.server.Inject(apisim.Match{Verb: "list", Resource: "secrets"}, apisim.Delay(time.Hour))
		r := &reader{has: func(ctx context.Context) bool {
			s, err := controller.Read(ctx, secrets).Get("a/s")
			return err != nil || s.UID != old.UID
		}}
		r.write = func(ctx context.Context) error {
			fatal(t, w.client.CoreV1().Secrets("a").Delete(ctx, "s", deleteNow))
			create(w, secret("a", "s"))
			r.started.Store(true)
			return errLater
		}
		c := newController(w, options{Secondaries: []secondary{controller.Reads(secrets)}}, r.call)
		stop := start(w, c)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := r.reads.Load(); n > 0 {
			t.Errorf("%d calls while the cache has the deleted object", n)
		}
		lists.Lift()
		time.Sleep(10 * time.Minute)
		r.expect(t)
		fatal(t, stop())
	})
}

// TestC03_ASecondaryThatIsAddedBetweenRuns shows what the run before has written.
func TestC03_ASecondaryThatIsAddedBetweenRuns(t *testing.T) {
	inWorld(t, func(w *world) {
		secrets := lateSecrets(w, 5*time.Second)
		r := &reader{write: createsSecret(w, "a"), has: hasOne(secrets)}
		c := newController(w, options{}, r.call)
		stop := start(w, c)
		time.Sleep(100 * time.Millisecond)
		fatal(t, stop())
		fatal(t, c.AddSecondary(controller.Reads(secrets)))
		r.started.Store(true)
		stop = start(w, c)
		time.Sleep(time.Minute)
		r.expect(t)
		fatal(t, stop())
	})
}

// TestC03_ASecondaryThatIsRemovedWhileItIsBehind holds back no key any more.
func TestC03_ASecondaryThatIsRemovedWhileItIsBehind(t *testing.T) {
	inWorld(t, func(w *world) {
		secrets := lateSecrets(w, time.Hour)
		r := &reader{write: createsSecret(w, "a")}
		c := newController(w, options{}, r.call)
		stop := start(w, c)
		time.Sleep(time.Second)
		fatal(t, c.AddSecondary(controller.Reads(secrets)))
		time.Sleep(3 * time.Second)
		fatal(t, c.RemoveSecondary(secrets))
		before := r.calls.Load()
		c.Enqueue("a/x")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if r.calls.Load() == before {
			t.Errorf("no call in 20 seconds: it waits for %q", c.Health().WaitingFor)
		}
		fatal(t, stop())
	})
}

// TestC03_WritesWithoutAVersion are shown by a secondary that is added later, too: a delete, and a write whose
// answer was lost.
func TestC03_WritesWithoutAVersion(t *testing.T) {
	for name, test := range map[string]struct {
		before bool // the Secret exists before
		write  func(w *world, r *reader, ctx context.Context) error
	}{
		"a delete": {true, func(w *world, _ *reader, ctx context.Context) error {
			return w.client.CoreV1().Secrets("a").Delete(ctx, "s", deleteNow)
		}},
		"a write without an answer": {false, func(w *world, _ *reader, ctx context.Context) error {
			w.server.Inject(apisim.Match{Verb: "create", Resource: "secrets", Times: 1}, apisim.CutAfter(0))
			if createsSecret(w, "a")(ctx) == nil {
				w.Error("the create has an answer")
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				if test.before {
					create(w, secret("a", "s"))
				}
				secrets := lateSecrets(w, 50*time.Second)
				r := &reader{has: func(ctx context.Context) bool { return hasOne(secrets)(ctx) != test.before }}
				r.write = func(ctx context.Context) error { return test.write(w, r, ctx) }
				c := newController(w, options{}, r.call)
				stop := start(w, c)
				time.Sleep(100 * time.Millisecond)
				fatal(t, c.AddSecondary(controller.Reads(secrets)))
				time.Sleep(3 * time.Second)
				r.started.Store(true)
				enqueueFor90s(c)
				r.expect(t)
				fatal(t, stop())
			})
		})
	}
}

// TestC03_AnOptionalSecondaryThatFailsForLong and comes back shows what the last holder has written.
func TestC03_AnOptionalSecondaryThatFailsForLong(t *testing.T) {
	inWorld(t, func(w *world) {
		secrets := lateSecrets(w, 20*time.Second)
		r := &reader{has: func(ctx context.Context) bool {
			return secrets.Health().State != tidings.StateWatching || hasOne(secrets)(ctx)
		}}
		c := newController(w, options{Secondaries: []secondary{controller.Reads(secrets).Optional()}}, r.call)
		fails := w.server.Inject(apisim.Match{Resource: "secrets"}, apisim.Drop())
		w.server.CutConnections()
		time.Sleep(time.Second)
		s := create(w, secret("a", "s")) // by the last holder
		term := handingTerm{newTerm()}
		term.left, term.ok = map[string]string{"secrets": s.ResourceVersion}, true
		stop := startTerm(w, c, term)
		time.Sleep(5 * time.Minute)
		if r.calls.Load() == 0 {
			t.Error("no call without the optional informer")
		}
		r.started.Store(true)
		fails.Lift()
		enqueueFor90s(c)
		r.expect(t)
		fatal(t, stop())
	})
}

// TestC03_AHandOverOfAKeyThatWritesInAnotherNamespace holds back the keys of all namespaces.
func TestC03_AHandOverOfAKeyThatWritesInAnotherNamespace(t *testing.T) {
	inWorld(t, func(w *world) {
		delayWatches(w, "secrets", 40*time.Second)
		i, _ := twoNamespaces(w)
		secrets, err := tidings.For[*corev1.Secret](w.factory, tidings.Selection{Namespaces: []string{"a", "b"}})
		fatal(t, err)
		r := &reader{has: hasOne(secrets)}
		r.started.Store(true)
		c := control(w, i, options{Secondaries: []secondary{controller.Reads(secrets)}}, r.call)
		fatal(t, w.factory.Start(w.ctx))
		fatal(t, w.factory.WaitForSync(w.ctx))
		s := create(w, secret("b", "s")) // by the last holder, for a/x
		term := handingTerm{newTerm()}
		term.left, term.ok = map[string]string{"secrets in b": s.ResourceVersion}, true
		stop := startTerm(w, c, term)
		time.Sleep(5 * time.Minute)
		r.expect(t)
		fatal(t, stop())
	})
}

// enqueueFor90s enqueues a/x each second.
func enqueueFor90s(c *controller.Controller[*corev1.ConfigMap]) {
	for range 90 {
		c.Enqueue("a/x")
		time.Sleep(time.Second)
	}
}
