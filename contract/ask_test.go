package contract_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	shopv1 "github.com/tidings-go/tidings/examples/clientgo/customtype/apis/shop/v1"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/source"
)

// notInAnyScheme is a type that is not in the scheme of client-go.
type notInAnyScheme struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

// TestErrorsSayWhatAndWhatToDo reads errors that are made of values.
func TestErrorsSayWhatAndWhatToDo(t *testing.T) {
	for _, test := range []struct {
		err  error
		want string
	}{
		{
			&tidings.NotSyncedError{Informers: []tidings.Health{
				{Name: "pods", Watch: health.Watch{State: tidings.StatePending}},
			}, Cause: context.Canceled},
			"pods is Pending: call Start after asking for it",
		},
		{
			tidings.Mutation{
				Key: "default/a", Fields: []string{"data"}, Handlers: []string{"one", "two"},
			},
			"handler one or two changed the cached object default/a at data",
		},
		{
			tidings.Mutation{Key: "default/a", Fields: []string{"data"}},
			"no handler was running",
		},
	} {
		if got := test.err.Error(); !strings.Contains(got, test.want) {
			t.Errorf("got %q, want %q in it", got, test.want)
		}
	}
}

func (n *notInAnyScheme) DeepCopyObject() runtime.Object { c := *n; return &c }

