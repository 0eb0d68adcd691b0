package factory_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	fakemetadata "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// widgets and gears are custom resources without a Go type. Libraries of typed informers read
// their twins, pods and config maps, of which a world has the same objects.
var (
	widgets    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	gears      = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gears"}
	newWidgets = schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}
)

func twin(gvr schema.GroupVersionResource) schema.GroupVersionResource {
	twins := map[schema.GroupVersionResource]string{widgets: "pods", gears: "configmaps", newWidgets: "secrets"}
	if name, ok := twins[gvr]; ok {
		return corev1.SchemeGroupVersion.WithResource(name)
	}
	return gvr
}

// typedOf returns the twin of a widget or a gear.
func typedOf(o *unstructured.Unstructured) runtime.Object {
	meta := metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), Labels: o.GetLabels(), Annotations: o.GetAnnotations(),
	}
	if o.GetKind() == "Gear" {
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"size": "3"}}
	}
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "app", Image: "example.com/app:v1", Args: []string{"a", "b"},
	}}}}
}

// metadataOf returns the metadata of a widget or a gear.
func metadataOf(o *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: o.GetAPIVersion(), Kind: o.GetKind()},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), Labels: o.GetLabels()},
	}
}

// widget returns a widget with a label.
func widget(namespace, name, color string) *unstructured.Unstructured {
	return object("Widget", namespace, name, color)
}

func object(kind, namespace, name, color string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       kind,
		"metadata":   map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"color": color}},
		"spec":       map[string]any{"size": int64(3), "weight": 1.5, "parts": []any{"a", "b"}},
	}}
}

// clients are the clients of a world; a library uses one of them.
type clients struct {
	typed    kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
	// The same for our own source, if there is a server.
	ownTyped    kubernetes.Interface
	ownDynamic  *dynamicinformer.Client
	ownMetadata *metadatainformer.Client
}

func (c clients) forTyped(own bool) kubernetes.Interface {
	if own {
		return c.ownTyped
	}
	return c.typed
}

func (c clients) forDynamic(own bool) dynamic.Interface {
	if own {
		return c.ownDynamic
	}
	return c.dynamic
}

func (c clients) forMetadata(own bool) metadata.Interface {
	if own {
		return c.ownMetadata
	}
	return c.metadata
}

// newClientGoPods makes client-go's informer of pods.
func newClientGoPods(c kubernetes.Interface, s settings, indexers cache.Indexers) cache.SharedIndexInformer {
	return coreinformers.NewFilteredPodInformer(c, s.namespace, s.resync, indexers, s.tweak)
}

// world has the objects that informers read.
type world interface {
	clients(t *testing.T) clients
	create(t *testing.T, o *unstructured.Unstructured)
	update(t *testing.T, o *unstructured.Unstructured)
	// remove deletes a widget.
	remove(t *testing.T, namespace, name string)
	// lists returns the number of lists of a resource that the clients have made.
	lists(gvr schema.GroupVersionResource) int
	// refuse makes all lists and watches of gears fail. It is called before anything runs.
	refuse()
}

// fakeWorld has client-go's three fakes with the same objects.
type fakeWorld struct {
	typed    *fake.Clientset
	dynamic  *fakedynamic.FakeDynamicClient
	metadata *fakemetadata.FakeMetadataClient
}

func newFakes(t *testing.T) *fakeWorld {
	t.Helper()
	silenceErrors(t)
	metadataScheme := fakemetadata.NewTestScheme()
	must(t, metav1.AddMetaToScheme(metadataScheme))
	// Neither scheme has the kinds of widgets and gears, as a program's would not.
	kinds := map[schema.GroupVersionResource]string{widgets: "WidgetList", gears: "GearList"}
	return &fakeWorld{
		typed:    fake.NewClientset(),
		dynamic:  fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds),
		metadata: fakemetadata.NewSimpleMetadataClient(metadataScheme),
	}
}

func (w *fakeWorld) clients(*testing.T) clients {
	return clients{typed: w.typed, dynamic: w.dynamic, metadata: w.metadata}
}

func (w *fakeWorld) fakes() []*clienttesting.Fake {
	return []*clienttesting.Fake{&w.typed.Fake, &w.dynamic.Fake, &w.metadata.Fake}
}

func resourceOf(o *unstructured.Unstructured) schema.GroupVersionResource {
	return o.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(o.GetKind()) + "s")
}

func (w *fakeWorld) create(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	gvr := resourceOf(o)
	must(t, w.typed.Tracker().Create(twin(gvr), typedOf(o), o.GetNamespace()))
	must(t, w.dynamic.Tracker().Create(gvr, o.DeepCopy(), o.GetNamespace()))
	must(t, w.metadata.Tracker().Create(gvr, metadataOf(o), o.GetNamespace()))
}

func (w *fakeWorld) update(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	gvr := resourceOf(o)
	must(t, w.typed.Tracker().Update(twin(gvr), typedOf(o), o.GetNamespace()))
	must(t, w.dynamic.Tracker().Update(gvr, o.DeepCopy(), o.GetNamespace()))
	must(t, w.metadata.Tracker().Update(gvr, metadataOf(o), o.GetNamespace()))
}

