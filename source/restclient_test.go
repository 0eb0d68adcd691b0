package source

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
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
				w.Header().Set("Content-Type", jsonType)
				w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"}}`)) //nolint:errcheck // the client says what it got
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL + "/clusters/one", UserAgent: "roller/1.0", BearerToken: "secret"}
			test.change(config)
			client, err := NewClientFromREST(restClientFor(t, config))
			if err != nil {
				t.Fatal(err)
			}
			tweak := func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = "app=web", "spec.nodeName=n1" }
			page, err := NewTyped(client, pods, func() *corev1.Pod { return new(corev1.Pod) }, RESTOptions{Namespace: "default", Tweak: tweak}).
				List(t.Context(), ListOptions{Version: "0", Limit: 500})
			if err != nil {
				t.Fatal(err)
			}
			if page.Version != "7" {
				t.Errorf("version %q, want 7", page.Version)
			}
			for header, want := range map[string]string{"Accept": test.accept, "User-Agent": "roller/1.0", "Authorization": "Bearer secret"} {
				if value := got.Header.Get(header); value != want {
					t.Errorf("%s: %q, want %q", header, value, want)
				}
			}
			if want := "/clusters/one/api/v1/namespaces/default/pods"; got.URL.Path != want {
				t.Errorf("path %q, want %q", got.URL.Path, want)
			}
			const query = "fieldSelector=spec.nodeName%3Dn1&labelSelector=app%3Dweb&limit=500&resourceVersion=0&resourceVersionMatch=NotOlderThan"
			if got.URL.RawQuery != query {
				t.Errorf("query %q, want %q", got.URL.RawQuery, query)
			}
		})
	}
}

func TestClientFromRESTLimitsListsAndNotWatches(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		<-release
	}))
	defer server.Close()
	defer close(release)
	client, err := NewClientFromREST(restClientFor(t, &rest.Config{Host: server.URL, Timeout: 50 * time.Millisecond}))
	if err != nil {
		t.Fatal(err)
	}
	src := NewTyped(client, pods, func() *corev1.Pod { return new(corev1.Pod) }, RESTOptions{})
	if _, err := src.List(t.Context(), ListOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a list that hangs: %v, want the deadline of the client", err)
	}
	if client.http.Timeout != 0 {
		t.Errorf("a watch would be cut off after %v", client.http.Timeout)
	}
}

func TestClientFromRESTRefusesNil(t *testing.T) {
	if _, err := NewClientFromREST(nil); err == nil || !strings.Contains(err.Error(), "rest.Config") {
		t.Errorf("error %v, want one that says what to pass", err)
	}
}
