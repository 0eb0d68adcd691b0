package tidings_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/follow"
	"github.com/tidings-go/tidings/source"
)

// notInAnyScheme is a type that nobody registered.
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
			&tidings.NotSyncedError{Informers: []tidings.Health{{Name: "pods", Watch: health.Watch{State: tidings.Pending}}}, Cause: context.Canceled},
			"pods is Pending: call Start after asking for it",
		},
		{
			tidings.Mutation{Informer: "pods", Key: "default/a", Fields: []string{"data"}, Handlers: []string{"one", "two"}},
			"handler one or two changed the cached object default/a at data",
		},
		{
			tidings.Mutation{Informer: "pods", Key: "default/a", Fields: []string{"data"}},
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

func TestBadInputIsRefusedWhereItIsGiven(t *testing.T) {
	f := offline(t, tidings.FactoryOptions{})
	var nilFactory *tidings.Factory
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	transform := tidings.NewTransform(func(n *corev1.Node) (*corev1.Node, error) { return n, nil })
	informer, err := tidings.For[*corev1.Pod](f, tidings.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	selectPods := func(s tidings.Selection) error { return errOf(tidings.For[*corev1.Pod](f, s)) }
	handle := func(h tidings.Handler[*corev1.Pod], o tidings.HandlerOptions) error {
		return errOf(informer.AddHandler(h, o))
	}
	nothing := tidings.Funcs[*corev1.Pod]{}
	tests := map[string]struct {
		err  error
		is   error // nil: any
		says []string
	}{
		"nil config":               {errOf(tidings.NewFactory(nil, tidings.FactoryOptions{})), nil, []string{"rest.Config is nil", "clientcmd"}},
		"bad default namespace":    {errOf(tidings.NewFactory(&rest.Config{}, tidings.FactoryOptions{Namespaces: []string{"A b"}})), nil, []string{"FactoryOptions.Namespaces", `"A b"`}},
		"bad sharing":              {errOf(tidings.NewFactory(&rest.Config{}, tidings.FactoryOptions{Transport: tidings.Transport{Sharing: 7}})), nil, []string{"FactoryOptions.Transport.Sharing", "ShareStrings"}},
		"broken config":            {errOf(tidings.NewFactory(&rest.Config{Host: "http://[::1"}, tidings.FactoryOptions{})), nil, []string{"rest.Config cannot be used"}},
		"nil factory":              {errOf(tidings.For[*corev1.Pod](nilFactory, tidings.Selection{})), tidings.ErrNilFactory, []string{"NewFactory"}},
		"nil factory, dynamic":     {errOf(tidings.Dynamic(nilFactory, pods, tidings.Selection{})), tidings.ErrNilFactory, nil},
		"type not in the scheme":   {errOf(tidings.For[*notInAnyScheme](f, tidings.Selection{})), tidings.ErrNotInScheme, []string{"notInAnyScheme", "AddToScheme"}},
		"unstructured through For": {errOf(tidings.For[*unstructured.Unstructured](f, tidings.Selection{})), nil, []string{"use Dynamic"}},
		"metadata through For":     {errOf(tidings.For[*metav1.PartialObjectMetadata](f, tidings.Selection{})), nil, []string{"use Metadata"}},
		"interface through For":    {errOf(tidings.For[tidings.Object](f, tidings.Selection{})), nil, []string{"pointer to an API type"}},
		"resource without version": {errOf(tidings.Dynamic(f, schema.GroupVersionResource{Resource: "pods"}, tidings.Selection{})), nil, []string{"needs a version"}},
		"namespace of a node":      {errOf(tidings.For[*corev1.Node](f, tidings.Selection{Namespace: "default"})), tidings.ErrClusterScoped, []string{`"default"`, "*v1.Node"}},
		"namespaces of nodes":      {errOf(tidings.Metadata(f, nodes, tidings.Selection{Namespaces: []string{"x"}})), tidings.ErrClusterScoped, []string{"nodes.v1"}},
		"invalid namespace":        {selectPods(tidings.Selection{Namespace: "No/Such"}), tidings.ErrInvalidSelection, []string{"No/Such"}},
		"two ways of namespaces":   {selectPods(tidings.Selection{Namespace: "a", AllNamespaces: true}), tidings.ErrInvalidSelection, []string{"AllNamespaces"}},
		"invalid labels":           {selectPods(tidings.Selection{Labels: "a in b"}), tidings.ErrInvalidSelection, []string{`"a in b"`}},
		"invalid fields":           {selectPods(tidings.Selection{Fields: "what"}), tidings.ErrInvalidSelection, []string{`"what"`}},
		"drop of no field":         {selectPods(tidings.Selection{Drop: []string{"spec.container.env"}}), tidings.ErrInvalidSelection, []string{`"spec.container.env"`, "v1.PodSpec", `no field "container"`, "containers"}},
		"drop into a map":          {selectPods(tidings.Selection{Drop: []string{"metadata.labels.app"}}), tidings.ErrInvalidSelection, []string{`"metadata.labels.app"`, "a map", "leave that out whole"}},
		"drop into a value":        {selectPods(tidings.Selection{Drop: []string{"spec.nodeName.x"}}), tidings.ErrInvalidSelection, []string{`"spec.nodeName.x"`, "one value"}},
		"drop of identity":         {selectPods(tidings.Selection{Drop: []string{"metadata.uid"}}), tidings.ErrInvalidSelection, []string{`"metadata.uid"`, "told apart"}},
		"drop of no path":          {selectPods(tidings.Selection{Drop: []string{"spec..env"}}), tidings.ErrInvalidSelection, []string{`"spec..env"`}},
		"drop of selecting labels": {selectPods(tidings.Selection{Labels: "a=b", Drop: []string{"metadata.labels"}}), tidings.ErrInvalidSelection, []string{`"metadata.labels"`, "Transform"}},
		"drop, dynamic":            {errOf(tidings.Dynamic(f, pods, tidings.Selection{Drop: []string{"spec.any", "metadata.managed"}})), tidings.ErrInvalidSelection, []string{`"metadata.managed"`, "v1.ObjectMeta", "managedFields"}},
		"drop, metadata":           {errOf(tidings.Metadata(f, pods, tidings.Selection{Drop: []string{"spec"}})), tidings.ErrInvalidSelection, []string{`"spec"`, "v1.PartialObjectMetadata"}},
		"transform of another":     {selectPods(tidings.Selection{Transform: transform}), tidings.ErrInvalidSelection, []string{"*v1.Node", "*v1.Pod"}},
		"nil handler":              {handle(nil, tidings.HandlerOptions{}), nil, []string{"handler is nil", "pods.v1"}},
		"negative resync":          {handle(nothing, tidings.HandlerOptions{Resync: -1}), nil, []string{"Resync"}},
		"negative limit":           {handle(nothing, tidings.HandlerOptions{Limit: -1}), nil, []string{"Limit"}},
		"unknown policy":           {handle(nothing, tidings.HandlerOptions{Policy: 9}), nil, []string{"Policy"}},
		"nil index":                {informer.AddIndex(nil), nil, []string{"NewIndex", "pods.v1"}},
		"nil index function":       {informer.AddIndex(tidings.NewIndex[*corev1.Pod]("nil", nil)), nil, []string{`"nil"`}},
		"nil source":               {errOf(tidings.NewInformer[*corev1.Pod](nil, tidings.InformerOptions[*corev1.Pod]{})), nil, []string{"source is nil"}},
		"unknown sharing":          {errOf(tidings.NewInformer(&fakeSource{}, tidings.InformerOptions[*corev1.ConfigMap]{Transport: tidings.Transport{Sharing: 9}})), nil, []string{"InformerOptions.Transport.Sharing is 9"}},
		"wait before the start":    {f.WaitForSync(t.Context()), tidings.ErrNotStarted, []string{"pods.v1", "call Start"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.err == nil || (test.is != nil && !errors.Is(test.err, test.is)) {
				t.Fatalf("got %v, want %v", test.err, test.is)
			}
			for _, part := range test.says {
				if !strings.Contains(test.err.Error(), part) {
					t.Errorf("the error does not say %q: %v", part, test.err)
				}
			}
		})
	}
}

func TestNotFoundIsKubernetesNotFound(t *testing.T) {
	informer, err := tidings.For[*corev1.Pod](offline(t, tidings.FactoryOptions{}), tidings.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := informer.Lister().Namespace("default").Get("web"); !apierrors.IsNotFound(err) || err.Error() != `pods "web" not found` {
		t.Errorf("got %v", err)
	}
	if _, err := informer.Lister().Get("default/web"); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
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
		if state := w.health().State; state != tidings.Watching {
			w.Errorf("the release of one of two handles led to state %s", state)
		}
		w.stop()
		synctest.Wait()
		if err := w.probe.add(); !errors.Is(err, tidings.ErrStopped) || !strings.Contains(err.Error(), w.probe.informer().Name()) {
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

func TestLastReleaseEndsTheWatchAndAskingAgainBeginsAnew(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.start()
		w.probe.informer().Release()
		synctest.Wait()
		if n := len(w.factory.Health()); n != 0 {
			w.Errorf("after the last release the factory has %d informers", n)
		}
		w.probe = w.ask(w.T, w.factory, tidings.Selection{Namespace: "default"})
		w.start()
		w.agree()
	})
}

func TestFactoryStartsAnewAfterItsContextHasEnded(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.start()
		w.stop()
		synctest.Wait()
		w.ctx, w.stop = context.WithCancel(context.Background())
		w.probe = w.ask(w.T, w.factory, tidings.Selection{Namespace: "default"})
		w.start()
		w.create("b", "1")
		synctest.Wait()
		w.agree()
	})
}

func TestSeveralNamespacesAreOneCache(t *testing.T) {
	o := tidings.FactoryOptions{Namespaces: []string{"kube-system", "default"}}
	propertyWith(t, o, tidings.Selection{}, func(w *world) {
		w.create("a", "1")
		for namespace, name := range map[string]string{"kube-public": "elsewhere", "kube-system": "second"} {
			obj := object(name, "1")
			obj.Namespace = namespace
			if _, err := w.server.Create(context.Background(), obj); err != nil {
				w.Fatal(err)
			}
		}
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
		if h := w.health(); len(h.Namespaces) != 2 || h.State != tidings.Watching {
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

func TestEventsLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		informer, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		w.create("a", "1")
		w.start()
		w.create("b", "1")
		synctest.Wait()
		var told []string
		for e := range informer.Events(w.ctx) {
			told = append(told, fmt.Sprint(e.Type, " ", e.Key(), " ", e.Object().Labels["n"]))
			switch len(told) {
			case 2:
				w.remove("a")
			case 3:
				w.update("b", "2")
			}
			if len(told) == 4 {
				break
			}
		}
		expect(t, told, "Added default/a 1", "Added default/b 1", "Deleted default/a 1", "Updated default/b 2")
		synctest.Wait()
		if handlers := informer.Health().Handlers; len(handlers) != 0 {
			t.Errorf("leaving the loop left %v", handlers)
		}
		w.stop()
		synctest.Wait()
		for e := range informer.Events(context.Background()) {
			t.Errorf("a stopped informer yields %v", e)
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
		informer, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Namespace: "default", Transform: small})
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
		if h := informer.Health(); h.TransformErrors != 1 || !strings.Contains(h.LastTransformError.Error(), "default/odd: it is odd") {
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
			"apiVersion": "example.com/v1", "kind": "Planet", "metadata": map[string]any{"name": "mars"}, "moons": int64(2)}}
		if _, err := w.server.Create(t.Context(), mars); err != nil {
			t.Fatal(err)
		}
		w.startFactory()
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		defer cancel()
		err = w.factory.WaitForSync(ctx)
		if !errors.Is(err, source.ErrWrongScope) || !strings.Contains(err.Error(), "without a namespace") {
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
