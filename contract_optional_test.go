package tidings_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
)

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

// TestP13_AProxyDoesNotDeleteAType answers all requests for an optional type with the page of a proxy for
// minutes, at first or later. The server has the type: its objects stay, or are waited for.
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
