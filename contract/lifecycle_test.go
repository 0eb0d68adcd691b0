package contract_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
)

// newTerm ends the context of the world and makes the next one.
func (w *world) newTerm() {
	w.stop()
	w.ctx, w.stop = context.WithCancel(context.Background())
}

// expectError checks an error, which is one of any kind if is is nil, and its text.
func expectError(t testing.TB, what string, err, is error, says ...string) {
	t.Helper()
	if err == nil || is != nil && !errors.Is(err, is) {
		t.Errorf("%s: got %v, want %v", what, err, is)
		return
	}
	for _, part := range says {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: the error does not say %q: %v", what, part, err)
		}
	}
	if strings.Count(err.Error(), "tidings: ") > 1 {
		t.Errorf("%s: the error names the package twice: %v", what, err)
	}
}

// TestFactoryRunsForTermAfterTerm is a program that runs its informers while it is the
// leader. A handler that does not return keeps the informer of the first term ending for
// the whole grace.
func TestFactoryRunsForTermAfterTerm(t *testing.T) {
	for _, pause := range []time.Duration{0, 5 * time.Second, time.Minute} {
		t.Run(fmt.Sprint(pause), func(t *testing.T) {
			property(t, func(w *world) {
				w.create("a", "1")
				hang, first := make(chan struct{}), w.probe
				first.handle(func(event) { <-hang }, tidings.HandlerOptions{})
				w.start()
				w.newTerm()
				time.Sleep(pause)
				w.probe = w.ask(w.T, w.factory, tidings.Selection{Namespace: "default"})
				var told follow.Follower
				w.probe.handle(told.Handle, tidings.HandlerOptions{})
				w.start()
				expect(w, told.Texts(), "Added default/a initial 1")
				w.create("b", "1")
				synctest.Wait()
				expect(w, told.Texts(), "Added default/b 1")
				w.agree()
				expectError(w, "WaitForSync of the first term",
					first.informer().WaitForSync(w.ctx), tidings.ErrStopped)
				expectError(w, "WaitFor of the first term", first.informer().WaitFor(w.ctx, "1"),
					tidings.ErrStopped)
				expectError(w, "a handler of the first term", first.add(), tidings.ErrStopped,
					first.informer().Name())
				if n := len(w.factory.Health()); n != 1 {
					w.Errorf("the factory has %d informers, want the one of this term", n)
				}
				time.Sleep(time.Minute)
				close(hang)
				synctest.Wait()
			})
		})
	}
}

func TestStartRefusesInformersOfAnEndedTerm(t *testing.T) {
	for _, pause := range []time.Duration{0, time.Minute} {
		property(t, func(w *world) {
			w.start()
			w.newTerm()
			time.Sleep(pause)
			name := w.probe.informer().Name()
			expectError(w, "WaitForSync of the factory", w.factory.WaitForSync(w.ctx),
				tidings.ErrStopped, name)
			other := w.ask(w.T, w.factory, tidings.Selection{Labels: "n=1"})
			err := w.factory.Start(w.ctx)
			expectError(w, "Start", err, tidings.ErrStopped, name, "ask the factory for it again",
				"Release")
			expectError(w, "what Start refused", other.informer().WaitForSync(w.ctx),
				tidings.ErrNotStarted)
			w.probe.informer().Release()
			w.start()
			if !other.informer().HasSynced() {
				w.Error("after the release, what was asked for again is not synced")
			}
		})
	}
}

// TestFactoryRunsForTermAfterTermWithAnAddedNamespace is a program that asks for one
// namespace in each term, and adds another.
func TestFactoryRunsForTermAfterTermWithAnAddedNamespace(t *testing.T) {
	property(t, func(w *world) {
		w.probe.informer().Release()
		for range 3 {
			i := w.ask(w.T, w.factory, tidings.Selection{Namespace: "one"}).informer()
			w.must(i.AddNamespace("two"))
			w.startFactory()
			if err := w.factory.WaitForSync(w.ctx); err != nil {
				w.Error(err)
			}
			if n := len(w.factory.Health()); n != 1 {
				w.Errorf("the factory has %d informers, want the one of this term", n)
			}
			w.newTerm()
		}
	})
}

