package contract_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
)

// TestP13_DefinitionIsFollowed asks for a type before its definition is installed, and replaces the
// definition by others and back: while the informer listens, while it knows that the definition
// is gone, and while it cannot hear.
func TestP13_DefinitionIsFollowed(t *testing.T) {
	first := definition{"widgets", "Widget", "v1", "Namespaced"}
	for name, other := range map[string][]definition{
		"same":    {first},
		"scope":   {{"widgets", "Widget", "v1", "Cluster"}},
		"plural":  {{"widgetry", "Widget", "v1", "Namespaced"}},
		"both":    {{"widgetry", "Widget", "v1", "Cluster"}},
		"version": {{"widgets", "Widget", "v2", "Namespaced"}},
		"kind":    {{"widgets", "Gadget", "v1", "Namespaced"}, {"widgetry", "Widget", "v1", "Namespaced"}},
		"none":    {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			withMappers(t, tidings.Selection{}, func(w *world, kind string) {
				l := w.follow()
				w.startFactory()
				time.Sleep(time.Minute)
				synctest.Wait()
				if h := w.health(); h.State != tidings.StateNoSuchResource || h.Synced {
					w.Errorf("before the definition, health is %+v", h)
				}
				var present []definition
				for step, now := range slices.Repeat([][]definition{{first}, other}, 3) {
					deaf := step >= 4
					if deaf {
						w.server.SetAvailable(false)
					}
					for _, d := range present {
						w.uninstallAs(d.plural)
					}
					if step == 2 || step == 3 {
						time.Sleep(3 * time.Minute)
					}
					want := w.replace(now, step, kind)
					if deaf {
						time.Sleep(time.Minute)
						w.server.SetAvailable(true)
					}
					time.Sleep(3 * time.Minute) // three waits, of 45 seconds at most
					synctest.Wait()
					if h := w.health(); want == "" && h.State != tidings.StateNoSuchResource {
						w.Errorf("step %d: health is %+v", step, h)
					} else if want != "" {
						w.cached(want)
						if got := slices.Collect(maps.Keys(l.Held())); !slices.Equal(got, []string{want}) {
							w.Errorf("step %d: the handler knows %v, want %s", step, got, want)
						}
						if h.State != tidings.StateWatching || h.Failures > 0 {
							w.Errorf("step %d: health is %+v", step, h)
						}
					}
					present = now
				}
			})
		})
	}
}

// TestP13_MapperSufficesWithoutDiscovery has a server that answers no questions of discovery.
func TestP13_MapperSufficesWithoutDiscovery(t *testing.T) {
	for _, scope := range []meta.RESTScope{meta.RESTScopeNamespace, meta.RESTScopeRoot} {
		for _, status := range []int{http.StatusNotFound, http.StatusForbidden} {
			t.Run(fmt.Sprint(scope.Name(), " ", status), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					mapper := meta.NewDefaultRESTMapper(nil)
					mapper.Add(widgets.GroupVersion().WithKind("Widget"), scope)
					o := tidings.FactoryOptions{
						Scheme: widgetScheme(), Mapper: mapper, Namespaces: []string{"default"},
					}
					w := newWorld(t, widgetKinds["typed"], o, apisim.Options{})
					defer w.end()
					w.gate.set(func(rw http.ResponseWriter, r *http.Request) bool {
						return strings.HasSuffix(r.URL.Path, "/v1") && refuse(status, "NotFound")(rw, r)
					})
					w.probe = w.ask(t, w.factory, tidings.Selection{})
					w.startFactory()
					time.Sleep(5 * time.Minute)
					d, want := definition{"widgets", "Widget", "v1", "Namespaced"}, "default/a"
					if scope.Name() != meta.RESTScopeNameNamespace {
						d.scope, want = "Cluster", "a"
					}
					for range 2 {
						w.defineAs(d)
						w.createOf(d, strings.TrimSuffix(strings.TrimSuffix(want, "a"), "/"), "a")
						time.Sleep(2 * time.Minute)
						synctest.Wait()
						w.cached(want)
						w.uninstall()
						time.Sleep(5 * time.Minute)
					}
				})
			})
		}
	}
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

