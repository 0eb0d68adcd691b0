package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/tidings-go/tidings/apisim"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// rig is a server, a guard and a typed client that writes through it.
type rig struct {
	*testing.T
	server *apisim.Server
	guard  *Guard
	typed  kubernetes.Interface
}

// inBubble runs a test with a rig in a bubble.
func inBubble(t *testing.T, o Options, test func(r *rig)) {
	t.Helper()
	onServer(t, apisim.Options{Middleware: inCBOR}, o, test)
}

func onServer(t *testing.T, server apisim.Options, o Options, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, server: server.Start(t)}
		var err error
		r.guard, err = New(r.server.Config(), o)
		r.must(err)
		r.speak(runtime.ContentTypeProtobuf)
		test(r)
		synctest.Wait()
	})
}

// speak makes the typed client, which uses a media type.
func (r *rig) speak(mediaType string) {
	r.Helper()
	config := r.guard.Config()
	config.ContentType, config.AcceptContentTypes = mediaType, mediaType
	var err error
	r.typed, err = kubernetes.NewForConfig(config)
	r.must(err)
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// maps returns the config maps of a namespace through the guard.
func (r *rig) maps() typedcore.ConfigMapInterface { return r.typed.CoreV1().ConfigMaps("default") }

// create creates an object past the guard.
func create[T runtime.Object](r *rig, obj T) T {
	r.Helper()
	made, err := apisim.Create(r.Context(), r.server, obj)
	r.must(err)
	return made
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// stored returns the metadata of an object on the server.
func (r *rig) stored(of schema.GroupVersionResource, name string) metav1.Object {
	r.Helper()
	obj, err := r.server.Get(r.Context(), of, "default", name)
	r.must(err)
	return obj.(metav1.Object)
}

// only returns the only write of a call.
func (r *rig) only(c *Call) Write {
	r.Helper()
	writes := c.End()
	if len(writes) != 1 {
		r.Fatalf("the call has the writes %+v, want one", writes)
	}
	return writes[0]
}

// isError checks that an error is a refusal with a reason.
func (r *rig) isError(err, reason error, parts ...string) *Error {
	r.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || !errors.Is(err, reason) {
		r.Fatalf("the error is %v, want %v", err, reason)
	}
	for _, part := range parts {
		if !strings.Contains(e.Error(), part) {
			r.Errorf("the error %q does not say %q", e, part)
		}
	}
	return e
}

// wait waits until all goroutines of the bubble are blocked.
func (r *rig) wait() { synctest.Wait() }

// testTerm is a term that a test renews and closes.
type testTerm struct {
	until atomic.Pointer[time.Time]
	done  chan struct{}
	err   error
}

func newTerm(d time.Duration) *testTerm {
	t := &testTerm{done: make(chan struct{})}
	t.renew(d)
	return t
}

// renew makes the term end after a time.
func (t *testTerm) renew(d time.Duration) { t.until.Store(new(time.Now().Add(d))) }

func (t *testTerm) String() string           { return "lease ops/rollout" }
func (t *testTerm) Remaining() time.Duration { return time.Until(*t.until.Load()) }
func (t *testTerm) Done() <-chan struct{}    { return t.done }

func (t *testTerm) Err() error {
	select {
	case <-t.done:
		return t.err
	default:
		return nil
	}
}

func (t *testTerm) close(err error) {
	t.err = err
	close(t.done)
}

// inCBOR translates between clients that use CBOR and a server that uses JSON.
func inCBOR(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("Content-Type"), "cbor") {
			var object any
			body, err := io.ReadAll(r.Body)
			if err == nil && len(body) > 0 {
				err = direct.Unmarshal(body, &object)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			if body, err = json.Marshal(object); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			as := strings.NewReplacer("patch+cbor", "patch+yaml", "cbor", "json")
			r.Header.Set("Content-Type", as.Replace(r.Header.Get("Content-Type")))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		if !strings.Contains(r.Header.Get("Accept"), "cbor") {
			next.ServeHTTP(w, r)
			return
		}
		r.Header.Set("Accept", runtime.ContentTypeJSON)
		inJSON := httptest.NewRecorder()
		next.ServeHTTP(inJSON, r)
		var object any
		body := inJSON.Body.Bytes()
		if err := utiljson.Unmarshal(body, &object); err == nil { // whole numbers stay whole
			plain, _ := direct.Marshal(object)
			body = append([]byte{0xd9, 0xd9, 0xf7}, plain...) // the tag of CBOR
		}
		w.Header().Set("Content-Type", runtime.ContentTypeCBOR)
		w.WriteHeader(inJSON.Code)
		w.Write(body)
	})
}
