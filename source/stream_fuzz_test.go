package source

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answerOf returns an answer with a body of a media type.
func answerOf(code int, mediaType string, body io.Reader) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {mediaType}}, Body: io.NopCloser(body)}
}

// FuzzStream reads any bytes as a watch, to its end, at once and byte by byte. The
// events must be the same, every event whole, and the end an error of this package or io.EOF.
func FuzzStream(f *testing.F) {
	f.Add([]byte(watchFrame(f, "ADDED", envelopeOf(f, "v1", "Pod", pod("a", "3")))+
		watchFrame(f, "ERROR", envelopeOf(f, "v1", "Status", &metav1.Status{Status: metav1.StatusFailure, Code: 410}))), true, 0, 0)
	f.Add([]byte(jsonFrame("ADDED", podJSON("a", "3"))+jsonFrame("BOOKMARK", podJSON("", "4"))+"{"), false, 7, 0)
	f.Add([]byte(jsonFrame("ADDED", `{"metadata":{"name":"a"},"spec":@}`)), false, 0, 20_000)
	f.Add([]byte(`{"type":"ERROR","object":{"kind":"Status","code":410}}`), false, 2, 0)
	f.Fuzz(func(t *testing.T, body []byte, asProtobuf bool, limit, depth int) {
		body = deeper(body, depth)
		mediaType := jsonType
		if asProtobuf {
			mediaType = protobufType
		}
		o := RESTOptions{Transport: Transport{MaxFrameBytes: limits[uint(limit)%uint(len(limits))]}}
		at := func(body []byte) io.Reader { return bytes.NewReader(body) }
		slowly := func(body []byte) io.Reader { return iotest.OneByteReader(bytes.NewReader(body)) }
		typed := NewTyped(nil, pods, newPod, o)
		a, b := readToEnd(t, typed, mediaType, body, at), readToEnd(t, typed, mediaType, body, slowly)
		if string(a) != string(b) {
			t.Errorf("read at once: %v, byte by byte: %v", a, b)
		}
		readToEnd(t, NewDynamic(nil, pods, o), mediaType, body, at)
	})
}

// readToEnd returns the types of the events of a watch.
func readToEnd[T Object](t *testing.T, of *REST[T], mediaType string, body []byte,
	reader func([]byte) io.Reader) (told []EventType) {
	t.Helper()
	answer := answerOf(200, mediaType, reader(body))
	stream, err := newRESTStream(of, request{op: "watch", resource: "pods"}, answer, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for range len(body) + 2 {
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
			if isObject := e.Type == Added || e.Type == Modified || e.Type == Deleted; isObject && e.Err == nil && reflect.ValueOf(e.Object).IsNil() {
				t.Errorf("an event without an object: %+v", e)
			}
			told = append(told, e.Type)
		}
	}
	t.Errorf("a stream of %d bytes does not end", len(body))
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
