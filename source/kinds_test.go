package source

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// TestListKinds lists custom objects whose lists are called anything, in maps and in a Go
// type. Other documents are refused.
func TestListKinds(t *testing.T) {
	const kept = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`
	for _, tt := range []struct {
		name, body string
		items      int // -1 for an error
	}{
		{"usual", `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{},"items":[` + kept + `]}`, 1},
		{"usual without items", `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{},"items":null}`, 0},
		{"the plural", `{"apiVersion":"example.com/v1","kind":"Widgets","metadata":{},"items":[` + kept + `]}`, 1},
		{"the items first", `{"items":[` + kept + `],"kind":"Manifest","apiVersion":"example.com/v1","metadata":{}}`, 1},
		{"another alphabet", `{"apiVersion":"example.com/v1","kind":"Bündel","metadata":{},"items":[]}`, 0},
		{"one object", kept, -1},
		{"one object with items", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"items":[` + kept + `]}`, -1},
		{"a discovery document", `{"apiVersion":"v1","kind":"APIResourceList","groupVersion":"example.com/v1","resources":[]}`, -1},
		{"a Status", `{"apiVersion":"v1","kind":"Status","status":"Failure"}`, -1},
		{"without a kind", `{"items":[` + kept + `]}`, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := serve(t, answerWith(200, jsonType, tt.body))
			resource := Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget"}
			check := func(items int, err error) {
				if (err != nil) != (tt.items < 0) || err == nil && items != tt.items {
					t.Errorf("%d items, %v", items, err)
				}
			}
			maps, err := NewDynamic(client, resource, RESTOptions{}).List(t.Context(), ListOptions{Limit: 500})
			check(len(maps.Items), err)
			typed, err := NewTyped(client, resource, func() *gadget { return new(gadget) }, RESTOptions{}).List(t.Context(), ListOptions{Limit: 500})
			check(len(typed.Items), err)
			if resource.Kind = ""; tt.name != "one object with items" { // it may be a list then
				maps, err = NewDynamic(client, resource, RESTOptions{}).List(t.Context(), ListOptions{})
				check(len(maps.Items), err)
			}
		})
	}
}

// TestProtobufThatWasNotAskedFor answers in protobuf where the Go type is only read from JSON.
func TestProtobufThatWasNotAskedFor(t *testing.T) {
	envelope := func(kind, content string) string {
		return string(protobufMagic) + field(1, field(1, "example.com/v1")+field(2, kind)) + field(2, content)
	}
	object := field(1, field(1, "a"))
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		contentType, body := protobufType, envelope("WidgetList", field(2, object))
		if r.URL.Query().Has("watch") {
			frame := field(1, "ADDED") + field(2, field(1, envelope("Widget", object)))
			contentType, body = protobufType+";stream=watch", "\x00\x00\x00"+string(rune(len(frame)))+frame
		}
		answerWith(200, contentType, body)(w, r)
	})
	resource := Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: "Widget"}
	s := NewTyped(client, resource, func() *gadget { return new(gadget) }, RESTOptions{})
	if page, err := s.List(t.Context(), ListOptions{}); !errors.Is(err, ErrMalformed) {
		t.Errorf("listed %+v, %v", page, err)
	}
	stream, err := s.Watch(t.Context(), WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close() //nolint:errcheck // the test is over
	if events, err := stream.Next(); !errors.Is(err, ErrMalformed) {
		t.Errorf("watched %+v, %v", events, err)
	}
}

// TestScopeThatChanges has a definition come back with another scope, after it had one in
// which the source cannot list.
func TestScopeThatChanges(t *testing.T) {
	namespaced := false
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"5"},"items":[]}`
		if !strings.HasSuffix(r.URL.Path, "/widgets") {
			body = fmt.Sprintf(`{"kind":"APIResourceList","apiVersion":"v1","resources":[{"name":"widgets","kind":"Widget","namespaced":%v}]}`, namespaced)
		}
		answerWith(200, jsonType, body)(w, r)
	})
	s := NewDynamic(client, Resource{Group: "example.com", Version: "v1", Name: "widgets"}, RESTOptions{Namespace: "default"})
	if _, err := s.List(t.Context(), ListOptions{}); !errors.Is(err, ErrWrongScope) {
		t.Fatalf("the error is %v", err)
	}
	if err := openAndClose(s.Watch(t.Context(), WatchOptions{})); err == nil || !strings.HasPrefix(err.Error(), "watch ") {
		t.Errorf("the error of a watch is %v", err)
	}
	namespaced = true
	if _, err := s.List(t.Context(), ListOptions{}); err != nil {
		t.Errorf("with namespaces: %v", err)
	}
	s = NewDynamic(client, s.asked, RESTOptions{ClusterScoped: true})
	if _, err := s.List(t.Context(), ListOptions{}); !errors.Is(err, ErrNamespaced) {
		t.Errorf("cluster-scoped: %v, want %v", err, ErrNamespaced)
	}
	namespaced = false
	if _, err := s.List(t.Context(), ListOptions{}); err != nil {
		t.Errorf("cluster-scoped again: %v", err)
	}
	namespaced = true // the next page does not ask for it
	if _, err := s.List(t.Context(), ListOptions{Continue: "next"}); err != nil {
		t.Errorf("the next page: %v", err)
	}
}

// TestOfList has lists say the kind of their items, or not.
func TestOfList(t *testing.T) {
	const bare, other = `{"metadata":{"name":"a"}}`, `{"apiVersion":"example.com/v1","kind":"Other","metadata":{"name":"a"}}`
	for _, tt := range []struct {
		name, wants, apiVersion, list, item, kind string
	}{
		{"from the list", "", "example.com/v1", "WidgetList", bare, "Widget"},
		{"known", "Widget", "example.com/v1", "GadgetList", bare, "Widget"},
		{"the item says it", "", "example.com/v1", "WidgetList", other, "Other"},
		{"a list of anything", "", "example.com/v1", "List", bare, ""},
		{"a list of another version", "", "example.com/v2", "WidgetList", bare, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{},"items":[%s]}`, tt.apiVersion, tt.list, tt.item)
			resource := Resource{Group: "example.com", Version: "v1", Name: "widgets", Kind: tt.wants}
			page, err := NewDynamic(serve(t, answerWith(200, jsonType, body)), resource, RESTOptions{}).List(t.Context(), ListOptions{})
			if err != nil || len(page.Items) != 1 || (page.Items[0].Err != nil) != (tt.kind == "") {
				t.Fatalf("%+v, %v", page, err)
			}
			obj := page.Items[0].Object
			if tt.kind != "" && (obj.GetKind() != tt.kind || obj.GetAPIVersion() != "example.com/v1") {
				t.Errorf("the item is a %v, want a %s", obj.GroupVersionKind(), tt.kind)
			}
		})
	}
}

// A gadget is a custom resource with a Go type.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int64 `json:"size"`
	} `json:"spec"`
}

func (g *gadget) DeepCopyObject() runtime.Object {
	out := *g
	out.ObjectMeta = *g.ObjectMeta.DeepCopy()
	return &out
}