// TestP13_NoNamespaceHidesTheFailuresOfAnother: one has failed for an hour, another one for a
// second.
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

// TestP13_TheNameIsThatOfTheNamespacesOfNow, in health, in errors and of a handle that was
// released.
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

// TestP13_AProxyDoesNotDeleteAType answers all requests for an optional type with the page of a
// proxy for minutes, at first or later. The server has the type: its objects stay, or are waited
// for.
func TestP13_AProxyDoesNotDeleteAType(t *testing.T) {
	page := apisim.Answer(func(rw http.ResponseWriter, _ *http.Request) { http.NotFound(rw, nil) })
	for _, listed := range []bool{false, true} {
		t.Run(fmt.Sprint("listed before: ", listed), func(t *testing.T) {
			ofWidgets(t, tidings.FactoryOptions{}, tidings.Selection{Optional: true}, func(w *world) {
				w.install()
				w.createWidget("a")
				var told follow.Follower
				w.probe.handle(told.Handle, tidings.HandlerOptions{})
				if listed {
					w.start()
				}
				proxy := w.server.Inject(apisim.Match{Resource: "widgets.example.com"}, page)
				w.server.CutConnections()
				if !listed {
					w.must(w.factory.Start(w.ctx))
				}
				w.after(3 * time.Minute)
				i := w.probe.informer()
				if h := i.Health(); h.State != tidings.StateBackoff || h.Synced != listed || h.Objects > 0 != listed {
					w.Errorf("health is %+v", h)
				}
				proxy.Lift()
				w.after(2 * time.Minute)
				expect(w, told.Texts(), "Added default/a initial 1")
			})
		})
	}
}

