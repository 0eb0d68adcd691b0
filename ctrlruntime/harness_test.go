package ctrlruntime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/ctrlruntime"
	"github.com/tidings-go/tidings/internal/test/logtable"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.FromSlogHandler(ownLines{}))
	// The handlers after the first, which logs, delay callers by the clock of the process. In a
	// bubble of virtual time that may take decades.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	os.Exit(m.Run())
}

// logged receives the lines of this package; nil is nobody.
var logged atomic.Pointer[logtable.Lines]

// ownLines is the handler of the process's logger. It hands on the lines of this package.
type ownLines struct{}

func (ownLines) Enabled(context.Context, slog.Level) bool { return logged.Load() != nil }
func (h ownLines) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h ownLines) WithGroup(string) slog.Handler          { return h }

func (ownLines) Handle(ctx context.Context, r slog.Record) error {
	isOwn, own := false, slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "logger" {
			isOwn = a.Value.String() == "tidings"
			return isOwn
		}
		own.AddAttrs(a)
		return true
	})
	if to := logged.Load(); to != nil && isOwn {
		return to.Logger().Handler().Handle(ctx, own)
	}
	return nil
}

// world is a server and a cache of it. A test writes its observations down as lines.
type world struct {
	*testing.T
	server  *apisim.Server
	cache   cache.Cache
	options cache.Options
	config  *rest.Config // of the cache and its clients

	mu    sync.Mutex // guards the rest
	lines []string
	asked []string // requests
}

// newScheme returns a scheme with the built-in types and widgets.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	scheme.AddKnownTypes(widgetVersion, &Widget{}, &WidgetList{}, &AllowList{}, &AllowListList{})
	metav1.AddToGroupVersion(scheme, widgetVersion)
	return scheme
}

// newWorld returns a server with the namespaces shop, blog and attic. Its UIDs are the same in
// each world.
func newWorld(t *testing.T, o cache.Options) *world {
	t.Helper()
	o.Scheme = newScheme()
	w := &world{T: t, options: o}
	server, err := apisim.New(apisim.Options{Seed: 1, Middleware: w.record})
	if err != nil {
		t.Fatal(err)
	}
	w.server, w.config = server, server.Config()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close the server: %v", err)
		}
	})
	for _, r := range []apisim.Resource{widgets(), allowLists()} {
		if err := server.Register(r); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"shop", "blog", "attic"} {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return w
}

// make makes the cache. Its error is written down.
func (w *world) make(newCache cache.NewCacheFunc) bool {
	var err error
	if w.cache, err = newCache(w.config, w.options); err != nil {
		w.note("new cache: %v", err)
		return false
	}
	return true
}

// start runs the cache until the test ends.
func (w *world) start() {
	w.Helper()
	// The context of a test ends before its cleanups.
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- w.cache.Start(ctx) }()
	w.Cleanup(func() {
		// controller-runtime's filter of watches of metadata leaves its goroutine behind unless
		// the server ends the watch.
		if err := w.server.Close(); err != nil {
			w.Errorf("close the server: %v", err)
		}
		synctest.Wait()
		cancel()
		if err := <-stopped; err != nil {
			w.Errorf("stop the cache: %v", err)
		}
	})
	w.note("synced: %v", w.cache.WaitForCacheSync(w.brief()))
}

// both runs a test in two worlds, with controller-runtime's cache and with that of NewCache, and
// compares the lines.
func both(t *testing.T, o cache.Options, prepare, run func(*world)) {
	t.Helper()
	var lines [2][]string
	var asked [2][]string
	for n, newCache := range []cache.NewCacheFunc{cache.New, ctrlruntime.NewCache} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, o)
			prepare(w)
			if w.make(newCache) {
				w.note("list before Start: %v", w.cache.List(t.Context(), &corev1.NodeList{}))
				w.start()
				run(w)
				w.settle()
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			slices.Sort(w.asked)
			lines[n], asked[n] = w.lines, slices.Compact(w.asked)
		})
	}
	compare(t, "lines", lines[0], lines[1])
	compare(t, "requests", asked[0], asked[1])
	if len(lines[0]) == 0 {
		t.Error("the test saw nothing")
	}
}

func compare(t *testing.T, what string, want, got []string) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		var a, b string
		if i < len(want) {
			a = want[i]
		}
		if i < len(got) {
			b = got[i]
		}
		if a != b {
			t.Errorf("%s, line %d:\nwant: %s\ngot:  %s", what, i, a, b)
			return
		}
	}
}

// record writes down the lists and watches of objects, without versions, pages and timeouts.
func (w *world) record(next http.Handler) http.Handler {
	return http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		defer next.ServeHTTP(answer, r)
		if strings.Count(r.URL.Path, "/") < 3 || r.Method != http.MethodGet {
			return // discovery
		}
		query := r.URL.Query()
		for _, name := range []string{"resourceVersion", "resourceVersionMatch", "timeoutSeconds", "timeout",
			"limit", "continue"} {
			query.Del(name)
		}
		encoding := "JSON"
		if strings.Contains(r.Header.Get("Accept"), "protobuf") {
			encoding = "protobuf"
		}
		if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			encoding += " metadata"
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked = append(w.asked, fmt.Sprintf("%s?%s %s", r.URL.Path, query.Encode(), encoding))
	})
}

