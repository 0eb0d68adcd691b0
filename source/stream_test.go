package source

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readAllEvents reads a watch to its end, and returns the error that it ended with.
func readAllEvents[T Object](t *testing.T, s *REST[T], o WatchOptions) (events []Event[T], err error) {
	t.Helper()
	stream, err := s.Watch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for {
		batch, err := stream.Next()
		if err != nil {
			if _, again := stream.Next(); again == nil || again.Error() != err.Error() {
				t.Errorf("after the error %v, Next returns %v", err, again)
			}
			return events, err
		}
		events = append(events, batch...)
	}
}

// readStream reads a watch of pods to its end.
func readStream(t *testing.T, handle http.HandlerFunc) (events []Event[*corev1.Pod], err error) {
	t.Helper()
	o := RESTOptions{Transport: Transport{MaxFrameBytes: 10_000}}
	return readAllEvents(t, NewTyped(serve(t, handle), pods, newPod, o), WatchOptions{Version: "1"})
}

func TestWatchDecodesBothEncodings(t *testing.T) {
	end := pod("", "9")
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	inProtobuf := func(obj *corev1.Pod) []byte { return envelopeOf(t, "v1", "Pod", obj) }
	tests := map[string]http.HandlerFunc{
		"protobuf": answerWith(200, protobufType+";stream=watch",
			watchFrame(t, "ADDED", inProtobuf(pod("a", "3")))+watchFrame(t, "MODIFIED", inProtobuf(pod("a", "4")))+
				watchFrame(t, "BOOKMARK", inProtobuf(end))+watchFrame(t, "BOOKMARK", inProtobuf(pod("", "12")))+
				watchFrame(t, "DELETED", inProtobuf(pod("a", "13")))),
		"json": answerWith(200, jsonType,
			jsonFrame("ADDED", podJSON("a", "3"))+jsonFrame("MODIFIED", podJSON("a", "4"))+
				jsonFrame("BOOKMARK", `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`)+
				jsonFrame("BOOKMARK", podJSON("", "12"))+jsonFrame("DELETED", podJSON("a", "13"))),
	}
	for name, handle := range tests {
		t.Run(name, func(t *testing.T) {
			events, err := readStream(t, handle)
			if err != io.EOF {
				t.Errorf("the watch ended with %v, want io.EOF", err)
			}
			var got []string
			for _, e := range events {
				got = append(got, fmt.Sprintf("%d %s %s", e.Type, e.Key, e.Version))
				if e.Object != nil && e.Object.Kind != "" {
					t.Errorf("%s has the kind %q, and none with client-go's typed clients", e.Key, e.Object.Kind)
				}
			}
			want := []string{"1 default/a 3", "2 default/a 4", "5  9", "4  12", "3 default/a 13"}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestWatchEndsWithWhatItReceived(t *testing.T) {
	added := jsonFrame("ADDED", podJSON("a", "3"))
	const expired = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"too old resource version: 1 (9)","reason":"Expired","code":410}`
	status := &metav1.Status{Status: metav1.StatusFailure, Message: "too old", Reason: metav1.StatusReasonExpired, Code: 410}
	tests := map[string]struct {
		body, contentType string
		phase             Phase
		is                error
		says              string
	}{
		"cut frame":             {added + `{"type":"ADD`, jsonType, Streaming, ErrCutFrame, "after 12 bytes"},
		"garbage":               {added + "\nHTTP/1.1 502", jsonType, Decoding, ErrMalformed, "like another HTTP answer"},
		"unknown type":          {added + jsonFrame("SPLENDID", podJSON("a", "4")), jsonType, Decoding, ErrUnknownEvent, `"SPLENDID"`},
		"too large":             {added + jsonFrame("ADDED", podJSON(strings.Repeat("x", 20_000), "4")), jsonType, Decoding, ErrFrameTooLarge, "10000"},
		"malformed object":      {added + jsonFrame("ADDED", `{"kind":"Pod","metadata":{"name":tru}}`), jsonType, Decoding, ErrMalformed, "Pod"},
		"ERROR event":           {added + jsonFrame("ERROR", expired), jsonType, Streaming, nil, "too old resource version"},
		"ERROR without status":  {added + jsonFrame("ERROR", `"oops"`), jsonType, Decoding, ErrMalformed, "received 6 bytes"},
		"ERROR in protobuf":     {watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", pod("a", "3"))) + watchFrame(t, "ERROR", envelopeOf(t, "v1", "Status", status)), protobufType, Streaming, nil, "too old"},
		"protobuf object junk":  {watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", pod("a", "3"))) + watchFrame(t, "ADDED", []byte("junk")), protobufType, Decoding, ErrMalformed, "received 4 bytes"},
		"protobuf message junk": {watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", pod("a", "3"))) + string(delimited("\xff\xff\xff")), protobufType, Decoding, ErrMalformed, "protobuf"},
		"ERROR, no envelope": {watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", pod("a", "3"))) +
			watchFrame(t, "ERROR", []byte("junk")),
			protobufType, Decoding, ErrMalformed, "received 4 bytes"},
		"ERROR of another kind": {added + jsonFrame("ERROR", podJSON("a", "4")), jsonType, Decoding, ErrMalformed, "v1 Pod instead of v1 Status"},
		"ERROR in protobuf of another kind": {watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", pod("a", "3"))) +
			watchFrame(t, "ERROR", envelopeOf(t, "v1", "Secret", &corev1.Secret{Type: "s3cret"})),
			protobufType, Decoding, ErrMalformed, "v1 Secret instead of v1 Status"},
		"ERROR, no status": {watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", pod("a", "3"))) +
			watchFrame(t, "ERROR", envelopeOf(t, "v1", "Status", encoded("\x0a\x7f"))),
			protobufType, Decoding, ErrMalformed, "status cannot be read"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			events, err := readStream(t, answerWith(200, test.contentType, test.body))
			if len(events) != 1 || events[0].Key != "default/a" {
				t.Errorf("the event before was not delivered: %v", events)
			}
			sourceErr, ok := errors.AsType[*Error](err)
			if !ok || sourceErr.Phase != test.phase || !strings.Contains(err.Error(), test.says) || (test.is != nil && !errors.Is(err, test.is)) {
				t.Errorf("got %v, want phase %s, %v, and that it says %q", err, test.phase, test.is, test.says)
			}
			if strings.HasPrefix(name, "ERROR") && test.is == nil && !IsExpired(err) {
				t.Errorf("IsExpired is false of %v", err)
			}
		})
	}
}

func TestP20_ObjectOfAnotherKindDoesNotEndTheWatch(t *testing.T) {
	node := envelopeOf(t, "v1", "Node", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	tests := map[string]http.HandlerFunc{
		"protobuf": answerWith(200, protobufType, watchFrame(t, "ADDED", node)+watchFrame(t, "ADDED", envelopeOf(t, "v1", "Pod", pod("a", "3")))),
		"json": answerWith(200, jsonType, jsonFrame("ADDED", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"n"}}`)+
			jsonFrame("ADDED", podJSON("a", "3"))),
	}
	for name, handle := range tests {
		t.Run(name, func(t *testing.T) {
			events, err := readStream(t, handle)
			if err != io.EOF || len(events) != 2 || events[1].Key != "default/a" {
				t.Fatalf("got %v, %v", events, err)
			}
			wrong, ok := errors.AsType[*WrongObjectError](events[0].Err)
			if !ok || wrong.Got != "v1 Node" || wrong.Want != "v1 Pod" {
				t.Errorf("the first event has the error %v", events[0].Err)
			}
		})
	}
}

// TestABookmarkOfAnotherKind is malformed: no object is wrong with it.
func TestABookmarkOfAnotherKind(t *testing.T) {
	event, err := bookmark[*corev1.Pod](nil, &WrongObjectError{Got: "v1 Node", Want: "v1 Pod"})
	if !errors.Is(err, ErrMalformed) || event.Type != Bookmark {
		t.Errorf("%+v, %v, want %v", event, err, ErrMalformed)
	}
}