// offline is a factory for a server that is not there.
func offline(t *testing.T, o tidings.FactoryOptions) *tidings.Factory {
	t.Helper()
	f, err := tidings.NewFactory(&rest.Config{Host: "http://127.0.0.1:1"}, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestNamesSayWhatIsSelected names an informer of a part of a collection.
func TestNamesSayWhatIsSelected(t *testing.T) {
	i, err := tidings.For[*corev1.Pod](offline(t, tidings.FactoryOptions{}),
		tidings.Selection{Namespace: "shop", Labels: "app=web", Fields: "spec.nodeName=one"})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"pods", "in shop", "labels app=web", "fields spec.nodeName=one"} {
		if !strings.Contains(i.Name(), part) {
			t.Errorf("the name %q does not say %q", i.Name(), part)
		}
	}
	f := offline(t, tidings.FactoryOptions{})
	for _, resource := range []string{"pods", "services"} {
		i, err := tidings.Metadata(f, corev1.SchemeGroupVersion.WithResource(resource), tidings.Selection{})
		if err != nil || !strings.Contains(i.Name(), resource) {
			t.Errorf("the informer of %s is %v, %v", resource, i.Name(), err)
		}
	}
}

// TestDefaultNamespacesAreNotOfClusterScopedTypes asks for nodes.
func TestDefaultNamespacesAreNotOfClusterScopedTypes(t *testing.T) {
	f := offline(t, tidings.FactoryOptions{Namespaces: []string{"shop"}})
	i, err := tidings.For[*corev1.Node](f, tidings.Selection{})
	if err != nil || len(i.Namespaces()) != 0 {
		t.Errorf("namespaces %v, %v", i.Namespaces(), err)
	}
}

func errOf[V any](_ V, err error) error { return err }

// bad checks the error of bad input.
func bad(t *testing.T, name string, err, is error, says ...string) {
	t.Helper()
	t.Run(name, func(t *testing.T) { expectError(t, name, err, is, says...) })
}

func TestBadFactoriesAndTypesAreRefused(t *testing.T) {
	f := offline(t, tidings.FactoryOptions{})
	factory := func(o tidings.FactoryOptions, c *rest.Config) error {
		return errOf(tidings.NewFactory(c, o))
	}
	var sharing tidings.FactoryOptions
	sharing.Transport.Sharing = 7
	bad(t, "nil config", factory(tidings.FactoryOptions{}, nil), nil, "rest.Config is nil",
		"clientcmd")
	bad(t, "bad default namespace",
		factory(tidings.FactoryOptions{Namespaces: []string{"A b"}}, &rest.Config{}), nil,
		"FactoryOptions.Namespaces", `"A b"`)
	bad(t, "bad sharing", factory(sharing, &rest.Config{}), nil,
		"FactoryOptions.Transport.Sharing", "ShareStrings")
	bad(t, "broken config", factory(tidings.FactoryOptions{}, &rest.Config{Host: "http://[::1"}), nil,
		"rest.Config cannot be used")

	var nilFactory *tidings.Factory
	var all tidings.Selection
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	bad(t, "nil factory", errOf(tidings.For[*corev1.Pod](nilFactory, all)),
		tidings.ErrNilFactory, "NewFactory")
	bad(t, "nil factory, dynamic", errOf(tidings.Dynamic(nilFactory, pods, all)),
		tidings.ErrNilFactory)
	bad(t, "type not in the scheme", errOf(tidings.For[*notInAnyScheme](f, all)),
		tidings.ErrNotInScheme, "notInAnyScheme", "AddToScheme")
	bad(t, "unstructured through For", errOf(tidings.For[*unstructured.Unstructured](f, all)), nil,
		"use Dynamic")
	bad(t, "metadata through For", errOf(tidings.For[*metav1.PartialObjectMetadata](f, all)), nil,
		"use Metadata")
	bad(t, "interface through For", errOf(tidings.For[tidings.Object](f, all)), nil,
		"pointer to an API type")
	noVersion := schema.GroupVersionResource{Resource: "pods"}
	bad(t, "resource without version", errOf(tidings.Dynamic(f, noVersion, all)), nil,
		"needs a version")
	inDefault := tidings.Selection{Namespace: "default"}
	inX := tidings.Selection{Namespaces: []string{"x"}}
	bad(t, "namespace of a node", errOf(tidings.For[*corev1.Node](f, inDefault)),
		tidings.ErrClusterScoped, `"default"`, "*v1.Node")
	bad(t, "namespaces of nodes", errOf(tidings.Metadata(f, nodes, inX)),
		tidings.ErrClusterScoped, "nodes.v1")
}

func TestBadSelectionsAreRefused(t *testing.T) {
	f := offline(t, tidings.FactoryOptions{})
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	selection := func(s tidings.Selection, says ...string) {
		bad(t, says[len(says)-1], errOf(tidings.For[*corev1.Pod](f, s)),
			tidings.ErrInvalidSelection, says...)
	}
	drop := func(path string, says ...string) {
		selection(tidings.Selection{Drop: []string{path}}, append(says, `"`+path+`"`)...)
	}
	transform := tidings.NewTransform(func(n *corev1.Node) (*corev1.Node, error) { return n, nil })
	selection(tidings.Selection{Namespace: "No/Such"}, "No/Such")
	selection(tidings.Selection{Namespace: "a", AllNamespaces: true}, "AllNamespaces")
	selection(tidings.Selection{Labels: "a in b"}, `"a in b"`)
	selection(tidings.Selection{Fields: "what"}, `"what"`)
	selection(tidings.Selection{Transform: transform}, "*v1.Node", "*v1.Pod")
	selection(tidings.Selection{Labels: "a=b", Drop: []string{"metadata.labels"}},
		`"metadata.labels"`, "Transform")
	drop("spec.container.env", "v1.PodSpec", `no field "container"`, "containers")
	drop("metadata.labels.app", "a map", "leave that out whole")
	drop("spec.nodeName.x", "one value")
	drop("metadata.uid", "told apart")
	drop("spec..env")
	managed := tidings.Selection{Drop: []string{"spec.any", "metadata.managed"}}
	spec := tidings.Selection{Drop: []string{"spec"}}
	bad(t, "drop, dynamic", errOf(tidings.Dynamic(f, pods, managed)),
		tidings.ErrInvalidSelection, `"metadata.managed"`, "v1.ObjectMeta", "managedFields")
	bad(t, "drop, metadata", errOf(tidings.Metadata(f, pods, spec)),
		tidings.ErrInvalidSelection, `"spec"`, "v1.PartialObjectMetadata")
}

func TestBadHandlersIndexesAndSourcesAreRefused(t *testing.T) {
	f := offline(t, tidings.FactoryOptions{})
	informer, err := tidings.For[*corev1.Pod](f, tidings.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []tidings.Handler[*corev1.Pod]{
		nil, tidings.HandlerFunc[*corev1.Pod](nil), (*tidings.Funcs[*corev1.Pod])(nil),
	} {
		bad(t, "nil handler", errOf(informer.AddHandler(h, tidings.HandlerOptions{})), nil,
			"handler is nil", "pods.v1")
	}
	for _, h := range []tidings.Handler[*corev1.Pod]{
		tidings.Funcs[*corev1.Pod]{}, &tidings.Funcs[*corev1.Pod]{},
	} {
		bad(t, "empty Funcs", errOf(informer.AddHandler(h, tidings.HandlerOptions{})), nil,
			"set OnAdd", "pods.v1")
	}
	var none context.Context
	bad(t, "nil context", f.Start(none), nil, "Start", "the context is nil")
	bad(t, "nil context", informer.Run(none), nil, "pods.v1", "the context is nil")
	over, end := context.WithCancelCause(t.Context())
	end(io.EOF)
	bad(t, "context that has ended", f.Start(over), io.EOF, "Start", "the context has ended")
	bad(t, "no labels", informer.IndexLabels(), nil, "pods.v1", "name the labels")
	for option, o := range map[string]tidings.HandlerOptions{
		"Resync": {Resync: -1}, "HandlerOptions.Resync": {Resync: 1}, "Limit": {Limit: -1}, "Policy": {Policy: 9},
	} {
		bad(t, option, errOf(informer.AddHandler(ignore[*corev1.Pod](), o)), nil, option)
	}
	bad(t, "nil index", informer.AddIndex(nil), nil, "NewIndex", "pods.v1")
	bad(t, "nil index function", informer.AddIndex(tidings.NewIndex[*corev1.Pod]("nil", nil)), nil,
		`"nil"`)
	var o tidings.InformerOptions[*corev1.ConfigMap]
	bad(t, "nil source", errOf(tidings.NewInformer(nil, o)), nil, "source is nil")
	o.Transport.Sharing = 9
	bad(t, "unknown sharing", errOf(tidings.NewInformer(&fakeSource{}, o)), nil,
		"InformerOptions.Transport.Sharing is 9")
	o = tidings.InformerOptions[*corev1.ConfigMap]{Slots: tidings.NewSlots("name", tidings.AllSlots())}
	bad(t, "unknown slots", errOf(tidings.NewInformer(&fakeSource{}, o)), tidings.ErrInvalidSelection,
		"ConfigMap", "ByUID")
	bad(t, "wait before the start", f.WaitForSync(t.Context()), tidings.ErrNotStarted,
		"pods.v1", "call Start")
}

func TestNotFoundIsKubernetesNotFound(t *testing.T) {
	informer, err := tidings.For[*corev1.Pod](offline(t, tidings.FactoryOptions{}),
		tidings.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := informer.Lister().Namespace("default").Get("web"); !apierrors.IsNotFound(err) ||
			err.Error() != `pods "web" not found` {
			t.Errorf("got %v", err)
		}
		if _, err := informer.Lister().Get("default/web"); !apierrors.IsNotFound(err) {
			t.Errorf("got %v", err)
		}
		informer.Release()
	}
}

// TestNotFoundNamesTheKind of a custom type, whose resource is asked of the server only.
func TestNotFoundNamesTheKind(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := shopv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	widgets, err := tidings.For[*shopv1.Widget](offline(t, tidings.FactoryOptions{Scheme: scheme}),
		tidings.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `Widget.shop.example.com "default/knob" not found`
	if _, err := widgets.Lister().Get("default/knob"); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestStoppedAndReleasedInformersRefuseHandlers(t *testing.T) {
	property(t, func(w *world) {
		second := w.ask(w.T, w.factory, tidings.Selection{Namespace: "default"})
		w.start()
		second.informer().Release()
		second.informer().Release()
		if err := second.add(); !errors.Is(err, tidings.ErrReleased) {
			w.Errorf("a released handle took a handler: %v", err)
		}
		if state := w.health().State; state != tidings.StateWatching {
			w.Errorf("the release of one of two handles led to state %s", state)
		}
		w.stop()
		synctest.Wait()
		if err := w.probe.add(); !errors.Is(err, tidings.ErrStopped) ||
			!strings.Contains(err.Error(), w.probe.informer().Name()) {
			w.Errorf("a stopped informer took a handler: %v", err)
		}
	})
}

func TestEqualSelectionsShareAndOthersDoNot(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.create("b", "2")
		same := w.ask(w.T, w.factory, tidings.Selection{Namespaces: []string{"default", "default"}})
		other := w.ask(w.T, w.factory, tidings.Selection{Namespace: "default", Labels: "n=2"})
		w.start()
		if watches := countWatches(w.server); watches != 2 {
			w.Errorf("three handles to two selections made %d watches", watches)
		}
		if len(same.state()) != 2 || len(other.state()) != 1 {
			w.Errorf("they hold %v and %v", same.state(), other.state())
		}
		if informers := len(w.factory.Health()); informers != 2 {
			w.Errorf("the factory has %d informers", informers)
		}
	})
}

func countWatches(s *apisim.Server) int {
	n := 0
	for _, r := range s.Requests() {
		if r.Verb == "watch" {
			n++
		}
	}
	return n
}

func TestSeveralNamespacesAreOneCache(t *testing.T) {
	o := tidings.FactoryOptions{Namespaces: []string{"kube-system", "default"}}
	propertyWith(t, o, tidings.Selection{}, func(w *world) {
		w.create("a", "1")
		w.createIn("kube-public", "elsewhere", "1")
		w.createIn("kube-system", "second", "1")
		var told follow.Follower
		w.probe.handle(told.Handle, tidings.HandlerOptions{})
		w.start()
		state := w.probe.state()
		if len(state) != 2 || state["default/a"] == "" || state["kube-system/second"] == "" {
			w.Errorf("the cache holds %v", state)
		}
		// A relist of one namespace does not touch the other.
		told.Take()
		w.server.Restart(apisim.RestartOptions{Down: time.Second})
		w.remove("a")
		w.server.Compact()
		w.settle()
		expect(w, told.Texts(), "Deleted default/a tombstone 1")
		if h := w.health(); len(h.Namespaces) != 2 || h.State != tidings.StateWatching {
			w.Errorf("health is %+v", h)
		}
	})
}

func TestStartIsCalledAgainForLaterInformers(t *testing.T) {
	property(t, func(w *world) {
		w.start()
		later := w.ask(w.T, w.factory, tidings.Selection{Labels: "n=1"})
		if err := later.informer().WaitForSync(w.ctx); !errors.Is(err, tidings.ErrNotStarted) {
			w.Errorf("before the second Start: %v", err)
		}
		w.start()
		if !later.informer().HasSynced() {
			w.Error("after the second Start it is not synced")
		}
	})
}

func TestTransformIsWhatTheCacheHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		small := tidings.NewTransform(func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			if c.Name == "odd" {
				return nil, errors.New("it is odd")
			}
			c.Data = nil
			return c, nil
		})
		informer, err := tidings.For[*corev1.ConfigMap](w.factory,
			tidings.Selection{Namespace: "default", Transform: small})
		if err != nil {
			t.Fatal(err)
		}
		w.create("a", "1")
		w.create("odd", "1")
		w.start()
		for key, obj := range informer.Lister().All() {
			if key != "default/a" || obj.Data != nil {
				t.Errorf("the cache holds %s: %v", key, obj)
			}
		}
		if h := informer.Health(); h.TransformErrors != 1 ||
			!strings.Contains(h.LastTransformError.Error(), "default/odd: it is odd") {
			t.Errorf("health is %+v", h)
		}
	})
}

func TestCustomTypesAreResolvedByTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		err := w.server.Register(apisim.Resource{Group: "example.com", Version: "v1", Name: "planets", Kind: "Planet"})
		if err != nil {
			t.Fatal(err)
		}
		planets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "planets"}
		all, err := tidings.Dynamic(w.factory, planets, tidings.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		wrong, err := tidings.Dynamic(w.factory, planets, tidings.Selection{Namespace: "default"})
		if err != nil {
			t.Fatal(err) // nobody here knows yet that planets have no namespace
		}
		mars := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Planet",
			"metadata": map[string]any{"name": "mars"}, "moons": int64(2),
		}}
		if _, err := w.server.Create(t.Context(), mars); err != nil {
			t.Fatal(err)
		}
		w.startFactory()
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		defer cancel()
		err = w.factory.WaitForSync(ctx)
		if !errors.Is(err, source.ErrWrongScope) ||
			!strings.Contains(err.Error(), "without a namespace") {
			t.Errorf("got %v", err)
		}
		if obj, err := all.Lister().Get("mars"); err != nil || obj.Object["moons"] != int64(2) {
			t.Errorf("mars is %v, %v", obj, err)
		}
		wrong.Release()
		if err := w.factory.WaitForSync(w.ctx); err != nil {
			t.Errorf("after the release of the wrong one: %v", err)
		}
	})
}
