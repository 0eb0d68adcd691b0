package source

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answerOf returns an answer with a body of a media type.
func answerOf(code int, mediaType string, body io.Reader) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {mediaType}}, Body: io.NopCloser(body)}
}

// protobufFrames returns a watch in protobuf: an object, and the Status that ends it.
func protobufFrames(f *testing.F) []byte {
	f.Helper()
	of := func(kind string, marshal func() ([]byte, error)) []byte {
		raw, err := marshal()
		if err != nil {
			f.Fatal(err)
		}
		unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
		message, err := unknown.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		return append([]byte("k8s\x00"), message...)
	}
	var frames []string
	for name, object := range map[string][]byte{
		"ADDED": of("Pod", pod("a", "3").Marshal),
		"ERROR": of("Status", (&metav1.Status{Status: metav1.StatusFailure, Code: 410}).Marshal),
	} {
		event := metav1.WatchEvent{Type: name, Object: runtime.RawExtension{Raw: object}}
		frame, err := event.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		frames = append(frames, string(frame))
	}
	return delimited(frames...)
}

// FuzzStream reads any bytes as a watch, to its end, at once and byte by byte. What is
// read must be the same, every event whole, and the end one that says what it is.
func FuzzStream(f *testing.F) {
	f.Add(protobufFrames(f), true, 0, 0)
	f.Add([]byte(jsonFrame("ADDED", podJSON("a", "3"))+jsonFrame("BOOKMARK", podJSON("", "4"))+"{"), false, 7, 0)
	f.Add([]byte(jsonFrame("ADDED", `{"metadata":{"name":"a"},"spec":@}`)), false, 0, 20_000)
	f.Add([]byte(`{"type":"ERROR","object":{"kind":"Status","code":410}}`), false, 2, 0)
	f.Fuzz(func(t *testing.T, body []byte, asProtobuf bool, limit, depth int) {
		body = deeper(body, depth)
		mediaType := jsonType
		if asProtobuf {
			mediaType = protobufType
		}
		var told [2][]EventType
		for i, reader := range []io.Reader{bytes.NewReader(body), iotest.OneByteReader(bytes.NewReader(body))} {
			of := NewTyped(nil, pods, newPod, RESTOptions{Transport: Transport{MaxFrameBytes: limits[uint(limit)%uint(len(limits))]}})
			stream, err := newRESTStream(of, request{op: "watch", resource: "pods"}, answerOf(200, mediaType, reader), func() {})
			if err != nil {
				t.Fatal(err)
			}
			told[i] = readToEnd(t, stream, len(body))
		}
		if a, b := told[0], told[1]; string(a) != string(b) {
			t.Errorf("read at once: %v, byte by byte: %v", a, b)
		}
	})
}

// readToEnd returns the types of the events of a stream of so many bytes.
func readToEnd(t *testing.T, stream *restStream[*corev1.Pod], size int) []EventType {
	t.Helper()
	var told []EventType
	for range size + 2 {
		events, err := stream.Next()
		if err != nil {
			_, known := errors.AsType[*Error](err)
			if _, again := stream.Next(); again != err || !known && err != io.EOF {
				t.Errorf("the stream ends with %v, and then with %v", err, again)
			}
			return told
		}
		if len(events) == 0 || len(events) > maxBatch {
			t.Fatalf("a batch of %d events", len(events))
		}
		for _, e := range events {
			if isObject := e.Type == Added || e.Type == Modified || e.Type == Deleted; isObject && e.Err == nil && e.Object == nil {
				t.Errorf("an event without an object: %+v", e)
			}
			told = append(told, e.Type)
		}
	}
	t.Errorf("a stream of %d bytes does not end", size)
	return nil
}

// FuzzStatus reads any bytes as the body of an answer that is an error. It must become
// one that apierrors knows, with the code of the answer or of the Status.
func FuzzStatus(f *testing.F) {
	f.Add([]byte(`{"kind":"Status","status":"Failure","code":403,"reason":"Forbidden","details":{"retryAfterSeconds":3}}`), false, 403)
	f.Add([]byte("<html>bad gateway</html>"), false, 502)
	f.Add([]byte("k8s\x00"), true, 500)
	f.Fuzz(func(t *testing.T, body []byte, asProtobuf bool, code int) {
		mediaType := jsonType
		if asProtobuf {
			mediaType = protobufType
		}
		err := statusError(answerOf(code, mediaType, bytes.NewReader(body)), request{op: "list", resource: "pods"})
		if _, ok := errors.AsType[*apierrors.StatusError](err); !ok {
			t.Fatalf("%T is no error of the API", err)
		}
		if wait, ok := RetryAfter(err); ok && wait < 0 {
			t.Errorf("to be tried again after %v", wait)
		}
		if strings.TrimSpace(err.Error()) == "" && !bytes.Contains(body, []byte("Failure")) {
			t.Error("an error that says nothing")
		}
	})
}
