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

// TestSecretsInJSONAreNotShared reads Secrets whose kind was given, or only the name of the
// resource, into maps and into a struct of a program. Neither the sources nor a Sharer, as for
// objects that a transform returns, share any of them.
func TestSecretsInJSONAreNotShared(t *testing.T) {
	for _, resource := range []Resource{
		{Version: "v1", Name: "secrets", Kind: "Secret", Scope: ScopeNamespaced},
		{Version: "v1", Name: "secrets", Kind: "Mine"},
		{Version: "v1", Kind: "Secret", Name: "hidden", Scope: ScopeNamespaced},
	} {
		client := serve(t, widgetsJSON(resource.Kind))
		maps := NewDynamic(client, resource, RESTOptions{})
		typed := NewTyped(client, resource, func() *gadget { return new(gadget) }, RESTOptions{})
		sharer := client.NewSharer(resource, Transport{})
		inMaps, inStructs := readAll(t, maps), readAll(t, typed)
		for i := range inMaps {
			sharer.Share(inMaps[i])
			sharer.Share(inStructs[i])
		}
		if stats := maps.DecodingStats(); stats.Unshared != 16 || stats.WhyUnshared == nil {
			t.Errorf("%v: %+v", resource, stats)
		}
		if kept := client.SharingStats(Transport{}).Kept; kept != 0 || sharer.Stats().Shared != 0 {
			t.Errorf("%v: %d are in the table, %+v", resource, kept, sharer.Stats())
		}
	}
	s := NewDynamic(nil, Resource{Version: "v1", Name: "secrets", Scope: ScopeNamespaced}, RESTOptions{})
	if stats := s.DecodingStats(); stats.WhyUnshared == nil {
		t.Errorf("a resource that is named secrets: %+v", stats)
	}
}
