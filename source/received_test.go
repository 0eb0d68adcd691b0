package source

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestBytesReceived counts the bytes of the answers to a list, to a watch, and to a list that the
// server refuses. Discovery does not count.
func TestBytesReceived(t *testing.T) {
	const list = `{"kind":"PodList","apiVersion":"v1","items":[]}`
	refusal, events := "no", jsonFrame("ADDED", podJSON("a", "3"))+jsonFrame("ADDED", podJSON("b", "4"))
	refused := false
	client := paths(t, map[string]func(*http.Request) *http.Response{
		"/api/v1": func(*http.Request) *http.Response {
			return answeredInJSON(strings.NewReader(podsInDiscovery))
		},
		"/api/v1/pods": func(r *http.Request) *http.Response {
			switch {
			case refused:
				return answerOf(http.StatusForbidden, "text/plain", strings.NewReader(refusal))
			case r.URL.Query().Get("watch") != "":
				return answeredInJSON(strings.NewReader(events))
			}
			return answeredInJSON(strings.NewReader(list))
		},
	})
	s := NewTyped(client, Resource{Version: "v1", Kind: "Pod"}, func() *corev1.Pod { return new(corev1.Pod) }, RESTOptions{})
	want := 0
	expect := func(what, answer string) {
		t.Helper()
		if want += len(answer); s.BytesReceived() != uint64(want) {
			t.Errorf("after %s, %d bytes were received, want %d", what, s.BytesReceived(), want)
		}
	}
	if _, err := s.List(t.Context(), ListOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("a list", list)
	stream, err := s.Watch(t.Context(), WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = stream.Next()
	}
	expect("a watch", events)
	refused = true
	if _, err := s.List(t.Context(), ListOptions{}); err == nil {
		t.Error("a refused list has no error")
	}
	expect("a refused list", refusal)
}