// note writes a line.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// settle waits until all goroutines are blocked, and sorts the lines that handlers wrote since
// the last other line.
func (w *world) settle() {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.lines)
	for n > 0 && strings.HasPrefix(w.lines[n-1], "handler") {
		n--
	}
	slices.Sort(w.lines[n:])
}

// brief returns a context that ends in a second, for informers that never sync.
func (w *world) brief() context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), time.Second)
	w.Cleanup(cancel)
	return ctx
}

// at waits for a time after the start of the bubble, since waits for informers take their time.
func (w *world) at(d time.Duration) {
	time.Sleep(time.Until(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(d)))
	w.settle()
}

// get writes down an object of the cache.
func (w *world) get(obj client.Object, name string, opts ...client.GetOption) {
	namespace, name, _ := strings.Cut(name, "/")
	err := w.cache.Get(w.brief(), client.ObjectKey{Namespace: namespace, Name: name}, obj, opts...)
	w.note("get %T %s/%s: %s, %v", obj, namespace, name, text(obj), err)
}

// list writes down a list of the cache, its objects ascending by name.
func (w *world) list(list client.ObjectList, opts ...client.ListOption) {
	err := w.cache.List(w.brief(), list, opts...)
	var objects []string
	_ = meta.EachListItem(list, func(obj runtime.Object) error {
		objects = append(objects, text(obj))
		return nil
	})
	slices.Sort(objects)
	w.note("list %T: %s %s, continue %q, version %q, %v", list, list.GetObjectKind().GroupVersionKind(),
		objects, list.GetContinue(), list.GetResourceVersion(), err)
}

// count writes down the number of objects in a list.
func (w *world) count(list client.ObjectList, opts ...client.ListOption) {
	err := w.cache.List(w.brief(), list, opts...)
	w.note("count %T: %d, %v", list, meta.LenList(list), err)
}

// serverUID is a UID that the server has made. It depends on the number of watches before it.
var serverUID = regexp.MustCompile(`,?"uid":"[0-9a-f]{8}-[^"]*"`)

func text(obj any) string {
	data, err := json.Marshal(obj)
	if err != nil {
		return err.Error()
	}
	return serverUID.ReplaceAllString(string(data), "")
}

// follow adds a handler to the informer of an object, which writes down its events.
func (w *world) follow(obj client.Object) toolscache.ResourceEventHandlerRegistration {
	informer, err := w.cache.GetInformer(w.brief(), obj)
	if err != nil {
		w.note("informer of %T: %v", obj, err)
		return nil
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { w.note("handler: add %s, initial %v", text(obj), initial) },
		UpdateFunc: func(before, after any) { w.note("handler: update %s to %s", text(before), text(after)) },
		DeleteFunc: func(obj any) { w.note("handler: delete %s", text(obj)) },
	})
	if err != nil {
		w.note("handler of %T: %v", obj, err)
	}
	w.settle()
	return registration
}

func (w *world) create(obj runtime.Object) {
	w.Helper()
	if _, err := w.server.Create(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
}

func (w *world) update(obj runtime.Object) {
	w.Helper()
	if _, err := w.server.Update(w.Context(), obj); err != nil {
		w.Fatal(err)
	}
}

func (w *world) remove(resource schema.GroupVersionResource, namespace, name string) {
	w.Helper()
	if _, err := w.server.Delete(w.Context(), resource, namespace, name); err != nil {
		w.Fatal(err)
	}
}

func configMap(namespace, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Data:       map[string]string{"key": "value of " + name},
	}
}

// widget returns a widget in the form for the server's Go methods.
func widget(namespace, name string, size int64, labels map[string]string) *unstructured.Unstructured {
	return custom(widgetKind, namespace, name, size, labels)
}

func custom(kind schema.GroupVersionKind, namespace, name string, size int64,
	labels map[string]string) *unstructured.Unstructured {
	w := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"size": size, "parts": []any{"wheel", "axle"}},
	}}
	w.SetGroupVersionKind(kind)
	w.SetNamespace(namespace)
	w.SetName(name)
	w.SetLabels(labels)
	return w
}

// untypedOf returns an unstructured object and list of a kind; metadataOf those of metadata.
func untypedOf(gvk schema.GroupVersionKind) (client.Object, client.ObjectList) {
	obj, list := new(unstructured.Unstructured), new(unstructured.UnstructuredList)
	obj.SetGroupVersionKind(gvk)
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return obj, list
}

func metadataOf(gvk schema.GroupVersionKind) (client.Object, client.ObjectList) {
	obj, list := new(metav1.PartialObjectMetadata), new(metav1.PartialObjectMetadataList)
	obj.SetGroupVersionKind(gvk)
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	return obj, list
}
