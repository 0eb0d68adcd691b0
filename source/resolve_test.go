package source

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

func TestResolveAsksTheServer(t *testing.T) {
	client := serve(t, answerWith(200, jsonType, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[
		{"name":"widgets/status","kind":"Widget","namespaced":true},
		{"name":"widgets","kind":"Widget","namespaced":true},
		{"name":"planets","kind":"Planet","namespaced":false}]}`))
	widget := Resource{Group: "example.com", Version: "v1", Kind: "Widget"}
	if r, err := client.Resolve(t.Context(), widget); err != nil || r.Name != "widgets" || r.Scope != ScopeNamespaced {
		t.Errorf("Widget: %+v, %v", r, err)
	}
	if r, err := client.Resolve(t.Context(), Resource{Group: "example.com", Version: "v1", Name: "planets"}); err != nil || r.Kind != "Planet" || r.Scope != ScopeCluster {
		t.Errorf("planets: %+v, %v", r, err)
	}
	gadget := Resource{Group: "example.com", Version: "v1", Kind: "Gadget"}
	_, err := client.Resolve(t.Context(), gadget)
	says := "does not serve " + gadget.String()
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), says) {
		t.Errorf("Gadget: %v", err)
	}
	s := NewDynamic(client, Resource{Group: "example.com", Version: "v1", Name: "planets"}, RESTOptions{Namespace: "default"})
	if _, err := s.List(t.Context(), ListOptions{}); !errors.Is(err, ErrWrongScope) {
		t.Errorf("planets in a namespace: %v", err)
	}
	client = serve(t, answerWith(200, jsonType, "<html>"))
	if _, err := client.Resolve(t.Context(), widget); !errors.Is(err, ErrMalformed) {
		t.Errorf("a page of a proxy: %v, want %v", err, ErrMalformed)
	}
}

// TestKindOfMetadata reads the metadata of a resource whose kind only the server knows: once
// discovery answers, they have it.
func TestKindOfMetadata(t *testing.T) {
	status := http.StatusForbidden
	client := paths(t, map[string]func(*http.Request) *http.Response{
		"/apis/example.com/v1": func(*http.Request) *http.Response {
			return answerOf(status, jsonType, strings.NewReader(`{"resources":[{"name":"planets","kind":"Planet"}]}`))
		},
		"/apis/example.com/v1/planets": func(r *http.Request) *http.Response {
			if r.URL.Query().Get("watch") != "" {
				return answeredInJSON(strings.NewReader(`{"type":"ADDED","object":{"kind":"PartialObjectMetadata",` +
					`"apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","resourceVersion":"3"}}}`))
			}
			return answeredInJSON(strings.NewReader(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1",` +
				`"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a","resourceVersion":"3"}}]}`))
		},
	})
	s := NewMetadata(client, Resource{Group: "example.com", Version: "v1", Name: "planets"}, RESTOptions{})
	for _, want := range []string{"meta.k8s.io/v1 PartialObjectMetadata", "example.com/v1 Planet"} {
		page, err := s.List(t.Context(), ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if m := page.Items[0].Object; m.APIVersion+" "+m.Kind != want {
			t.Errorf("discovery answers with %d: the metadata has %s %s, want %s", status, m.APIVersion, m.Kind, want)
		}
		status = http.StatusOK
	}
	s = NewMetadata(client, Resource{Group: "example.com", Version: "v1", Name: "planets"}, RESTOptions{})
	stream, err := s.Watch(t.Context(), WatchOptions{SendInitialEvents: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	events, err := stream.Next()
	if len(events) != 1 || events[0].Object.Kind != "Planet" {
		t.Errorf("the stream brought %+v, %v", events, err)
	}
}

func TestUnusableConfig(t *testing.T) {
	if _, err := NewClient(nil, nil); err == nil || !strings.Contains(err.Error(), "clientcmd") {
		t.Errorf("got %v, want an error that says what to do", err)
	}
	missing := rest.TLSClientConfig{CAFile: "missing"}
	_, err := NewClient(&rest.Config{Host: "https://a", TLSClientConfig: missing}, nil)
	if err == nil || !strings.Contains(err.Error(), "rest.Config cannot be used") {
		t.Errorf("without the file of the certificates: %v", err)
	}
}

// TestEndOfAListDuringADiscovery ends the context of a list, of a resource that is not found, while
// the discovery of another list does not end: the first list ends.
func TestEndOfAListDuringADiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan bool)
		client := paths(t, map[string]func(*http.Request) *http.Response{
			"/api/v1": func(r *http.Request) *http.Response {
				<-r.Context().Done()
				return answeredInJSON(strings.NewReader("{}"))
			},
			"/api/v1/nodes": func(*http.Request) *http.Response {
				<-answer
				return answerOf(http.StatusNotFound, "text/plain", strings.NewReader(""))
			},
		})
		s := NewDynamic(client, Resource{Version: "v1", Name: "nodes"}, RESTOptions{ClusterScoped: true})
		s.resource.Scope = ScopeCluster
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.List(ctx, ListOptions{Continue: "next"})
			ended <- err
		}()
		synctest.Wait()
		go s.List(t.Context(), ListOptions{}) //nolint:errcheck // it ends with the test
		synctest.Wait()
		close(answer)
		cancel()
		synctest.Wait()
		select {
		case err := <-ended:
			if err == nil {
				t.Error("the list has no error")
			}
		default:
			t.Error("the list waits for the discovery of another one")
		}
	})
}
