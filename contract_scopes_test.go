package tidings_test

import (
	"context"
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
	"github.com/tidings-go/tidings/source"
)

// byDefault runs a test for every kind of informer of widgets that leaves the namespaces
// to its factory, which has some.
func byDefault(t *testing.T, o tidings.FactoryOptions, test func(w *world)) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(widgetKinds)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o.Scheme, o.Namespaces = widgetScheme(), []string{"kube-system", "default"}
				w := newWorld(t, widgetKinds[name], o, apisim.Options{})
				defer w.end()
				w.probe = w.ask(t, w.factory, tidings.Selection{})
				test(w)
			})
		})
	}
}

// cached checks the keys of the cache.
func (w *world) cached(want ...string) {
	w.Helper()
	if got := slices.Sorted(maps.Keys(w.probe.state())); !slices.Equal(got, want) {
		w.Errorf("the cache holds %v, want %v", got, want)
	}
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

func TestDefaultNamespacesHoldWhereTheServerSaysSo(t *testing.T) {
	byDefault(t, tidings.FactoryOptions{}, func(w *world) {
		w.install()
		w.haveNamespaces("other")
		for _, namespace := range []string{"default", "kube-system", "other"} {
			w.createWidgetIn(namespace, "a")
		}
		w.start()
		w.cached("default/a", "kube-system/a")
		i := w.probe.informer()
		w.must(i.AddNamespace("other"))
		w.settle()
		w.cached("default/a", "kube-system/a", "other/a")
	})
}

// TestNamespacesOfASelectionAreNoneByDefault asks for the namespaces that the factory has
// by itself: for a type without one, that is a mistake that an error names.
func TestNamespacesOfASelectionAreNoneByDefault(t *testing.T) {
	byDefault(t, tidings.FactoryOptions{FailFast: true}, func(w *world) {
		w.define("widgets", "Cluster")
		w.createWidgetIn("", "a")
		named := w.ask(w.T, w.factory,
			tidings.Selection{Namespaces: []string{"default", "kube-system"}}).informer()
		w.startFactory()
		w.settle()
		w.cached("a")
		err := w.factory.WaitForSync(w.ctx)
		if !errors.Is(err, source.ErrWrongScope) ||
			!strings.Contains(err.Error(), named.Name()) ||
			strings.Contains(err.Error(), w.probe.informer().Name()) {
			w.Errorf("WaitForSync: %v, want an error of %s alone", err, named.Name())
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

// redefine makes the definition of widgets anew, creates one of them in a namespace, "" for
// a type that has none, and returns its key.
func (w *world) redefine(down time.Duration, namespace string) (key string) {
	w.Helper()
	scope, key := "Cluster", "b"
	if namespace != "" {
		scope, key = "Namespaced", namespace+"/b"
	}
	if down > 0 {
		w.server.SetAvailable(false)
	}
	w.uninstall()
	w.define("widgets", scope)
	w.createWidgetIn(namespace, "b")
	time.Sleep(down)
	w.server.SetAvailable(true)
	w.settle()
	return key
}

// TestP09_StopWhileTheScopeIsFound ends the context with the first question to the server.
func TestP09_StopWhileTheScopeIsFound(t *testing.T) {
	byDefault(t, tidings.FactoryOptions{}, func(w *world) {
		w.define("widgets", "Cluster")
		ctx, cancel := context.WithCancel(w.ctx)
		w.gate.set(func(http.ResponseWriter, *http.Request) bool {
			cancel()
			return false
		})
		w.must(w.factory.Start(ctx))
		synctest.Wait()
		if h := w.health(); h.State != tidings.StateStopped {
			w.Errorf("health is %+v", h)
		}
	})
}
