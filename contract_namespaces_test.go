package tidings_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
)

// inNamespaces runs a test for every kind of informer, of namespaces a and b.
func inNamespaces(t *testing.T, test func(w *world)) {
	t.Helper()
	s := tidings.Selection{Namespaces: []string{"a", "b"}}
	propertyWith(t, tidings.FactoryOptions{}, s, func(w *world) {
		w.haveNamespaces("a", "b", "c", "d", "e")
		test(w)
	})
}

// holds compares the cache with the objects of the server in some namespaces.
func (w *world) holds(namespaces ...string) {
	w.Helper()
	if got, want := w.probe.state(), w.serverStateOf(namespaces...); !maps.Equal(got, want) {
		w.Errorf("the cache holds %v, the server has %v in %v", got, want, namespaces)
	}
	if got := w.probe.informer().Namespaces(); !slices.Equal(got, namespaces) {
		w.Errorf("the informer says it holds %v, want %v", got, namespaces)
	}
}

func TestP01_NamespaceAddedToARunningInformer(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.createIn("a", "x", "1")
		w.createIn("c", "y", "1")
		var told follow.Follower
		registration := w.probe.handle(told.Handle, tidings.HandlerOptions{})
		w.start()
		expect(w, told.Texts(), "Added a/x initial 1")
		i := w.probe.informer()
		w.must(i.AddNamespace("c"))
		w.must(i.AddNamespace("c"))
		w.must(i.WaitForSync(w.ctx))
		w.holds("a", "b", "c")
		w.createIn("c", "z", "1")
		synctest.Wait()
		w.holds("a", "b", "c")
		expect(w, told.Texts(), "Added c/y 1", "Added c/z 1")
		if !registration.HasSynced() {
			w.Error("a namespace that was added later undid that a handler is synced")
		}
		if health := i.Health(); len(health.Namespaces) != 3 ||
			health.Namespaces["c"].State != tidings.StateWatching {
			w.Errorf("health is %+v", health)
		}
	})
}

func TestP08_RemovedNamespaceIsDeletedInOneStep(t *testing.T) {
	inNamespaces(t, func(w *world) {
		for n := range 5 {
			w.createIn("a", fmt.Sprint("object-", n), "1")
			w.createIn("b", fmt.Sprint("object-", n), "1")
		}
		w.start()
		var told follow.Follower
		w.probe.handle(func(e event) {
			told.Handle(e)
			if e.Type == tidings.Deleted && len(w.probe.state()) != 5 {
				w.Errorf("at %v the cache holds %v", e, w.probe.state())
			}
		}, tidings.HandlerOptions{})
		synctest.Wait()
		told.Take()
		i := w.probe.informer()
		before := i.Health()
		w.must(i.RemoveNamespace("b"))
		w.must(i.RemoveNamespace("b"))
		w.createIn("b", "unseen", "1")
		synctest.Wait()
		if watches := len(w.server.Watches()); watches != 1 {
			w.Errorf("%d watches are running after the removal, want 1", watches)
		}
		w.holds("a")
		expect(w, told.Texts(),
			"Deleted b/object-0 tombstone 1", "Deleted b/object-1 tombstone 1",
			"Deleted b/object-2 tombstone 1", "Deleted b/object-3 tombstone 1",
			"Deleted b/object-4 tombstone 1")
		if after := i.Health(); after.Lists < before.Lists || after.Watches < before.Watches {
			w.Errorf("counts went back: lists from %d to %d, watches from %d to %d",
				before.Lists, after.Lists, before.Watches, after.Watches)
		}

		// It comes back with its present objects.
		w.must(i.AddNamespace("b"))
		w.must(i.WaitForSync(w.ctx))
		synctest.Wait()
		w.holds("a", "b")
		if n := len(told.Take()); n != 6 {
			w.Errorf("told %d times, want 6 adds", n)
		}
	})
}

func TestP14_WaitForIncludesNamespacesThatWereAdded(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.start()
		i := w.probe.informer()
		w.createIn("c", "x", "1")
		w.must(i.AddNamespace("c"))
		w.must(i.WaitFor(w.ctx, w.versions["x"]))
		w.holds("a", "b", "c")
		// One that is gone is waited for no more, even if it could never be read.
		w.gate.set(func(rw http.ResponseWriter, r *http.Request) bool {
			return strings.Contains(r.URL.Path, "/namespaces/d/") && refuse(403, "Forbidden")(rw, r)
		})
		w.must(i.AddNamespace("d"))
		w.settle()
		w.createIn("a", "y", "1")
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Minute)
		defer cancel()
		if err := i.WaitFor(ctx, w.versions["y"]); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "Forbidden") {
			w.Errorf("with a namespace that cannot be read: %v", err)
		}
		w.must(i.RemoveNamespace("d"))
		if err := i.WaitFor(w.ctx, w.versions["y"]); err != nil {
			w.Error(err)
		}
	})
}

