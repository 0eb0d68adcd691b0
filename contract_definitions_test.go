package tidings_test

import (
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

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// mappers are the kinds of FactoryOptions.Mapper, by what they keep of an answer.
var mappers = map[string]func() testMapper{
	"none":     func() testMapper { return nil },
	"deferred": func() testMapper { return &deferredMapper{} },
	"frozen":   func() testMapper { return &frozenMapper{} },
	"forgets":  func() testMapper { return &forgetfulMapper{} },
	"fails":    func() testMapper { return &failingMapper{} },
}

// testMapper is a mapper that is connected to the server after the factory was made with it.
type testMapper interface {
	meta.RESTMapper
	connect(t *testing.T, config *rest.Config)
}

// deferredMapper keeps what it has discovered until it is reset.
type deferredMapper struct {
	*restmapper.DeferredDiscoveryRESTMapper
	resets atomic.Int64
}

func (m *deferredMapper) connect(t *testing.T, config *rest.Config) {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	m.DeferredDiscoveryRESTMapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
}

func (m *deferredMapper) Reset() {
	m.resets.Add(1)
	m.DeferredDiscoveryRESTMapper.Reset()
}

// frozenMapper answers for good what it has answered first, and cannot be reset.
type frozenMapper struct {
	meta.RESTMapper
	discovery *discovery.DiscoveryClient

	mu      sync.Mutex // guards the rest
	mapping *meta.RESTMapping
	err     error
}

func (m *frozenMapper) connect(t *testing.T, config *rest.Config) {
	var err error
	if m.discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		t.Fatal(err)
	}
}

// discover asks the server.
func (m *frozenMapper) discover(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	groups, err := restmapper.GetAPIGroupResources(m.discovery)
	if err != nil {
		return nil, err
	}
	return restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(gk, versions...)
}

func (m *frozenMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mapping == nil && m.err == nil {
		m.mapping, m.err = m.discover(gk, versions...)
	}
	return m.mapping, m.err
}

// forgetfulMapper keeps nothing, and cannot be reset.
type forgetfulMapper struct{ frozenMapper }

func (m *forgetfulMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.discover(gk, versions...)
}

// failingMapper has no answer.
type failingMapper struct{ frozenMapper }

func (*failingMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("the mapper has a headache")
}

// withMappers runs a test for every kind of informer of widgets and every kind of mapper, of all
// namespaces and of those of the factory.
func withMappers(t *testing.T, s tidings.Selection, test func(w *world, kind string)) {
	for _, kind := range slices.Sorted(maps.Keys(widgetKinds)) {
		for _, name := range slices.Sorted(maps.Keys(mappers)) {
			for _, namespaces := range [][]string{nil, {"default", "kube-system"}} {
				t.Run(fmt.Sprint(kind, " with ", name, " in ", namespaces), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						o := tidings.FactoryOptions{Scheme: widgetScheme(), Namespaces: namespaces}
						mapper := mappers[name]()
						if mapper != nil {
							o.Mapper = mapper
						}
						w := newWorld(t, widgetKinds[kind], o, apisim.Options{})
						defer w.end()
						if mapper != nil {
							config := rest.CopyConfig(w.server.Config())
							config.QPS = -1
							mapper.connect(t, config)
						}
						w.probe = w.ask(t, w.factory, s)
						test(w, kind)
						if m, ok := mapper.(*deferredMapper); ok && m.resets.Load() > 12 {
							t.Errorf("the mapper was reset %d times", m.resets.Load())
						}
					})
				})
			}
		}
	}
}

// isServed reports whether an informer of a kind finds its objects in a definition.
func (d definition) isServed(kind string) bool {
	return d.version == "v1" && (kind == "typed" && d.kind == "Widget" || kind != "typed" && d.plural == "widgets")
}

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

// replace installs definitions with an object each, and returns the key of the object that a kind
// of informer is to hold.
func (w *world) replace(now []definition, step int, kind string) (want string) {
	w.Helper()
	for _, d := range now {
		w.defineAs(d)
		namespace, name := "", fmt.Sprint(d.plural, step)
		if d.scope == "Namespaced" {
			namespace = "default"
		}
		w.createOf(d, namespace, name)
		if d.isServed(kind) {
			want = strings.TrimPrefix(namespace+"/"+name, "/")
		}
	}
	return want
}

// TestP18_MissingDefinitionIsAskedForPolitely counts the requests for a definition that does not
// exist, and for one that is gone.
func TestP18_MissingDefinitionIsAskedForPolitely(t *testing.T) {
	withMappers(t, tidings.Selection{}, func(w *world, _ string) {
		w.startFactory()
		for _, state := range []string{"absent", "gone"} {
			if state == "gone" {
				w.install()
				time.Sleep(2 * time.Minute)
				w.uninstall()
			}
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			w.server.ForgetRequests()
			time.Sleep(20 * time.Minute)
			synctest.Wait()
			requests := 0
			for _, r := range w.server.Requests() {
				if r.Resource.Group == "example.com" {
					requests++
				}
			}
			namespaces := max(1, len(w.probe.informer().Namespaces()))
			if requests > 80*namespaces {
				w.Errorf("%d requests in 20 minutes for a definition that is %s", requests, state)
			}
		}
	})
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

// TestP09_MapperThatDoesNotAnswer ends the informer while the mapper is asked.
func TestP09_MapperThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mapper := &stuckMapper{answer: make(chan struct{})}
		o := tidings.FactoryOptions{Scheme: widgetScheme(), Mapper: mapper}
		w := newWorld(t, widgetKinds["typed"], o, apisim.Options{})
		defer close(mapper.answer)
		defer w.end()
		w.probe = w.ask(t, w.factory, tidings.Selection{})
		w.startFactory()
		time.Sleep(time.Minute)
	})
}

type stuckMapper struct {
	meta.RESTMapper
	answer chan struct{}
}

func (m *stuckMapper) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	<-m.answer
	return nil, errors.New("too late")
}
