package byresource_test

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// httpWorld is a server that is reached by real clients.
type httpWorld struct {
	server  *apisim.Server
	refused map[string]bool     // by resource; set before anything runs
	json    bool                // nothing is served in protobuf; set before anything runs
	saw     func(*http.Request) // is shown every request, unless nil; set before anything runs
	answer  http.Handler        // in the place of the server, unless nil; set before anything runs
}

func newServer(t *testing.T) *httpWorld {
	t.Helper()
	silenceErrors(t)
	w := &httpWorld{refused: map[string]bool{}}
	var err error
	if w.server, err = apisim.New(apisim.Options{Middleware: w.middleware}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.server.Close(); err != nil {
			t.Error(err)
		}
	})
	for resource, kind := range map[string]string{widgets.Resource: "Widget", gears.Resource: "Gear"} {
		if err := w.server.Register(apisim.Resource{Group: "example.com", Version: "v1", Name: resource, Kind: kind, Namespaced: true}); err != nil {
			t.Fatal(err)
		}
	}
	for _, namespace := range []string{"a", "b"} {
		if _, err := w.server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
			t.Fatal(err)
		}
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
		if w.refused[path[len(path)-1]] {
			http.Error(rw, "not available", http.StatusInternalServerError)
			return
		}
		next.ServeHTTP(rw, r)
	})
}

func (w *httpWorld) clients(t *testing.T) clients {
	t.Helper()
	forDynamic, err := dynamic.NewForConfig(w.server.Config())
	if err != nil {
		t.Fatal(err)
	}
	forMetadata, err := metadata.NewForConfig(w.server.Config())
	if err != nil {
		t.Fatal(err)
	}
	ownDynamic, err := dynamicinformer.NewClient(w.server.Config(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ownMetadata, err := metadatainformer.NewClient(w.server.Config(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return clients{forDynamic, forMetadata, ownDynamic, ownMetadata}
}

func (w *httpWorld) create(t *testing.T, _ schema.GroupVersionResource, o *unstructured.Unstructured) {
	t.Helper()
	if _, err := w.server.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func (w *httpWorld) update(t *testing.T, _ schema.GroupVersionResource, o *unstructured.Unstructured) {
	t.Helper()
	if _, err := w.server.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func (w *httpWorld) delete(t *testing.T, gvr schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	if _, err := w.server.Delete(t.Context(), gvr, namespace, name); err != nil {
		t.Fatal(err)
	}
}

// lists counts streamed lists too.
func (w *httpWorld) lists(gvr schema.GroupVersionResource) int {
	n := 0
	for _, request := range w.server.Requests() {
		if request.Resource == gvr && (request.Verb == "list" || request.Query.Get("sendInitialEvents") == "true") {
			n++
		}
	}
	return n
}

func (w *httpWorld) refuse(gvr schema.GroupVersionResource) { w.refused[gvr.Resource] = true }