func TestWaitsForAnInformerOfOnesOwnWaitForItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, err := tidings.NewInformer(&fakeSource{
			lists: [][]*corev1.ConfigMap{{stateAt("a", "1", "1")}},
		}, tidings.InformerOptions[*corev1.ConfigMap]{})
		if err != nil {
			t.Fatal(err)
		}
		results := make(chan error, 2)
		go func() { results <- i.WaitForSync(t.Context()) }()
		go func() { results <- i.WaitFor(t.Context(), "1") }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- i.Run(ctx) }()
		for range cap(results) {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestWaitsForAnInformerThatNobodyStartedFailAtOnce(t *testing.T) {
	property(t, func(w *world) {
		i := w.probe.informer()
		expectError(w, "WaitForSync", i.WaitForSync(context.Background()), tidings.ErrNotStarted,
			i.Name(), "call Start")
		expectError(w, "WaitFor", i.WaitFor(context.Background(), "1"), tidings.ErrNotStarted,
			i.Name(), "call Start")
	})
}

// TestInformerThatAHandleRunsIsTheFactorysToStop stops it by each of the two ways.
func TestInformerThatAHandleRunsIsTheFactorysToStop(t *testing.T) {
	for name, stop := range map[string]func(w *world){
		"Release": func(w *world) { w.probe.informer().Release() },
		"Shutdown": func(w *world) {
			if err := w.factory.Shutdown(context.Background()); err != nil {
				w.Error(err)
			}
			if state := w.health().State; state != tidings.StateStopped {
				w.Errorf("Shutdown has returned, and the informer is %s", state)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			property(t, func(w *world) {
				done := make(chan error, 1)
				go func() { done <- w.probe.informer().Run(context.Background()) }()
				synctest.Wait()
				stop(w)
				synctest.Wait()
				select {
				case err := <-done:
					if err != nil {
						w.Error(err)
					}
				default:
					w.Fatal("Run has not returned")
				}
			})
		})
	}
}

// TestShutdownWaitsForWhatWasReleased ends a factory while a handler of a released informer hangs.
func TestShutdownWaitsForWhatWasReleased(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		hang := make(chan struct{})
		w.probe.handle(func(event) { <-hang }, tidings.HandlerOptions{})
		w.start()
		w.probe.informer().Release()
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		expectError(w, "Shutdown", w.factory.Shutdown(ctx), context.DeadlineExceeded,
			w.probe.informer().Name(), "still stopping")
		close(hang)
		w.must(w.factory.Shutdown(context.Background()))
	})
}

func TestWaitGoesOnWithoutWhatAnotherReleases(t *testing.T) {
	property(t, func(w *world) {
		w.gate.set(refuse(503, "ServiceUnavailable"))
		other := w.ask(w.T, w.factory, tidings.Selection{Labels: "n=1"})
		w.startFactory()
		done := make(chan error, 1)
		go func() { done <- w.factory.WaitForSync(w.ctx) }()
		synctest.Wait()
		other.informer().Release()
		synctest.Wait()
		select {
		case err := <-done:
			w.Fatalf("the wait ended with the release of another's informer: %v", err)
		default:
		}
		w.gate.set(nil)
		if err := <-done; err != nil {
			w.Error(err)
		}
		w.agree()
	})
}

// TestWaitNamesWhatHasStoppedMeanwhile stops an informer that was synced while another one
// is waited for.
func TestWaitNamesWhatHasStoppedMeanwhile(t *testing.T) {
	property(t, func(w *world) {
		ctx, stop := context.WithCancel(context.Background())
		ran := make(chan error, 1)
		go func() { ran <- w.probe.informer().Run(ctx) }()
		synctest.Wait()
		w.gate.set(refuse(503, "ServiceUnavailable"))
		w.ask(w.T, w.factory, tidings.Selection{Labels: "n=1"})
		w.startFactory()
		waited := make(chan error, 1)
		go func() { waited <- w.factory.WaitForSync(context.Background()) }()
		synctest.Wait()
		stop()
		if err := <-ran; err != nil {
			w.Error(err)
		}
		w.gate.set(nil)
		expectError(w, "WaitForSync", <-waited, tidings.ErrStopped, w.probe.informer().Name())
	})
}