func TestP13_MissingOptionalTypeHoldsNobodyUpAndStartsByItself(t *testing.T) {
	o, s := tidings.FactoryOptions{FailFast: true}, tidings.Selection{Optional: true}
	ofWidgets(t, o, s, func(w *world) {
		var told follow.Follower
		registration := w.probe.handle(told.Handle, tidings.HandlerOptions{})
		began := time.Now()
		w.start()
		if took := time.Since(began); took > 0 {
			w.Errorf("a missing optional type held up the start for %v", took)
		}
		i := w.probe.informer()
		h := i.Health()
		if h.State != tidings.StateNoSuchResource || !h.Synced || h.LastError == nil ||
			!strings.Contains(h.LastError.Error(), "example.com") || !registration.HasSynced() {
			w.Errorf("health is %+v", h)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		w.server.ForgetRequests()
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		namespaces := max(1, len(i.Namespaces()))
		if n := len(w.server.Requests()); n < 26*namespaces || n > 80*namespaces {
			w.Errorf("%d requests in 20 minutes for %d namespaces of a type that is missing",
				n, namespaces)
		}
		w.install()
		w.createWidget("a")
		w.must(i.WaitFor(w.ctx, w.versions["a"]))
		if waited := time.Since(began) - 25*time.Minute; waited > 2*time.Minute {
			w.Errorf("it was found after %v", waited)
		}
		synctest.Wait()
		expect(w, told.Texts(), "Added default/a 1")
		if h := i.Health(); h.State != tidings.StateWatching {
			w.Errorf("health is %+v", h)
		}
	})
}

func TestP13_MissingTypeIsReportedAtOnceAndWaitedFor(t *testing.T) {
	ofWidgets(t, tidings.FactoryOptions{}, tidings.Selection{}, func(w *world) {
		w.startFactory()
		synctest.Wait()
		i := w.probe.informer()
		if h := i.Health(); h.State != tidings.StateNoSuchResource || h.Synced {
			w.Errorf("health is %+v", h)
		}
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		if err := w.factory.WaitForSync(ctx); err == nil ||
			!strings.Contains(err.Error(), "NoSuchResource") ||
			!strings.Contains(err.Error(), "CustomResourceDefinition") {
			w.Errorf("WaitForSync: %v", err)
		}
		w.install()
		w.createWidget("a")
		if err := w.factory.WaitForSync(w.ctx); err != nil {
			w.Error(err)
		}
		if got := w.probe.get("default/a"); got == "" {
			w.Errorf("the cache holds %v", w.probe.state())
		}
	})
}

func TestP13_OptionalTypeThatGoesIsToldAsDeletes(t *testing.T) {
	ofWidgets(t, tidings.FactoryOptions{}, tidings.Selection{Optional: true}, func(w *world) {
		w.install()
		w.createWidget("a")
		var told follow.Follower
		w.probe.handle(told.Handle, tidings.HandlerOptions{})
		w.start()
		expect(w, told.Texts(), "Added default/a initial 1")

		// With its definition the server deletes the objects, and says so.
		w.uninstall()
		synctest.Wait()
		expect(w, told.Texts(), "Deleted default/a 1")
		w.settle()
		w.install()
		w.createWidget("b")
		w.settle()
		expect(w, told.Texts(), "Added default/b 1")

		// While nobody could hear it.
		w.server.Restart(apisim.RestartOptions{Down: 5 * time.Second})
		w.uninstall()
		time.Sleep(30 * time.Second)
		synctest.Wait()
		expect(w, told.Texts())
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		expect(w, told.Texts(), "Deleted default/b tombstone 1")
		if h := w.health(); h.State != tidings.StateNoSuchResource || h.Objects != 0 || !h.Synced {
			w.Errorf("health is %+v", h)
		}
		w.install()
		w.createWidget("b")
		w.settle()
		expect(w, told.Texts(), "Added default/b 1")
	})
}

// TestP13_ListsOfSlotsAreSeen refuses the list of slots that come. Add returns the error at once,
// and health has it. The list is made again until it succeeds.
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

// TestP13_WaitNamesInformersAndReasons refuses every request, with and without FailFast.
func TestP13_WaitNamesInformersAndReasons(t *testing.T) {
	tests := map[string]struct {
		code   int
		reason string
		state  tidings.State
		says   string
		fast   bool // FailFast ends the wait
	}{
		"forbidden":   {403, "Forbidden", tidings.StateForbidden, "grant list and watch on", true},
		"missing":     {404, "NotFound", tidings.StateNoSuchResource, "CustomResourceDefinition", true},
		"broken":      {500, "InternalError", tidings.StateBackoff, "you shall not pass", false},
		"overwhelmed": {429, "TooManyRequests", tidings.StateBackoff, "you shall not pass", false},
	}
	for name, test := range tests {
		for _, failFast := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", FailFast ", failFast), func(t *testing.T) {
				o, s := tidings.FactoryOptions{FailFast: failFast}, tidings.Selection{Namespace: "default"}
				propertyWith(t, o, s, func(w *world) {
					w.create("a", "1")
					w.gate.set(refuse(test.code, test.reason))
					w.must(w.factory.Start(w.ctx))
					ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
					defer cancel()
					began := time.Now()
					err := w.factory.WaitForSync(ctx)
					took, fast := time.Since(began), failFast && test.fast
					if fast != (took < time.Second) ||
						fast == errors.Is(err, context.DeadlineExceeded) {
						w.Errorf("the wait took %v: %v", took, err)
					}
					notSynced, ok := errors.AsType[*tidings.NotSyncedError](err)
					if !ok {
						w.Fatalf("got %v", err)
					}
					name := w.probe.informer().Name()
					h := notSynced.Informers[0]
					if h.Name != name || h.State != test.state || h.LastError == nil {
						w.Errorf("the error has %+v", h)
					}
					for _, part := range []string{name, string(test.state), test.says, "configmaps"} {
						if !strings.Contains(err.Error(), part) {
							w.Errorf("the error does not say %q: %v", part, err)
						}
					}
					// A wait for one informer does not fail fast.
					ctx, cancel = context.WithTimeout(w.ctx, time.Second)
					defer cancel()
					expectError(w, "WaitForSync", w.probe.informer().WaitForSync(ctx),
						context.DeadlineExceeded)
					w.gate.set(nil)
					w.settle()
					w.agree()
				})
			})
		}
	}
}
