package contract_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
)

// TestP01_InstanceThatHasJustStarted has watches resumed at a server whose history begins later.
func TestP01_InstanceThatHasJustStarted(t *testing.T) {
	withInstances(t, 2, tidings.FactoryOptions{}, func(w *world, all []*apisim.Instance) {
		w.create("a", "1")
		only(all, 0)
		l := w.follow()
		w.start()
		for n := range 5 {
			w.update("a", fmt.Sprint(n))
			w.update("a", fmt.Sprint("second-", n))
			only(all, n%2)
			w.after(time.Minute)
			l.sum()
		}
		if h := w.health(); h.Lists > 6 {
			w.Errorf("%d lists", h.Lists)
		}
	})
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

func TestP01_DefaultNamespacesLeaveClusterScopedTypesAlone(t *testing.T) {
	byDefault(t, tidings.FactoryOptions{FailFast: true}, func(w *world) {
		w.define("widgets", "Cluster")
		w.createWidgetIn("", "a")
		var told follow.Follower
		w.probe.handle(told.Handle, tidings.HandlerOptions{})
		w.start()
		w.createWidgetIn("", "b")
		w.must(w.probe.informer().WaitFor(w.ctx, w.versions["b"]))
		synctest.Wait()
		expect(w, told.Texts(), "Added a initial 1", "Added b 1")
		w.cached("a", "b")
		if watches := len(w.server.Watches()); watches != 1 {
			w.Errorf("%d watches are running, want 1", watches)
		}
		i := w.probe.informer()
		if h := i.Health(); h.State != tidings.StateWatching || len(h.Namespaces) != 0 ||
			h.LastError != nil || h.Version == "" {
			w.Errorf("health is %+v", h)
		}
		if names := i.Namespaces(); len(names) != 0 {
			w.Errorf("it holds namespaces %v", names)
		}
		if err := i.AddNamespace("kube-public"); !errors.Is(err, tidings.ErrClusterScoped) {
			w.Errorf("AddNamespace: %v", err)
		}
		if err := i.RemoveNamespace("default"); !errors.Is(err, tidings.ErrClusterScoped) {
			w.Errorf("RemoveNamespace: %v", err)
		}
		w.ask(w.T, w.factory, tidings.Selection{})
		if n := len(w.factory.Health()); n != 1 {
			w.Errorf("asking for the same again made %d informers, want 1", n)
		}
	})
}

func TestP01_ScopeIsFoundWhenDiscoveryHeals(t *testing.T) {
	byDefault(t, tidings.FactoryOptions{}, func(w *world) {
		w.define("widgets", "Cluster")
		w.createWidgetIn("", "a")
		w.gate.set(func(rw http.ResponseWriter, r *http.Request) bool {
			return strings.HasSuffix(r.URL.Path, "/v1") && refuse(503, "ServiceUnavailable")(rw, r)
		})
		w.startFactory()
		w.settle()
		if h := w.health(); h.State != tidings.StateBackoff || h.Synced {
			w.Errorf("while discovery fails, health is %+v", h)
		}
		// Nobody knows yet that there are no namespaces.
		w.must(w.probe.informer().AddNamespace("kube-public"))
		w.gate.set(nil)
		w.settle()
		w.cached("a")
		if !w.probe.informer().HasSynced() {
			w.Error("it is not synced")
		}
	})
}

// TestP01_DefinitionComesBackWithAnotherScope goes through both changes of scope, with and
// without the informer receiving the state between them.
func TestP01_DefinitionComesBackWithAnotherScope(t *testing.T) {
	for _, down := range []time.Duration{0, time.Minute} {
		t.Run(fmt.Sprint("away for ", down), func(t *testing.T) {
			byDefault(t, tidings.FactoryOptions{}, func(w *world) {
				l := w.follow()
				w.define("widgets", "Cluster")
				w.createWidgetIn("", "a")
				w.start()
				for _, namespace := range []string{"default", "", "default", "default", "", ""} {
					want := w.redefine(down, namespace)
					w.cached(want)
					if got := slices.Collect(maps.Keys(l.Held())); !slices.Equal(got, []string{want}) {
						w.Errorf("the handler knows %v, want %s", got, want)
					}
				}
				if err := w.probe.informer().WaitForSync(w.ctx); err != nil {
					w.Error(err)
				}
			})
		})
	}
}