// TestWaitsEndWithWhatTheyWaitFor ends informers that were started and others that were
// not, in the three ways there are.
func TestWaitsEndWithWhatTheyWaitFor(t *testing.T) {
	ends := map[string]struct {
		end func(w *world)
		is  error
	}{
		"Release":  {func(w *world) { w.probe.informer().Release() }, tidings.ErrReleased},
		"Shutdown": {func(w *world) { w.factory.Shutdown(context.Background()) }, tidings.ErrStopped},
		"context":  {func(w *world) { w.stop() }, tidings.ErrStopped},
	}
	for name, test := range ends {
		t.Run(name, func(t *testing.T) {
			property(t, func(w *world) {
				i := w.probe.informer()
				w.gate.set(refuse(503, "ServiceUnavailable"))
				w.startFactory()
				results := make(chan error, 2)
				go func() { results <- i.WaitForSync(context.Background()) }()
				go func() { results <- i.WaitFor(context.Background(), "1") }()
				synctest.Wait()
				test.end(w)
				for range cap(results) {
					expectError(w, "a wait under way", <-results, test.is, i.Name())
				}
				expectError(w, "a later WaitForSync", i.WaitForSync(context.Background()), test.is)
				expectError(w, "a later WaitFor", i.WaitFor(context.Background(), "1"), test.is)
			})
		})
	}
	for _, name := range []string{"Release", "Shutdown"} {
		t.Run(name+" before the start", func(t *testing.T) {
			property(t, func(w *world) {
				r := w.probe.handle(func(event) {}, tidings.HandlerOptions{})
				ends[name].end(w)
				<-r.Done()
				i, is := w.probe.informer(), ends[name].is
				expectError(w, "WaitForSync", i.WaitForSync(context.Background()), is)
				expectError(w, "WaitFor", i.WaitFor(context.Background(), "1"), is)
				expectError(w, "Run", i.Run(context.Background()), is)
			})
		})
	}
}

// TestReleasedInformerIsGarbage keeps the released handle, and registrations of handlers
// that were removed before the release and by it.
func TestReleasedInformerIsGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{DetectMutations: true},
			apisim.Options{})
		defer w.end()
		for n := range 20 {
			w.create(fmt.Sprint("object-", n), "1")
		}
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Namespace: "default"})
		if err != nil {
			t.Fatal(err)
		}
		var registrations [2]*tidings.Registration
		for n := range registrations {
			o := tidings.HandlerOptions{IsolatePanics: n == 0}
			registrations[n], err = i.AddHandler(ignore[*corev1.ConfigMap](), o)
			w.must(err)
		}
		w.start()
		var cached []weak.Pointer[corev1.ConfigMap]
		for _, obj := range i.Lister().All() {
			cached = append(cached, weak.Make(obj))
		}
		registrations[0].Remove()
		i.Release()
		time.Sleep(time.Minute)
		synctest.Wait()
		runtime.GC()
		runtime.GC()
		alive := 0
		for _, p := range cached {
			if p.Value() != nil {
				alive++
			}
		}
		if len(cached) != 20 || alive > 0 {
			t.Errorf("%d of %d objects are alive after the release", alive, len(cached))
		}
		if h := registrations[1].Health(); h.State != tidings.HandlerRemoved || i.Lister().Len() != 0 ||
			i.Name() == "" {
			t.Errorf("after the release %q holds %d objects, a handler is %s",
				i.Name(), i.Lister().Len(), h.State)
		}
		runtime.KeepAlive(registrations)
	})
}

// TestChangesOfNamespacesWaitForATransform has the bubble's clock stand if one of them
// waits for the other in a way that a bubble does not see.
func TestChangesOfNamespacesWaitForATransform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		w.create("a", "1")
		slow := tidings.NewTransform(func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			time.Sleep(time.Minute)
			return c, nil
		})
		i, err := tidings.For[*corev1.ConfigMap](w.factory,
			tidings.Selection{Namespaces: []string{"default", "kube-system"}, Transform: slow})
		if err != nil {
			t.Fatal(err)
		}
		w.startFactory()
		time.Sleep(time.Second)
		done := make(chan error)
		go func() { done <- i.RemoveNamespace("default") }()
		go func() { done <- i.AddNamespace("kube-public") }()
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		expect(t, i.Namespaces(), "kube-public", "kube-system")
	})
}

// TestHandlersThatReturnedAreForgotten: handlers that outlast the end of a term are no matter of
// a Shutdown long after they have returned.
func TestHandlersThatReturnedAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{}, apisim.Options{})
		defer w.server.Close() //nolint:errcheck // the test is over
		defer w.stop()
		w.create("a", "1")
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			p := w.ask(t, w.factory, tidings.Selection{})
			r := p.handle(func(event) { time.Sleep(30 * time.Second) },
				tidings.HandlerOptions{Name: "slow"})
			if err := w.factory.Start(ctx); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			cancel()
			<-r.Done()
			p.informer().Release()
		}
		if err := w.factory.Shutdown(t.Context()); err != nil {
			t.Errorf("Shutdown after the last handler has returned: %v", err)
		}
	})
}
