package source

import (
	"bytes"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// encodePods returns a list of pods in both encodings, as seeds.
func encodePods(f *testing.F) (protobuf, json []byte) {
	f.Helper()
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "next"}, Items: []corev1.Pod{*pod("a", "3"), *pod("b", "4")}}
	return envelopeOf(f, "v1", "PodList", list), []byte(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + podJSON("a", "3") + `]}`)
}

// FuzzList decodes any bytes as a list of each form. Nothing may panic, every error is
// of a known kind, and accepted items are described by their own objects.
func FuzzList(f *testing.F) {
	protobuf, json := encodePods(f)
	f.Add(protobuf, true, 0, "Pod", 0)
	f.Add(json, false, 0, "Pod", 0)
	f.Add([]byte(`{"kind":"PodList","items":[null,7]}`), false, 1, "Pod", 0)
	f.Add([]byte(`{"kind":"Manifest","items":[{"metadata":{}}]}`), false, 3, "Manifest", 0)
	f.Add([]byte(`{"kind":"Bündel","metadata":{},"items":[{"spec":@}]}`), false, 7, "", 20_000)
	f.Fuzz(func(t *testing.T, body []byte, asProtobuf bool, limit int, kind string, depth int) {
		body = deeper(body, depth)
		resource := pods
		resource.Kind = kind
		o := RESTOptions{Transport: Transport{MaxListBytes: limits[uint(limit)%uint(len(limits))]}}
		mediaType := jsonType
		if asProtobuf {
			mediaType = protobufType
		}
		typed, err := wholePage(t, NewTyped(nil, resource, newPod, o), mediaType, body)
		checkVerdict(t, err)
		for _, item := range typed.Items {
			if item.Err == nil && (item.Key != Key(item.Object.Namespace, item.Object.Name) || item.Version != item.Object.ResourceVersion) {
				t.Errorf("item %+v", item)
			}
		}
		_, err = wholePage(t, NewDynamic(nil, resource, o), mediaType, body)
		checkVerdict(t, err)
		_, err = wholePage(t, NewMetadata(nil, resource, o), mediaType, body)
		checkVerdict(t, err)
	})
}

// wholePage decodes a page that arrives at once.
func wholePage[T Object](t testing.TB, s *REST[T], mediaType string, body []byte) (Page[T], error) {
	r := s.pageReader(t.Context(), bytes.NewReader(body), nil)
	if mediaType == protobufType {
		return s.readProtobufPage(r, nil)
	}
	return s.readJSONPage(r, nil)
}

// deeper puts nested objects in the place of each "@" in a body.
func deeper(body []byte, depth int) []byte {
	return bytes.ReplaceAll(body, []byte("@"), []byte(nested(int(uint(depth)%20_001))))
}

// checkVerdict refuses an error that names nothing a reader could act on.
func checkVerdict(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if _, wrong := errors.AsType[*WrongObjectError](err); !wrong && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrFrameTooLarge) {
		t.Errorf("the error %v is of no known kind", err)
	}
}

// FuzzWatchFrame opens a frame of a watch in protobuf, and compares with the generated
// code that client-go decodes it with.
func FuzzWatchFrame(f *testing.F) {
	whole := marshal(f, &metav1.WatchEvent{Type: "ADDED", Object: runtime.RawExtension{Raw: []byte("object")}})
	f.Add(whole)
	f.Add(append(bytes.Clone(whole), whole...))        // everything twice
	f.Add(append(bytes.Clone(whole), 2<<3|2, 0))       // an object again, and empty
	f.Add(append(bytes.Clone(whole), 1<<3, 1))         // the type as a number
	f.Add(append(bytes.Clone(whole), 2<<3|2, 2, 8, 1)) // the bytes of the object as a number
	f.Add(append(bytes.Clone(whole), 9<<3|2, 1, 1))    // an unknown field
	f.Add(whole[:len(whole)-1])
	f.Fuzz(func(t *testing.T, frame []byte) {
		var want metav1.WatchEvent
		wantErr := want.Unmarshal(frame)
		name, object, err := openWatchEvent(frame)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%x: %v, client-go says %v", frame, err, wantErr)
		}
		if err == nil && (string(name) != want.Type || !bytes.Equal(object, want.Object.Raw)) {
			t.Fatalf("%x: %q %x, want %+v", frame, name, object, want)
		}
	})
}
