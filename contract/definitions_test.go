package contract_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/source"
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

var (
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

// widget is a type whose resource only the server knows.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	return &widget{w.TypeMeta, *w.ObjectMeta.DeepCopy()}
}

// widgetScheme knows widgets.
func widgetScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(widgets.GroupVersion().WithKind("Widget"), &widget{})
	return scheme
}

var widgetKinds = map[string]askFor{
	"typed": func(t *testing.T, f *tidings.Factory, s tidings.Selection) probe {
		i, err := tidings.For[*widget](f, s)
		return newProbe(t, i, err)
	},
	"dynamic": func(t *testing.T, f *tidings.Factory, s tidings.Selection) probe {
		i, err := tidings.Dynamic(f, widgets, s)
		return newProbe(t, i, err)
	},
	"metadata": func(t *testing.T, f *tidings.Factory, s tidings.Selection) probe {
		i, err := tidings.Metadata(f, widgets, s)
		return newProbe(t, i, err)
	},
}

// ofWidgets runs a test for every kind of informer of a type that is not installed,
// of one namespace and of all.
func ofWidgets(t *testing.T, o tidings.FactoryOptions, s tidings.Selection, test func(w *world)) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(widgetKinds)) {
		for _, namespaces := range [][]string{nil, {"default", "kube-system"}} {
			t.Run(fmt.Sprint(name, " in ", namespaces), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o.Scheme = widgetScheme()
					w := newWorld(t, widgetKinds[name], o, apisim.Options{})
					defer w.end()
					s.Namespaces = namespaces
					w.probe = w.ask(t, w.factory, s)
					test(w)
				})
			})
		}
	}
}

// install creates the definition of widgets.
func (w *world) install() { w.installAs("widgets") }

// installAs calls their resource something.
func (w *world) installAs(plural string) { w.define(plural, "Namespaced") }

// define creates the definition of widgets with the name of a resource and a scope.
func (w *world) define(plural, scope string) {
	w.Helper()
	w.defineAs(definition{plural, "Widget", "v1", scope})
}

// definition is a definition of a custom resource of example.com.
type definition struct{ plural, kind, version, scope string }

func (w *world) defineAs(d definition) {
	w.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": definitions.GroupVersion().String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": d.plural + ".example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": d.scope,
			"names":    map[string]any{"plural": d.plural, "kind": d.kind},
			"versions": []any{map[string]any{"name": d.version, "served": true, "storage": true}},
		},
	}}
	if _, err := w.server.Create(context.Background(), obj); err != nil {
		w.Fatal(err)
	}
}

func (w *world) uninstall() {
	w.Helper()
	w.uninstallAs("widgets")
}

func (w *world) uninstallAs(plural string) {
	w.Helper()
	_, err := w.server.Delete(context.Background(), definitions, "", plural+".example.com")
	w.must(err)
}

func (w *world) createWidget(name string) { w.createWidgetIn("default", name) }

// createWidgetIn creates a widget in a namespace, "" being none.
func (w *world) createWidgetIn(namespace, name string) {
	w.Helper()
	w.createOf(definition{kind: "Widget", version: "v1"}, namespace, name)
}

// createOf creates an object of a definition.
func (w *world) createOf(d definition, namespace, name string) {
	w.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/" + d.version, "kind": d.kind,
		"metadata": map[string]any{"name": name, "labels": map[string]any{"n": "1"}},
	}}
	obj.SetNamespace(namespace)
	made, err := w.server.Create(context.Background(), obj)
	if err != nil {
		w.Fatal(err)
	}
	w.note(made.(metav1.Object))
}

func TestOptionalIsPartOfWhatIsShared(t *testing.T) {
	ofWidgets(t, tidings.FactoryOptions{}, tidings.Selection{Optional: true}, func(w *world) {
		needed := w.ask(w.T, w.factory, tidings.Selection{})
		names := fmt.Sprint(w.probe.informer().Name(), needed.informer().Name())
		if len(w.factory.Health()) != 2 || strings.Count(names, "optional") != 1 {
			w.Errorf("the factory has %s", names)
		}
	})
}

// TestTypeThatComesBackUnderAnotherNameIsFound removes a type and serves it under another name: the
// server is asked for the name again.
func TestTypeThatComesBackUnderAnotherNameIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := tidings.FactoryOptions{Scheme: widgetScheme()}
		w := newWorld(t, widgetKinds["typed"], o, apisim.Options{})
		defer w.end()
		w.install()
		w.probe = w.ask(t, w.factory, tidings.Selection{})
		w.start()
		w.uninstall()
		w.installAs("widgetry")
		w.createWidget("a")
		if err := w.probe.informer().WaitFor(w.ctx, w.versions["a"]); err != nil {
			t.Fatal(err)
		}
		if got := w.probe.get("default/a"); got == "" {
			t.Errorf("the cache holds %v", w.probe.state())
		}
	})
}

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
