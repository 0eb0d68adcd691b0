package source

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	if _, err := client.Resolve(t.Context(), Resource{Group: "example.com", Version: "v1", Kind: "Gadget"}); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "does not serve Gadget.v1.example.com") {
		t.Errorf("Gadget: %v", err)
	}
	s := NewDynamic(client, Resource{Group: "example.com", Version: "v1", Name: "planets"}, RESTOptions{Namespace: "default"})
	if _, err := s.List(t.Context(), ListOptions{}); !errors.Is(err, ErrWrongScope) {
		t.Errorf("planets in a namespace: %v", err)
	}
	if _, err := serve(t, answerWith(200, jsonType, "<html>")).Resolve(t.Context(), widget); !errors.Is(err, ErrMalformed) {
		t.Errorf("a page of a proxy: %v, want %v", err, ErrMalformed)
	}
}

func TestNilConfig(t *testing.T) {
	if _, err := NewClient(nil); err == nil || !strings.Contains(err.Error(), "clientcmd") {
		t.Errorf("got %v, want an error that says what to do", err)
	}
}