func TestP13_NamespaceThatFailsHoldsUpNoOther(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.createIn("a", "x", "1")
		w.createIn("c", "y", "1")
		w.gate.set(func(rw http.ResponseWriter, r *http.Request) bool {
			return strings.Contains(r.URL.Path, "/namespaces/c/") && refuse(403, "Forbidden")(rw, r)
		})
		w.start()
		var told follow.Follower
		w.probe.handle(told.Handle, tidings.HandlerOptions{})
		i := w.probe.informer()
		w.must(i.AddNamespace("c"))
		w.settle()
		w.createIn("a", "z", "1")
		synctest.Wait()
		expect(w, told.Texts(), "Added a/x initial 1", "Added a/z 1")
		h := i.Health()
		if !h.Synced || h.State != tidings.StateForbidden ||
			h.Namespaces["c"].State != tidings.StateForbidden || h.Namespaces["a"].State != tidings.StateWatching {
			w.Errorf("health is %+v", h)
		}
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		err := i.WaitForSync(ctx)
		if notSynced, ok := errors.AsType[*tidings.NotSyncedError](err); !ok ||
			len(notSynced.Informers) != 1 || !strings.Contains(err.Error(), `namespace "c"`) {
			w.Errorf("WaitForSync: %v, want an error that names the namespace", err)
		}
		w.gate.set(nil)
		w.settle()
		expect(w, told.Texts(), "Added c/y 1")
		w.holds("a", "b", "c")
	})
}

// TestP13_NoNamespaceHidesTheFailuresOfAnother: one has failed for an hour, another one for a second.
func TestP13_NoNamespaceHidesTheFailuresOfAnother(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.start()
		var all atomic.Bool
		w.gate.set(func(rw http.ResponseWriter, r *http.Request) bool {
			return (all.Load() || strings.Contains(r.URL.Path, "/namespaces/b/")) && refuse(403, "Forbidden")(rw, r)
		})
		w.server.CutConnections()
		w.after(time.Hour)
		all.Store(true)
		w.server.CutConnections()
		w.after(2 * time.Second)
		h := w.health()
		a, b := h.Namespaces["a"], h.Namespaces["b"]
		if time.Since(h.FailingSince) < time.Hour || !h.FailingSince.Equal(b.FailingSince) || h.Failures != b.Failures {
			w.Errorf("%d failures for %v, of b %d for %v", h.Failures, time.Since(h.FailingSince),
				b.Failures, time.Since(b.FailingSince))
		}
		if !h.LastEvent.Equal(b.LastEvent) || !h.LastEvent.Before(a.LastEvent) {
			w.Errorf("the last event is of %v, those of the namespaces of %v and %v", h.LastEvent, a.LastEvent, b.LastEvent)
		}
		w.gate.set(nil)
		w.after(10 * time.Minute)
		if h := w.health(); h.State != tidings.StateWatching || h.Failures != 0 || !h.FailingSince.IsZero() {
			w.Errorf("after the recovery health is %+v", h)
		}
	})
}

// TestP08_WaitForSyncIncludesARemoval, which a handler with PolicyBlock holds up.
func TestP08_WaitForSyncIncludesARemoval(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.createIn("a", "x", "1")
		w.createIn("b", "y", "1")
		w.start()
		blocks := &follow.Follower{}
		w.probe.handle(blocks.Handle, tidings.HandlerOptions{Policy: tidings.PolicyBlock, Limit: 1})
		synctest.Wait()
		blocks.Block()
		for n := range 3 {
			w.createIn("a", fmt.Sprint("more-", n), "1")
			synctest.Wait()
		}
		i := w.probe.informer()
		w.must(i.RemoveNamespace("b"))
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		if err := i.WaitForSync(ctx); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("WaitForSync: %v, while the cache holds %v", err, w.probe.state())
		}
		unblock := time.AfterFunc(time.Second, blocks.Unblock)
		defer unblock.Stop()
		w.must(i.WaitForSync(w.ctx))
		w.holds("a")
	})
}

// TestP13_TheNameIsThatOfTheNamespacesOfNow, in health, in errors and of a handle that was released.
func TestP13_TheNameIsThatOfTheNamespacesOfNow(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.start()
		i := w.probe.informer()
		resource, _, _ := strings.Cut(i.Name(), " [")
		is := func(namespaces string) {
			w.Helper()
			want := resource + " [in " + namespaces + "]"
			if err := i.WaitFor(w.ctx, "x"); i.Name() != want || w.health().Name != want ||
				!strings.Contains(fmt.Sprint(err), want) {
				w.Errorf("the name is %q, in health %q, an error says %v; want %q", i.Name(), w.health().Name, err, want)
			}
		}
		is("a,b")
		w.must(i.AddNamespace("c"))
		is("a,b,c")
		w.must(i.RemoveNamespace("b"))
		is("a,c")
		i.Release()
		if got := i.Name(); got != resource+" [in a,c]" {
			w.Errorf("the name of a released handle is %q", got)
		}
	})
}

