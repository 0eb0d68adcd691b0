package source

import (
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

var podInJSON = jsonKindOf(corev1.SchemeGroupVersion.WithKind("Pod"))

// usualJSON is an object as servers send it, and unusualJSON are those that are left to the
// decoder.
const usualJSON = `{"apiVersion":"v1","kind":"Pod",` +
	`"metadata":{"name":"a","namespace":"ns","uid":"u ~","resourceVersion":"5","generation":3,` +
	`"labels":{"name":"b"}},"spec":{"a":[1,{"metadata":{}}]},"immutable":true,"n":-1.5e3}`

var unusualJSON = map[string]string{
	"no object":               `[]`,
	"nothing":                 ``,
	"a cut object":            usualJSON[:len(usualJSON)-1],
	"two objects":             usualJSON + usualJSON,
	"another kind":            strings.Replace(usualJSON, `"Pod"`, `"Node"`, 1),
	"another version":         strings.Replace(usualJSON, `"v1"`, `"v2"`, 1),
	"a kind that is null":     strings.Replace(usualJSON, `"Pod"`, `null`, 1),
	"two kinds":               strings.Replace(usualJSON, `"kind"`, `"kind":"Node","kind"`, 1),
	"no metadata":             `{"kind":"Pod"}`,
	"metadata twice":          strings.Replace(usualJSON, `"spec"`, `"metadata":{"name":"b"},"spec"`, 1),
	"metadata that is a list": `{"metadata":["name"]}`,
	"a name twice":            strings.Replace(usualJSON, `"uid"`, `"name":"b","uid"`, 1),
	"an escape in a name":     strings.Replace(usualJSON, `"a"`, `"\u0061"`, 1),
	"an escape in a field":    strings.Replace(usualJSON, `"uid"`, `"\u006eame":"b","uid"`, 1),
	"a name in another code":  strings.Replace(usualJSON, `"a"`, "\"\xff\"", 1),
	"a name that is a number": strings.Replace(usualJSON, `"a"`, `1`, 1),
	"no name":                 strings.Replace(usualJSON, `"name":"a",`, ``, 1),
	"no UID":                  strings.Replace(usualJSON, `"uid":"u ~",`, ``, 1),
	"no version":              strings.Replace(usualJSON, `"resourceVersion":"5",`, ``, 1),
	"no number":               strings.Replace(usualJSON, `3`, `3-`, 1),
	"no value":                strings.Replace(usualJSON, `true`, ``, 1),
}

func TestIdentityInJSON(t *testing.T) {
	withoutKind := strings.Replace(usualJSON, `"apiVersion":"v1","kind":"Pod",`, ``, 1)
	for _, object := range []string{usualJSON, withoutKind, " " + strings.ReplaceAll(usualJSON, ",", " ,\n\t") + " "} {
		id, ok := podInJSON.identify([]byte(object))
		got := fmt.Sprintf("%s/%s@%s %s", id.namespace, id.name, id.version, id.uid)
		if !ok || got != "ns/a@5 u ~" {
			t.Errorf("%s: read %s, %v", object, got, ok)
		}
	}
	for what, object := range unusualJSON {
		if object == usualJSON {
			t.Errorf("%s: the object is a usual one", what)
		}
		if id, ok := podInJSON.identify([]byte(object)); ok {
			t.Errorf("%s: read %+v", what, id)
		}
	}
}

// FuzzIdentityInJSON compares the identity in any bytes with that of the object that the API
// machinery decodes from them, if it does.
func FuzzIdentityInJSON(f *testing.F) {
	f.Add([]byte(usualJSON))
	for _, object := range unusualJSON {
		f.Add([]byte(object))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		id, ok := podInJSON.identify(data)
		if !ok {
			return
		}
		var object map[string]any
		if utiljson.Unmarshal(data, &object) != nil {
			return // the rest of the object is not checked
		}
		u := unstructured.Unstructured{Object: object}
		if u.GetName() != string(id.name) || u.GetNamespace() != string(id.namespace) || string(u.GetUID()) != string(id.uid) || u.GetResourceVersion() != string(id.version) {
			t.Errorf("%q: read %s/%s, version %s, UID %s; decoded %v", data, id.namespace, id.name, id.version, id.uid, object["metadata"])
		}
		if kind := u.GroupVersionKind(); kind.Kind != "" && kind.Kind != "Pod" || kind.Version != "" && kind.Version != "v1" {
			t.Errorf("%q: a %v was taken for a Pod", data, kind)
		}
	})
}

// widgetJSON is a widget in JSON.
func widgetJSON(name, version string) string {
	return fmt.Sprintf(`{"apiVersion":"shop.example.com/v1","kind":"Widget","metadata":{"name":%q,"namespace":"default","uid":"uid-%s","resourceVersion":%q,"generation":1},"spec":{"n":1}}`, name, name, version)
}

var widgets = Resource{Group: "shop.example.com", Version: "v1", Name: "widgets", Kind: "Widget", Scope: ScopeNamespaced}

func TestCachedObjectsInJSONAreNotDecoded(t *testing.T) {
	c := cache{versions: map[string]string{"default/a": "3", "default/b": "3", "default/c": "5"}}
	objects := widgetJSON("a", "3") + "," + widgetJSON("b", "4") + "," + widgetJSON("c", "5")
	body := `{"kind":"WidgetList","apiVersion":"shop.example.com/v1","metadata":{"resourceVersion":"9"},"items":[` + objects + `]}`
	s := NewDynamic(serve(t, answerWith(200, jsonType, body)), widgets, RESTOptions{})
	page, err := s.List(t.Context(), ListOptions{IsCached: c.isCached})
	if err != nil {
		t.Fatal(err)
	}
	wantStrings(t, "asked", c.asked, "default/a 3 uid-a", "default/b 4 uid-b", "default/c 5 uid-c")
	wantStrings(t, "yielded", keysOf(page.Items, keyOfItem), "default/b")
	if stats := s.DecodingStats(); stats.Shared != 1 || page.Version != "9" {
		t.Errorf("%+v decoded, at version %s", stats, page.Version)
	}
}

// TestCachedObjectsOfAStreamInJSON has cached all of a streamed list but one, and nothing after it.
func TestCachedObjectsOfAStreamInJSON(t *testing.T) {
	end := `{"apiVersion":"shop.example.com/v1","kind":"Widget","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`
	body := jsonFrame("ADDED", widgetJSON("a", "3")) + jsonFrame("ADDED", widgetJSON("b", "4")) + jsonFrame("ADDED", widgetJSON("c", "5")) +
		jsonFrame("BOOKMARK", end) + jsonFrame("ADDED", widgetJSON("a", "3"))
	s := NewDynamic(serve(t, answerWith(200, jsonType, body)), widgets, RESTOptions{})
	c := cache{versions: map[string]string{"default/a": "3", "default/c": "5"}}
	events, err := readAllEvents(t, s, WatchOptions{SendInitialEvents: true, IsCached: c.isCached})
	if err != io.EOF {
		t.Error(err)
	}
	wantStrings(t, "yielded", keysOf(events, keyOfEvent), "ADDED default/b", InitialEventsEnd.String()+" ", "ADDED default/a")
	wantStrings(t, "asked", c.asked, "default/a 3 uid-a", "default/b 4 uid-b", "default/c 5 uid-c")
}
