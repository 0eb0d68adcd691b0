package source

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestP20_AnUndecodableObjectIsAnItem has a JSON list and a watch of pods, of which one is not what
// a Pod should be. Only what is not JSON ends them.
func TestP20_AnUndecodableObjectIsAnItem(t *testing.T) {
	const metadata = `"metadata":{"namespace":"default","name":"b","uid":"u","resourceVersion":"4"}`
	for name, test := range map[string]struct {
		object    string
		key, says string // of the item; no key if its identity cannot be read
		framing   bool   // it is an error of the request
	}{
		"a number for a text":        {`{"kind":"Pod","apiVersion":"v1",` + metadata + `,"spec":{"nodeName":7}}`, "default/b", "spec.nodeName", false},
		"a type with its decoder":    {`{` + metadata + `,"status":{"startTime":"soon"}}`, "default/b", "status.startTime", false},
		"in a list of structs":       {`{` + metadata + `,"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"much"}}}]}}`, "default/b", "spec.containers.resources.limits", false},
		"metadata of another type":   {`{` + metadata[:len(metadata)-1] + `,"labels":5}}`, "default/b", "labels", false},
		"no identity":                {`{"metadata":{"name":7}}`, "", "metadata.name", false},
		"no object":                  {`{"metadata":5}`, "", "metadata", false},
		"another kind":               {`{"kind":"Node","apiVersion":"v1",` + metadata + `}`, "", "Node", false},
		"no JSON":                    {`{` + metadata + `,"spec":{"nodeName":nil}}`, "", "", true},
		"no JSON in another bracket": {`{` + metadata + `,"spec":{"nodeName" 7}}`, "", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(how string, items []Item[*corev1.Pod], err error) {
				t.Helper()
				if test.framing {
					if !errors.Is(err, ErrMalformed) {
						t.Errorf("%s: got %v, want %v", how, err, ErrMalformed)
					}
					return
				}
				if len(items) != 3 || items[0].Key != "default/a" || items[2].Key != "default/c" {
					t.Fatalf("%s: got %v, %v; want three items", how, items, err)
				}
				bad := items[1]
				if bad.Key != test.key || bad.Err == nil || !strings.Contains(bad.Err.Error(), test.says) {
					t.Errorf("%s: got the item %q with %v, want %q that says %q", how, bad.Key, bad.Err, test.key, test.says)
				}
				if bad.IsUndecodable() != (test.key != "") || test.key != "" && (bad.Version != "4" || bad.UID != "u") {
					t.Errorf("%s: its identity is %q at %q; undecodable: %v", how, bad.UID, bad.Version, bad.IsUndecodable())
				}
			}
			a, c := podJSON("a", "3"), podJSON("c", "5")
			list := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + strings.Join([]string{a, test.object, c}, ",") + `]}`
			page, err := NewTyped(serve(t, answerWith(200, jsonType, list)), pods, newPod, RESTOptions{}).List(t.Context(), ListOptions{})
			check("list", page.Items, err)

			events, err := readStream(t, answerWith(200, jsonType, jsonFrame("ADDED", a)+jsonFrame("MODIFIED", test.object)+jsonFrame("ADDED", c)))
			var items []Item[*corev1.Pod]
			for _, e := range events {
				items = append(items, e.Item)
			}
			check("watch", items, err)
		})
	}
}

// TestP20_AnUndecodableObjectInProtobuf is an item if its metadata can be read, and ends the
// request otherwise: nothing else shows that the bytes are an object.
func TestP20_AnUndecodableObjectInProtobuf(t *testing.T) {
	p := pod("b", "4")
	p.UID = "u"
	whole, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		message string
		item    bool
	}{
		"a field of another wire type": {string(whole) + "\x18\x07", true}, // status as a number
		"junk":                         {"\xff\xff\xff", false},
	} {
		t.Run(name, func(t *testing.T) {
			body := watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", encoded(test.message))) + watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", pod("c", "5")))
			events, err := readStream(t, answerWith(200, protobufType+";stream=watch", body))
			if !test.item {
				if len(events) != 0 || !errors.Is(err, ErrMalformed) {
					t.Errorf("got %v, %v", events, err)
				}
				return
			}
			if len(events) != 2 || !events[0].IsUndecodable() || events[0].Key != "default/b" || events[0].Version != "4" || events[1].Key != "default/c" {
				t.Errorf("got %v, %v", events, err)
			}
		})
	}
}