func TestNamespacesBeforeTheStartBelongToTheInitialSet(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.createIn("a", "x", "1")
		w.createIn("c", "y", "1")
		var told follow.Follower
		w.probe.handle(told.Handle, tidings.HandlerOptions{})
		w.must(w.probe.informer().AddNamespace("c"))
		w.must(w.probe.informer().RemoveNamespace("a"))
		w.start()
		w.holds("b", "c")
		expect(w, told.Texts(), "Added c/y initial 1")
	})
}

func TestNamespacesThatCannotBeChanged(t *testing.T) {
	inNamespaces(t, func(w *world) {
		i := w.probe.informer()
		w.must(i.RemoveNamespace("b"))
		all := w.ask(w.T, w.factory, tidings.Selection{AllNamespaces: true}).informer()
		nodes, err := tidings.For[*corev1.Node](w.factory, tidings.Selection{})
		if err != nil {
			w.Fatal(err)
		}
		released := w.ask(w.T, w.factory, tidings.Selection{Namespace: "c"}).informer()
		released.Release()
		for name, test := range map[string]struct{ err, is error }{
			"the last one":         {i.RemoveNamespace("a"), tidings.ErrLastNamespace},
			"of all":               {all.AddNamespace("a"), tidings.ErrAllNamespaces},
			"of all, removed":      {all.RemoveNamespace("a"), tidings.ErrAllNamespaces},
			"of a cluster's type":  {nodes.AddNamespace("a"), tidings.ErrClusterScoped},
			"of a released handle": {released.AddNamespace("a"), tidings.ErrReleased},
			"with a name of none":  {i.AddNamespace("No/Such"), nil},
		} {
			if test.err == nil || test.is != nil && !errors.Is(test.err, test.is) {
				w.Errorf("%s: %v, want %v", name, test.err, test.is)
			}
		}
		w.start()
		w.holds("a")
		w.stop()
		synctest.Wait()
		if err := i.AddNamespace("b"); !errors.Is(err, tidings.ErrStopped) {
			w.Errorf("AddNamespace after the stop: %v", err)
		}
	})
}

func TestInformerIsSharedByTheNamespacesOfNow(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.start()
		other := w.ask(w.T, w.factory, tidings.Selection{Namespaces: []string{"a", "c"}})
		w.must(w.probe.informer().RemoveNamespace("b"))
		// Asking for a finds the informer that holds it now; asking for its former namespaces makes
		// another one.
		now := w.ask(w.T, w.factory, tidings.Selection{Namespace: "a"}).informer()
		before := w.ask(w.T, w.factory,
			tidings.Selection{Namespaces: []string{"a", "b"}}).informer()
		w.start()
		if n := len(w.factory.Health()); n != 3 {
			w.Errorf("the factory has %d informers, want 3", n)
		}
		w.must(now.AddNamespace("d"))
		got := fmt.Sprint(w.probe.informer().Namespaces(), now.Namespaces(), before.Namespaces())
		if got != "[a d] [a d] [a b]" {
			w.Errorf("they hold %s", got)
		}
		// A selection that another informer has stays that informer's.
		w.must(now.RemoveNamespace("d"))
		w.must(now.AddNamespace("c"))
		third := w.ask(w.T, w.factory, tidings.Selection{Namespaces: []string{"a", "c"}}).informer()
		w.must(third.AddNamespace("e"))
		if got := fmt.Sprint(other.informer().Namespaces(), now.Namespaces()); got != "[a c e] [a c]" {
			w.Errorf("they hold %s", got)
		}
		for _, i := range []informer{w.probe.informer(), now} {
			i.Release()
		}
		synctest.Wait()
		if n := len(w.factory.Health()); n != 2 {
			w.Errorf("after the release the factory has %d informers, want 2", n)
		}
	})
}

// TestNamespacesComeAndGo changes namespaces from many goroutines, with writes beside
// and handlers that follow, and compares at the end.
func TestNamespacesComeAndGo(t *testing.T) {
	inNamespaces(t, func(w *world) {
		l := w.follow()
		w.start()
		i := w.probe.informer()
		var changing sync.WaitGroup
		for _, namespace := range []string{"b", "c", "d", "e"} {
			changing.Go(func() {
				for round := range 10 {
					time.Sleep(time.Duration(round) * time.Millisecond)
					if err := i.AddNamespace(namespace); err != nil {
						w.Error(err)
					}
					if err := i.RemoveNamespace(namespace); err != nil {
						w.Error(err)
					}
				}
				if err := i.AddNamespace(namespace); err != nil {
					w.Error(err)
				}
			})
		}
		for n := range 100 {
			w.createIn(string(rune('a'+n%5)), fmt.Sprint("object-", n), "1")
			if n%10 == 0 {
				time.Sleep(5 * time.Millisecond)
			}
		}
		changing.Wait()
		w.settle()
		w.holds("a", "b", "c", "d", "e")
		if held, cache := l.Held(), w.probe.state(); !maps.Equal(held, cache) {
			w.Errorf("the handler adds up to %v, the cache holds %v", held, cache)
		}
	})
}
