package cli_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/cli"
)

// stream is an output that a test waits on.
type stream struct {
	mu   sync.Mutex
	text bytes.Buffer
	grew chan struct{}
}

func newStream() *stream { return &stream{grew: make(chan struct{}, 1)} }

func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		select {
		case s.grew <- struct{}{}:
		default:
		}
	}()
	return s.text.Write(p)
}

func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// awaitTimeout is after how long a test gives up, to say what it waited for.
const awaitTimeout = 30 * time.Second

// await waits until the output has a part.
func (s *stream) await(t *testing.T, part string) {
	t.Helper()
	late := time.After(awaitTimeout)
	for !strings.Contains(s.String(), part) {
		select {
		case <-s.grew:
		case <-late:
			t.Fatalf("%q did not come: %s", part, s.String())
		}
	}
}

// session is a command that runs.
type session struct {
	out, err  *stream
	interrupt context.CancelFunc
	code      chan int
}

func start(t *testing.T, args ...string) *session {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &session{out: newStream(), err: newStream(), interrupt: cancel, code: make(chan int, 1)}
	go func() {
		s.code <- cli.Run(ctx, args, cli.Streams{In: strings.NewReader(""), Out: s.out, Err: s.err})
	}()
	return s
}

// end interrupts the command as Ctrl-C does and expects it to end well.
func (s *session) end(t *testing.T) {
	t.Helper()
	s.interrupt()
	if code := <-s.code; code != 0 {
		t.Errorf("exit code %d after Ctrl-C: %s", code, s.err)
	}
}

// watchArgs are those of a watch of a server.
func watchArgs(t *testing.T, url string, args ...string) []string {
	t.Helper()
	return append([]string{"watch", "--kubeconfig", kubeconfig(t, url, "secret-token"), "--cache-dir", t.TempDir()}, args...)
}

func TestWatchRefused(t *testing.T) {
	t.Parallel()
	pods := schema.GroupResource{Resource: "pods"}
	for _, c := range []struct {
		name  string
		args  []string
		next  http.Handler
		parts []string
	}{
		{"wrong type", []string{"deploymnets"}, nil, []string{`the server has no type "deploymnets": did you mean deployments?`}},
		{"wrong type among right ones", []string{"pods,widgetz"}, nil, []string{"did you mean widgets?"}},
		{"nothing near", []string{"xyzzy"}, nil, []string{"kubectl api-resources"}},
		{"not watchable", []string{"reviews"}, nil, []string{"cannot list and watch reviews"}},
		{"wrong credentials", []string{"pods"}, refuse(apierrors.NewUnauthorized("Unauthorized")), []string{`user "ada"`, `context "staging"`, "log in again"}},
		{"forbidden in the context's namespace", []string{"pods"}, refuse(apierrors.NewForbidden(pods, "", errors.New("no"))), []string{`may not list and watch pods in namespace "shop"`, "`kubectl auth can-i list pods -n shop`"}},
		{"forbidden everywhere", []string{"pods", "-A"}, refuse(apierrors.NewForbidden(pods, "", errors.New("no"))), []string{"in all namespaces", "`kubectl auth can-i list pods -A`"}},
		{"forbidden nodes", []string{"nodes"}, refuse(apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no"))), []string{"may not list and watch nodes", "`kubectl auth can-i list nodes`"}},
		{"bad field selector", []string{"pods", "--field-selector", "spec.x=1"}, refuse(apierrors.NewBadRequest("field label not supported: spec.x")), []string{"field label not supported: spec.x", "--field-selector"}},
		{"type that was removed", []string{"widgets"}, refuse(apierrors.NewNotFound(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "")), []string{"has no widgets.example.com any more"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.next == nil {
				c.next = http.NotFoundHandler()
			}
			server := serve(t, c.next)
			got := run(t.Context(), watchArgs(t, server.URL, c.args...)...)
			got.expect(t, 1, c.parts...)
			if got.out != "" {
				t.Errorf("out: %s", got.out)
			}
			if strings.Contains(got.err, "secret-token") {
				t.Errorf("the token is shown: %s", got.err)
			}
		})
	}
}

func TestWatchOfANamespaceForNodes(t *testing.T) {
	t.Parallel()
	server := serve(t, http.NotFoundHandler())
	got := run(t.Context(), watchArgs(t, server.URL, "nodes", "-n", "shop")...)
	got.expect(t, 2, "nodes have no namespace: leave out --namespace")
}

func TestWatchRefusedBeforeDiscovery(t *testing.T) {
	t.Parallel()
	server := serve(t, http.NotFoundHandler())
	server.Config.Handler = refuse(apierrors.NewUnauthorized("Unauthorized"))
	got := run(t.Context(), watchArgs(t, server.URL, "pods")...)
	got.expect(t, 1, "does not accept the credentials", `user "ada"`)
}

const widgetList = `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"10"},"items":[
{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"one","namespace":"shop","uid":"u1","resourceVersion":"7"},"spec":{"size":1},"status":{"phase":"Ready"}}]}`

const widgetGrown = `{"type":"MODIFIED","object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"one","namespace":"shop","uid":"u1","resourceVersion":"11"},"spec":{"size":2},"status":{"phase":"Ready"}}}`

func TestWatchShowsWhatChanges(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"widgets", "widget", "wdg", "Widget", "widgets.example.com", "widgets.v1.example.com"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collection := newCanned(widgetList)
			server := serve(t, collection)
			s := start(t, watchArgs(t, server.URL, name)...)
			s.out.await(t, "  widget shop/one  Ready\n")
			s.err.await(t, `1 widget in namespace "shop"; now watching`)
			collection.events <- widgetGrown
			s.out.await(t, "~ widget shop/one  spec.size 1 → 2\n")
			s.end(t)
			for _, part := range []string{"── watched for ", "widgets        1      0        1        0"} {
				if !strings.Contains(s.err.String(), part) {
					t.Errorf("%q is not in the summary: %s", part, s.err)
				}
			}
			if strings.Contains(s.out.String()+s.err.String(), "\x1b") {
				t.Error("escape sequences without a terminal")
			}
		})
	}
}

