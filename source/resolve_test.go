package source

import (
	"errors"
	"strings"
	"testing"

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
