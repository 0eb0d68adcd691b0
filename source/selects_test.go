package source

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selection selects the objects with some UIDs, and notes the questions.
type selection struct {
	uids  string
	asked []string
}

func (s *selection) selects(uid, namespace string) bool {
	s.asked = append(s.asked, strings.Clone(uid+" "+namespace))
	return strings.Contains(s.uids, uid)
}

// TestS7_ShardSelectors sends a shard selector with a list and a watch, and reads the shardInfo of
// a list.
func TestS7_ShardSelectors(t *testing.T) {
	const selector = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
	for _, info := range []*metav1.ShardInfo{nil, {Selector: selector}} {
		list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9", ShardInfo: info}}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		inJSON, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		for contentType, body := range map[string]string{
			protobufType: string(envelopeOf(t, "v1", "PodList", list)), jsonType: string(inJSON),
		} {
			var asked []string
			s := NewTyped(serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.Query().Get("shardSelector"))
				answerWith(200, contentType, body)(w, r)
			}), pods, newPod, RESTOptions{})
			page, err := s.List(t.Context(), ListOptions{ShardSelector: selector})
			if err != nil || page.Sharded != (info != nil) || page.Version != "9" {
				t.Errorf("%s: the page of a list with %v is %+v, %v", contentType, info, page, err)
			}
			if _, err := s.Watch(t.Context(), WatchOptions{ShardSelector: selector}); err == nil {
				wantStrings(t, "asked", asked, selector, selector)
			} else {
				t.Error(err)
			}
		}
	}
}

// answers are those of a list and a watch of the pods a, b and c in both encodings. d has no UID.
func answers(t *testing.T) map[string]func(watch bool) (contentType, body string) {
	nobody := pod("d", "6")
	nobody.UID = ""
	all := []*corev1.Pod{withUID("a", "3"), withUID("b", "4"), withUID("c", "5"), nobody}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
	inProtobuf, inJSON, items := "", "", []string{}
	for i, p := range all {
		list.Items = append(list.Items, *p)
		eventType := []string{"ADDED", "MODIFIED", "DELETED", "ADDED"}[i]
		inProtobuf += watchFrame(t, eventType, envelopeOf(t, "v1", "Pod", p))
		text := fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","uid":%q,"resourceVersion":%q}}`,
			p.Name, p.UID, p.ResourceVersion)
		inJSON += jsonFrame(eventType, text)
		items = append(items, text)
	}
	return map[string]func(bool) (string, string){
		"protobuf": func(watch bool) (string, string) {
			if watch {
				return protobufType + ";stream=watch", inProtobuf
			}
			return protobufType, string(envelopeOf(t, "v1", "PodList", list))
		},
		"json": func(watch bool) (string, string) {
			if watch {
				return jsonType, inJSON
			}
			return jsonType, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` +
				strings.Join(items, ",") + "]}"
		},
	}
}

// TestS6_UnselectedObjectsAreNotDecoded lists and watches four pods, of which one is selected and
// one cannot be told before it is decoded.
func TestS6_UnselectedObjectsAreNotDecoded(t *testing.T) {
	for name, answer := range answers(t) {
		t.Run(name, func(t *testing.T) {
			selected := &selection{uids: "uid-b"}
			contentType, body := answer(false)
			s := NewTyped(serve(t, answerWith(200, contentType, body)), pods, newPod, RESTOptions{})
			page, err := s.List(t.Context(), ListOptions{Selects: selected.selects})
			if err != nil {
				t.Fatal(err)
			}
			wantStrings(t, "asked of the list", selected.asked, "uid-a default", "uid-b default", "uid-c default")
			wantStrings(t, "the list", keysOf(page.Items, keyOfItem), "default/b", "default/d")
			if page.Version != "9" {
				t.Errorf("the list has version %s", page.Version)
			}

			selected.asked = nil
			contentType, body = answer(true)
			s = NewTyped(serve(t, answerWith(200, contentType, body)), pods, newPod, RESTOptions{})
			events, err := readAllEvents(t, s, WatchOptions{Version: "1", Selects: selected.selects})
			if err != io.EOF {
				t.Error(err)
			}
			wantStrings(t, "asked of the watch", selected.asked, "uid-a default", "uid-b default", "uid-c default")
			wantStrings(t, "the watch", keysOf(events, func(e Event[*corev1.Pod]) string {
				return fmt.Sprintf("%v %s %s %t", e.Type, e.Key, e.Version, e.Unselected)
			}), "ADDED  3 true", "MODIFIED default/b 4 false", "DELETED  5 true", "ADDED default/d 6 false")
			if stats := s.DecodingStats(); stats.Shared != 2 {
				t.Errorf("%d objects were decoded, want 2", stats.Shared)
			}
		})
	}
}

// TestS6_UnselectedObjectsOfAStreamedList streams a list, of which cached and unselected objects
// are left out, and a change after it.
func TestS6_UnselectedObjectsOfAStreamedList(t *testing.T) {
	s := NewTyped(serve(t, answerWith(200, protobufType+";stream=watch", initialEvents(t))), pods, newPod, RESTOptions{})
	c, selected := &cache{versions: map[string]string{"default/c": "5"}}, &selection{uids: "uid-b uid-c"}
	events, err := readAllEvents(t, s, WatchOptions{
		SendInitialEvents: true, IsCached: c.isCached, Selects: selected.selects,
	})
	if err != io.EOF {
		t.Error(err)
	}
	wantStrings(t, "cached", c.asked, "default/b 4 uid-b", "default/c 5 uid-c")
	wantStrings(t, "events", keysOf(events, func(e Event[*corev1.Pod]) string {
		return fmt.Sprintf("%s %t", keyOfEvent(e), e.Unselected)
	}), "ADDED default/b false", "ADDED  false", "INITIAL_EVENTS_END  false", "ADDED  true")
}
