package source

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// widgetsJSON answers a list with eight custom resources, and a watch with as many.
func widgetsJSON(kind string) http.HandlerFunc {
	var items, events []string
	for i := range 8 {
		item := fmt.Sprintf(`{"apiVersion":"v1","kind":"%s","metadata":{"namespace":"default","name":"w-%d","resourceVersion":"3"},"spec":{"color":"blue","sizes":[{"a":1},{"a":2}]}}`, kind, i)
		items = append(items, strings.Replace(item, `"apiVersion":"v1","kind":"`+kind+`",`, "", 1))
		events = append(events, jsonFrame("ADDED", item))
	}
	list := `{"apiVersion":"v1","kind":"` + kind + `List","metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `]}`
	return func(w http.ResponseWriter, r *http.Request) {
		body := list
		if r.URL.Query().Get("watch") == "true" {
			body = strings.Join(events, "")
		}
		answerWith(200, jsonType, body)(w, r)
	}
}

// TestMapsShareWhatTheyHaveInCommon reads a list and a watch with each kind of sharing.
func TestMapsShareWhatTheyHaveInCommon(t *testing.T) {
	for sharing, want := range map[Sharing]struct {
		values, strings bool
		stats           DecodingStats
	}{
		ShareAll:     {true, true, DecodingStats{Shared: 16}},
		ShareStrings: {false, true, DecodingStats{Shared: 16}},
		ShareNothing: {false, false, DecodingStats{Unshared: 16}},
	} {
		t.Run(fmt.Sprint(sharing), func(t *testing.T) {
			client := serve(t, widgetsJSON("Widget"))
			s := NewDynamic(client, Resource{Version: "v1", Name: "widgets", Kind: "Widget", Scope: ScopeNamespaced}, RESTOptions{Transport: Transport{Sharing: sharing}})
			all := readAll(t, s)
			if len(all) != 16 {
				t.Fatalf("read %d objects", len(all))
			}
			for i, pair := range [][2]int{{6, 7}, {7, 14}, {14, 15}} {
				a, b := all[pair[0]], all[pair[1]]
				if a.GetKind() != "Widget" || b.GetKind() != "Widget" || a.GetName() == b.GetName() {
					t.Errorf("pair %d: %v and %v", i, a, b)
				}
				spec := func(u *unstructured.Unstructured) unsafe.Pointer {
					return reflect.ValueOf(u.Object["spec"]).UnsafePointer()
				}
				color := func(u *unstructured.Unstructured) *byte {
					s, _, _ := unstructured.NestedString(u.Object, "spec", "color")
					return unsafe.StringData(s)
				}
				if (spec(a) == spec(b)) != want.values || (color(a) == color(b)) != want.strings {
					t.Errorf("pair %d: in common are spec: %v, color: %v", i, spec(a) == spec(b), color(a) == color(b))
				}
			}
			stats := s.DecodingStats()
			if (stats.WhyUnshared != nil) != (sharing == ShareNothing) {
				t.Errorf("why it is unshared: %v", stats.WhyUnshared)
			}
			if stats.WhyUnshared = nil; stats != want.stats {
				t.Errorf("counted %+v, want %+v", stats, want.stats)
			}
		})
	}
}

// TestSecretsAsMapsAreNotShared reads Secrets whose kind was given, or only the name of
// the resource.
func TestSecretsAsMapsAreNotShared(t *testing.T) {
	for _, resource := range []Resource{
		{Version: "v1", Name: "secrets", Kind: "Secret", Scope: ScopeNamespaced},
		{Version: "v1", Name: "secrets", Kind: "Secret"},
		{Version: "v1", Kind: "Secret", Name: "hidden", Scope: ScopeNamespaced},
	} {
		client := serve(t, widgetsJSON("Secret"))
		s := NewDynamic(client, resource, RESTOptions{})
		if got := len(readAll(t, s)); got != 16 {
			t.Fatalf("read %d objects", got)
		}
		if stats := s.DecodingStats(); stats.Unshared != 16 || stats.WhyUnshared == nil || client.SharingStats(Transport{}).Kept != 0 {
			t.Errorf("%v: %+v, in the table %+v", resource, stats, client.SharingStats(Transport{}))
		}
	}
	client := serve(t, widgetsJSON("Secret"))
	s := NewDynamic(client, Resource{Version: "v1", Name: "secrets", Scope: ScopeNamespaced}, RESTOptions{})
	if stats := s.DecodingStats(); stats.WhyUnshared == nil {
		t.Errorf("a resource that is named secrets: %+v", stats)
	}
}

// TestSecretsInAStructOfAProgramAreNotShared: what is a Secret is said by the resource and the
// kind, and not by the Go type that JSON is decoded into, nor by what a transform returns.
func TestSecretsInAStructOfAProgramAreNotShared(t *testing.T) {
	for _, resource := range []Resource{
		{Version: "v1", Name: "secrets", Kind: "Secret", Scope: ScopeNamespaced},
		{Version: "v1", Name: "secrets", Kind: "Mine", Scope: ScopeNamespaced},
		{Version: "v1", Kind: "Secret", Name: "hidden", Scope: ScopeNamespaced},
	} {
		client := serve(t, widgetsJSON(resource.Kind))
		s := NewTyped(client, resource, func() *gadget { return new(gadget) }, RESTOptions{})
		page, err := s.List(t.Context(), ListOptions{})
		if err != nil || len(page.Items) != 8 {
			t.Fatalf("%d items, %v", len(page.Items), err)
		}
		sharer := client.NewSharer(resource, Transport{})
		for _, item := range page.Items {
			sharer.Share(item.Object)
		}
		if kept := client.SharingStats(Transport{}).Kept; kept != 0 || sharer.Stats().Shared != 0 {
			t.Errorf("%v: %d are in the table, %+v", resource, kept, sharer.Stats())
		}
	}
}
