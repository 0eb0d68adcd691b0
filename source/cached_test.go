package source

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// withUID returns a pod that has a UID.
func withUID(name, version string) *corev1.Pod {
	p := replica(name, version)
	p.UID = types.UID("uid-" + name)
	return p
}

// cache has some pods, and notes the questions.
type cache struct {
	versions map[string]string // by key
	asked    []string
}

func (c *cache) isCached(key, version, uid string) bool {
	c.asked = append(c.asked, strings.Clone(key+" "+version+" "+uid))
	return c.versions[key] == version
}

func keysOf[E any](of []E, key func(E) string) (keys []string) {
	for _, e := range of {
		keys = append(keys, key(e))
	}
	return keys
}

func keyOfItem[T any](i Item[T]) string   { return i.Key }
func keyOfEvent[T any](e Event[T]) string { return e.Type.String() + " " + e.Key }

func wantStrings(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, want)
	}
}

// TestCachedObjectsOfAListAreNotDecoded lists five pods, of which three are cached, one of
// them without a namespace. An object without a UID is never cached.
func TestCachedObjectsOfAListAreNotDecoded(t *testing.T) {
	nobody := pod("d", "6")
	nobody.UID = ""
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "next"}, Items: []corev1.Pod{
		*withUID("a", "3"), *withUID("b", "4"), *withUID("c", "5"), *nobody, *withUID("e", "7"),
	}}
	list.Items[4].Namespace = ""
	s := NewTyped(serve(t, answerWith(200, protobufType, string(envelopeOf(t, "v1", "PodList", list)))), pods, newPod, RESTOptions{})
	c := &cache{versions: map[string]string{
		"default/a": "3", "default/b": "3", "default/c": "5", "default/d": "6", "e": "7",
	}}
	page, err := s.List(t.Context(), ListOptions{IsCached: c.isCached})
	if err != nil {
		t.Fatal(err)
	}
	wantStrings(t, "asked", c.asked,
		"default/a 3 uid-a", "default/b 4 uid-b", "default/c 5 uid-c", "e 7 uid-e")
	wantStrings(t, "yielded", keysOf(page.Items, keyOfItem), "default/b", "default/d")
	if page.Version != "9" || page.Continue != "next" {
		t.Errorf("page %+v", page)
	}
	if stats := s.DecodingStats(); stats.Shared != 2 {
		t.Errorf("decoded were %+v, want 2", stats)
	}
}

// Cached metadata is not decoded, and decoded metadata has its kind unless it is not wanted.
func TestCachedMetadataIsNotDecoded(t *testing.T) {
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	for _, name := range []string{"a", "b"} {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: "3", UID: types.UID("uid-" + name)},
		})
	}
	const version, kind = "meta.k8s.io/v1", "PartialObjectMetadataList"
	list.TypeMeta = metav1.TypeMeta{APIVersion: version, Kind: kind}
	inProtobuf := answerWith(200, protobufType, string(envelopeOf(t, version, kind, list)))
	inJSON := answerWith(200, jsonType, jsonOf(t, list))
	for i, answer := range []http.HandlerFunc{inProtobuf, inProtobuf, inJSON, inJSON} {
		noKind := i%2 == 1
		s := NewMetadata(serve(t, answer), pods, RESTOptions{NoKind: noKind})
		c := &cache{versions: map[string]string{"default/a": "3"}}
		page, err := s.List(t.Context(), ListOptions{IsCached: c.isCached})
		if err != nil {
			t.Fatal(err)
		}
		wantStrings(t, "asked", c.asked, "default/a 3 uid-a", "default/b 3 uid-b")
		if len(page.Items) != 1 || page.Items[0].Object.Name != "b" {
			t.Fatalf("yielded %+v, want b", page.Items)
		}
		if kind := page.Items[0].Object.Kind; kind != "Pod" && !noKind || kind != "" && noKind {
			t.Errorf("answer %d, NoKind %v: the kind is %q", i, noKind, kind)
		}
	}
}

// initialEvents is a streamed list of pods, its end, and more events.
func initialEvents(t *testing.T) string {
	end := pod("", "9")
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	frame := func(eventType string, p *corev1.Pod) string {
		return watchFrame(t, eventType, envelopeOf(t, "v1", "Pod", p))
	}
	return frame("ADDED", withUID("a", "3")) + frame("ADDED", withUID("b", "4")) +
		watchFrame(t, "ADDED", envelopeOf(t, "v1", "Node", withUID("c", "5"))) +
		frame("ADDED", withUID("c", "5")) + frame("BOOKMARK", end) + frame("ADDED", withUID("a", "3"))
}

func TestCachedObjectsOfAStreamedListAreNotDecoded(t *testing.T) {
	for name, test := range map[string]struct {
		options WatchOptions
		asked   []string
		events  []string
		decoded int64
	}{
		"streamed list": {
			WatchOptions{SendInitialEvents: true},
			[]string{"default/a 3 uid-a", "default/b 4 uid-b", "default/c 5 uid-c"},
			[]string{"ADDED default/b", "ADDED ", "INITIAL_EVENTS_END ", "ADDED default/a"}, 2,
		},
		"watch": {
			WatchOptions{Version: "1"}, nil,
			[]string{"ADDED default/a", "ADDED default/b", "ADDED ", "ADDED default/c", "INITIAL_EVENTS_END ", "ADDED default/a"}, 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewTyped(serve(t, answerWith(200, protobufType+";stream=watch", initialEvents(t))), pods, newPod, RESTOptions{})
			c := &cache{versions: map[string]string{"default/a": "3", "default/c": "5"}}
			test.options.IsCached = c.isCached
			events, err := readAllEvents(t, s, test.options)
			if err != io.EOF {
				t.Error(err)
			}
			wantStrings(t, "asked", c.asked, test.asked...)
			wantStrings(t, "events", keysOf(events, keyOfEvent), test.events...)
			if stats := s.DecodingStats(); stats.Shared != test.decoded {
				t.Errorf("decoded were %+v, want %d", stats, test.decoded)
			}
		})
	}
}

// TestCachedAllocatesNothing: to recognise a cached object costs no allocation.
func TestCachedAllocatesNothing(t *testing.T) {
	raw := marshal(t, withUID("a", "3"))
	filter := &filter{isCached: func(key, version, uid string) bool { return key == "default/a" && version == "3" && uid == "uid-a" }, identify: identify}
	if n := testing.AllocsPerRun(100, func() {
		if !filter.drops(raw) {
			t.Error("it is not dropped")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestMalformedObjectAfterCachedOnes ends the stream where it stands.
func TestMalformedObjectAfterCachedOnes(t *testing.T) {
	body := watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", withUID("a", "3"))) +
		watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", withUID("b", "4"))) + string(delimited("\x0a\x7f"))
	s := NewTyped(serve(t, answerWith(200, protobufType+";stream=watch", body)), pods, newPod, RESTOptions{})
	c := &cache{versions: map[string]string{"default/a": "3"}}
	events, err := readAllEvents(t, s, WatchOptions{SendInitialEvents: true, IsCached: c.isCached})
	wantStrings(t, "before it", keysOf(events, keyOfEvent), "ADDED default/b")
	if !errors.Is(err, ErrMalformed) {
		t.Errorf("it ends with %v", err)
	}
}
