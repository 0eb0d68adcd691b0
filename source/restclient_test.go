package source

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
)

// restClientFor returns the REST client of a clientset, as its users have one.
func restClientFor(t *testing.T, config *rest.Config) *rest.RESTClient {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return clientset.CoreV1().RESTClient().(*rest.RESTClient)
}

func TestClientFromRESTSendsAsTheClientsetDoes(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*rest.Config)
		accept string
	}{
		{"nothing chosen", func(*rest.Config) {}, protobufType + "," + jsonType},
		{"protobuf chosen", func(c *rest.Config) { c.ContentType = protobufType }, protobufType + "," + jsonType},
		{"JSON chosen", func(c *rest.Config) { c.ContentType = jsonType }, jsonType},
		{"JSON accepted", func(c *rest.Config) { c.AcceptContentTypes = jsonType }, jsonType},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got *http.Request
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = r
				answerWith(200, jsonType, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"}}`)(w, r)
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL + "/clusters/one", UserAgent: "roller/1.0", BearerToken: "secret"}
			test.change(config)
			client, err := NewClientFromREST(restClientFor(t, config))
			if err != nil {
				t.Fatal(err)
			}
			tweak := func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = "app=web", "spec.nodeName=n1" }
			s := NewTyped(client, pods, newPod, RESTOptions{Namespace: "default", Tweak: tweak})
			page, err := s.List(t.Context(), ListOptions{Version: "0", Limit: 500})
			if err != nil || page.Version != "7" {
				t.Fatalf("%+v, %v", page, err)
			}
			for header, want := range map[string]string{"Accept": test.accept, "User-Agent": "roller/1.0", "Authorization": "Bearer secret"} {
				if value := got.Header.Get(header); value != want {
					t.Errorf("%s: %q, want %q", header, value, want)
				}
			}
			const uri = "/clusters/one/api/v1/namespaces/default/pods?fieldSelector=spec.nodeName%3Dn1&" +
				"labelSelector=app%3Dweb&limit=500&resourceVersion=0&resourceVersionMatch=NotOlderThan"
			if got.RequestURI != uri {
				t.Errorf("asked %q, want %q", got.RequestURI, uri)
			}
		})
	}
}

func TestClientFromRESTRefusesNil(t *testing.T) {
	if _, err := NewClientFromREST(nil); err == nil || !strings.Contains(err.Error(), "rest.Config") {
		t.Errorf("error %v, want one that says what to pass", err)
	}
}

// requestCounter takes the place of a metric of client-go.
type requestCounter struct {
	mu   sync.Mutex // guards seen
	seen map[string]int
}

func (c *requestCounter) Increment(_ context.Context, code, method, host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[code+" "+method+" "+host]++
}

func TestRequestsAreCountedInClientGosMetrics(t *testing.T) {
	counter := &requestCounter{seen: map[string]int{}}
	before := metrics.RequestResult
	metrics.RequestResult = counter
	defer func() { metrics.RequestResult = before }()
	server := httptest.NewServer(http.NotFoundHandler())
	host := strings.TrimPrefix(server.URL, "http://")
	client, err := NewClient(&rest.Config{Host: server.URL}, nil)
	if err != nil {
		t.Fatal(err)
	}
	src := NewTyped(client, pods, newPod, RESTOptions{})
	if _, err := src.List(t.Context(), ListOptions{}); err == nil {
		t.Error("no error from a server that has nothing")
	}
	server.Close()
	if _, err := src.Watch(t.Context(), WatchOptions{}); err == nil {
		t.Error("no error from a server that is gone")
	}
	if want := map[string]int{"404 GET " + host: 2, "<error> GET " + host: 1}; !maps.Equal(counter.seen, want) {
		t.Errorf("counted %v, want %v, discovery among them", counter.seen, want)
	}
}