func TestWatchWithoutTheInitialObjects(t *testing.T) {
	t.Parallel()
	collection := newCanned(widgetList)
	server := serve(t, collection)
	s := start(t, watchArgs(t, server.URL, "widgets", "--initial=false")...)
	s.err.await(t, "now watching")
	collection.events <- widgetGrown
	s.out.await(t, "spec.size 1 → 2\n")
	s.end(t)
	if n := strings.Count(s.out.String(), "\n"); n != 1 {
		t.Errorf("%d lines: %s", n, s.out)
	}
}

func TestWatchPrintsDocuments(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args, initial, changed string
	}{
		{"-o name", "widget.example.com/one\n", "widget.example.com/one\nwidget.example.com/one\n"},
		{"-o json", `"size": 1`, `"size": 2`},
		{"-o yaml", "size: 1", "---\napiVersion: example.com/v1\nkind: Widget"},
		{"-o json --output-watch-events", `{"type":"ADDED","object":{"apiVersion":"example.com/v1"`, `{"type":"MODIFIED","object":{"apiVersion":"example.com/v1"`},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			collection := newCanned(widgetList)
			server := serve(t, collection)
			s := start(t, watchArgs(t, server.URL, append([]string{"widgets"}, strings.Fields(c.args)...)...)...)
			s.out.await(t, c.initial)
			<-collection.opened
			collection.events <- widgetGrown
			s.out.await(t, c.changed)
			s.end(t)
		})
	}
}

const secretList = `{"apiVersion":"v1","kind":"SecretList","metadata":{"resourceVersion":"10"},"items":[
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"login","namespace":"shop","uid":"u1","resourceVersion":"7"},"data":{"password":"aHVudGVyMg=="}}]}`

func TestWatchHidesSecrets(t *testing.T) {
	t.Parallel()
	// The second frame is malformed: its error quotes what was received.
	frames := []string{
		`{"type":"MODIFIED","object":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"login","namespace":"shop","uid":"u1","resourceVersion":"11"},"data":{"password":"aHVudGVyMw=="}}}`,
		`{"type":"MODIFIED","object":{"data":{"password":"aHVudGVyNA=="`,
	}
	for _, flags := range []string{"", "-o json", "-o yaml", "-o yaml --output-watch-events", "-o name", "-v"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			collection := newCanned(secretList)
			server := serve(t, collection)
			s := start(t, watchArgs(t, server.URL, append([]string{"secrets"}, strings.Fields(flags)...)...)...)
			s.err.await(t, "now watching")
			for _, frame := range frames {
				collection.events <- frame
			}
			close(collection.events)
			s.err.await(t, "secrets: ")
			s.end(t)
			if all := s.out.String() + s.err.String(); strings.Contains(all, "aHVudGVy") || strings.Contains(all, "hunter") {
				t.Errorf("the data is shown:\n%s", all)
			}
		})
	}
	collection := newCanned(secretList)
	server := serve(t, collection)
	s := start(t, watchArgs(t, server.URL, "secrets", "-o", "json", "--show-secrets")...)
	s.out.await(t, "aHVudGVyMg==")
	s.end(t)
}

func TestWatchGoesOnAfterTrouble(t *testing.T) {
	t.Parallel()
	collection := newCanned(widgetList)
	var mu sync.Mutex
	var handler http.Handler = collection
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		h := handler
		mu.Unlock()
		h.ServeHTTP(w, r)
	}))
	s := start(t, watchArgs(t, server.URL, "widgets")...)
	s.err.await(t, "now watching")
	mu.Lock()
	handler = refuse(apierrors.NewForbidden(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "", errors.New("no")))
	mu.Unlock()
	collection.events <- `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","code":500}}`
	s.err.await(t, "widgets: the credentials")
	mu.Lock()
	handler = collection
	mu.Unlock()
	s.err.await(t, "widgets: following again")
	collection.events <- widgetGrown
	s.out.await(t, "spec.size 1 → 2\n")
	s.end(t)
}

func TestWatchEndsWithCtrlCWhileConnecting(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	server.Config.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s := start(t, watchArgs(t, server.URL, "pods")...)
	s.err.await(t, "asking "+server.URL+" for its types")
	s.end(t)
}

func TestWatchShowsItsProgress(t *testing.T) {
	t.Parallel()
	collection := newCanned(widgetList)
	release := make(chan struct{})
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		collection.ServeHTTP(w, r)
	}))
	s := start(t, watchArgs(t, server.URL, "widgets")...)
	s.err.await(t, "── listing widgets: 0 objects so far\n")
	close(release)
	s.err.await(t, "now watching")
	s.end(t)
}

func TestWatchLosesAndFindsTheServer(t *testing.T) {
	t.Parallel()
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	url, err := server.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, watchArgs(t, url, "namespaces,nodes")...)
	s.err.await(t, "4 namespaces, 0 nodes; now watching")
	server.SetAvailable(false)
	s.err.await(t, "lost "+url+" (the connection ended); trying again")
	server.SetAvailable(true)
	s.err.await(t, "following again")
	if _, err := server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	s.out.await(t, "+ namespace shop")
	s.end(t)
}