func (w *fakeWorld) remove(t *testing.T, namespace, name string) {
	t.Helper()
	must(t, w.typed.Tracker().Delete(twin(widgets), namespace, name))
	must(t, w.dynamic.Tracker().Delete(widgets, namespace, name))
	must(t, w.metadata.Tracker().Delete(widgets, namespace, name))
}

func (w *fakeWorld) lists(gvr schema.GroupVersionResource) (n int) {
	for _, fake := range w.fakes() {
		for _, action := range fake.Actions() {
			if action.GetVerb() == "list" && (action.GetResource() == gvr || action.GetResource() == twin(gvr)) {
				n++
			}
		}
	}
	return n
}

func (w *fakeWorld) refuse() {
	refused := errors.New("not available")
	for _, fake := range w.fakes() {
		for _, name := range []string{gears.Resource, twin(gears).Resource} {
			fake.PrependReactor("list", name, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refused })
			fake.PrependWatchReactor(name, func(clienttesting.Action) (bool, watch.Interface, error) { return true, nil, refused })
		}
	}
}

// httpWorld has a server and real clients. The fields are set before anything runs.
type httpWorld struct {
	server  *apisim.Server
	refused bool                // gears
	json    bool                // serve nothing in protobuf
	saw     func(*http.Request) // receives every request, unless nil
	answer  http.Handler        // answers in place of the server, unless nil
}

func newServer(t *testing.T) *httpWorld {
	t.Helper()
	silenceErrors(t)
	w := &httpWorld{}
	w.server = apisim.Options{Middleware: w.middleware}.Start(t)
	for resource, kind := range map[string]string{widgets.Resource: "Widget", gears.Resource: "Gear"} {
		must(t, w.server.Register(apisim.Resource{Group: "example.com", Version: "v1", Name: resource, Kind: kind, Namespaced: true}))
	}
	for _, namespace := range []string{"a", "b"} {
		w.add(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	return w
}

func (w *httpWorld) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.saw != nil {
			w.saw(r)
		}
		if w.answer != nil {
			w.answer.ServeHTTP(rw, r)
			return
		}
		if accept := r.Header.Get("Accept"); w.json && strings.Contains(accept, "protobuf") {
			r.Header.Set("Accept", strings.ReplaceAll(strings.ReplaceAll(accept, "vnd.kubernetes.protobuf", "json"), ";stream=watch", ""))
		}
		path := strings.Split(r.URL.Path, "/")
		if last := path[len(path)-1]; w.refused && (last == gears.Resource || last == twin(gears).Resource) {
			http.Error(rw, "not available", http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(rw, r)
	})
}

// wrapped is a clientset that our informers do not know, so that they read through its typed
// methods.
type wrapped struct{ kubernetes.Interface }

func (w *httpWorld) clients(t *testing.T) (c clients) {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(w.server.Config())
	must(t, err)
	c.typed, c.ownTyped = wrapped{clientset}, clientset
	c.dynamic, err = dynamic.NewForConfig(w.server.Config())
	must(t, err)
	c.metadata, err = metadata.NewForConfig(w.server.Config())
	must(t, err)
	c.ownDynamic, err = dynamicinformer.NewClient(w.server.Config(), nil)
	must(t, err)
	c.ownMetadata, err = metadatainformer.NewClient(w.server.Config(), nil)
	must(t, err)
	return c
}

// add creates any object.
func (w *httpWorld) add(t *testing.T, o runtime.Object) {
	t.Helper()
	_, err := w.server.Create(t.Context(), o)
	must(t, err)
}

func (w *httpWorld) create(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	w.add(t, o)
	w.add(t, typedOf(o))
}

func (w *httpWorld) update(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	for _, obj := range []runtime.Object{o, typedOf(o)} {
		_, err := w.server.Update(t.Context(), obj)
		must(t, err)
	}
}

func (w *httpWorld) remove(t *testing.T, namespace, name string) {
	t.Helper()
	w.removeOf(t, widgets, namespace, name)
	w.removeOf(t, twin(widgets), namespace, name)
}

func (w *httpWorld) removeOf(t *testing.T, gvr schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	_, err := w.server.Delete(t.Context(), gvr, namespace, name)
	must(t, err)
}

// lists counts streamed lists too.
func (w *httpWorld) lists(gvr schema.GroupVersionResource) (n int) {
	for _, r := range w.server.Requests() {
		if (r.Resource == gvr || r.Resource == twin(gvr)) && (r.Verb == "list" || r.Query.Get("sendInitialEvents") == "true") {
			n++
		}
	}
	return n
}

func (w *httpWorld) refuse() { w.refused = true }

// silenceErrors keeps the errors of utilruntime.HandleError from the log, and from the handler
// that waits after each error: it keeps the time of the last error. After an error outside of a
// bubble, where the clock is ahead, it would wait for years inside.
func silenceErrors(t *testing.T) {
	t.Helper()
	before := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) {}}
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
