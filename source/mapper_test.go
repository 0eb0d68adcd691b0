package source

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// oldMapper knows the name that widgets had.
type oldMapper struct {
	meta.RESTMapper
	resets int
}

func (m *oldMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return &meta.RESTMapping{
		Resource: schema.GroupVersionResource{Group: kind.Group, Version: versions[0], Resource: "old"},
		Scope:    meta.RESTScopeNamespace,
	}, nil
}

func (m *oldMapper) Reset() { m.resets++ }

// gadgets is a server of widgets under a name. Discovery may be refused.
type gadgets struct {
	name      string
	forbidden bool
	asked     []string // paths
}

func (w *gadgets) serve(t *testing.T, mapper meta.RESTMapper) (s *REST[*gadget]) {
	answer := func(r *http.Request) *http.Response {
		name := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/example.com/v1"), "/")
		w.asked = append(w.asked, name)
		switch {
		case name == "" && w.forbidden:
			return answerOf(403, jsonType, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
		case name == "":
			return answerOf(200, jsonType, strings.NewReader(`{"kind":"APIResourceList","apiVersion":"v1","resources":[{"name":"`+w.name+`","kind":"Widget","namespaced":true}]}`))
		case name != w.name:
			return answerOf(404, jsonType, strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
		case r.URL.Query().Get("watch") != "":
			return answerOf(200, jsonType, strings.NewReader(jsonFrame("ADDED", `{"apiVersion":"example.com/v1","kind":"Other","metadata":{"name":"a"}}`)))
		default:
			return answerOf(200, jsonType, strings.NewReader(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{},"items":[]}`))
		}
	}
	client, err := NewClient(&rest.Config{
		Host: "http://server.invalid", QPS: -1, Transport: roundTripFunc(func(r *http.Request) (*http.Response, error) {
			resp := answer(r)
			resp.Request = r
			return resp, nil
		}),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client.Mapper = mapper
	return NewTyped(client, Resource{Group: "example.com", Version: "v1", Kind: "Widget"}, func() *gadget { return new(gadget) }, RESTOptions{})
}

// TestAMapperThatWasWrong is reset, at most every ten seconds, and asked again.
func TestAMapperThatWasWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mapper := &oldMapper{}
		w := &gadgets{name: "new"}
		s := w.serve(t, mapper)
		for i, want := range []int{1, 1, 1, 2} {
			_, err := s.client.Resolve(t.Context(), s.asked)
			if err != nil || mapper.resets != want {
				t.Errorf("answer %d: %v, and the mapper was reset %d times, want %d", i, err, mapper.resets, want)
			}
			if i == 2 {
				time.Sleep(mapperRest)
			}
		}
	})
}

// TestAMapperAgainstTheServer: the name that the mapper knows is not served, and discovery is refused.
// The name is not asked for twice in a row.
func TestAMapperAgainstTheServer(t *testing.T) {
	w := &gadgets{name: "new", forbidden: true}
	s := w.serve(t, &oldMapper{})
	for i, test := range []struct {
		is    func(error) bool
		asked string
	}{
		{apierrors.IsNotFound, "old"}, {apierrors.IsForbidden, ""}, {apierrors.IsNotFound, "old"},
	} {
		if _, err := s.List(t.Context(), ListOptions{}); !test.is(err) || w.asked[len(w.asked)-1] != test.asked {
			t.Errorf("list %d: %v after requests of %q, want the last of %q", i, err, w.asked, test.asked)
		}
	}
}

// TestAWatchOfAnotherKind: the server is asked again which resource serves the kind.
func TestAWatchOfAnotherKind(t *testing.T) {
	w := &gadgets{name: "new"}
	s := w.serve(t, nil)
	stream, err := s.Watch(t.Context(), WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close() //nolint:errcheck // the body is the server's
	_, err = stream.Next()
	for err == nil {
		_, err = stream.Next()
	}
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("the watch ends with %v", err)
	}
	w.name = "later"
	if _, err := s.List(t.Context(), ListOptions{}); err != nil {
		t.Errorf("%v after requests of %q", err, w.asked)
	}
}
