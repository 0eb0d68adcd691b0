package guard

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	sigsjson "sigs.k8s.io/json"
)

// object has the parts of an object that the scanners read.
type object struct {
	Kind     string            `json:"kind"`
	Metadata metav1.ObjectMeta `json:"metadata"`
	Details  struct {
		Name string `json:"name"`
		UID  string `json:"uid"`
	} `json:"details"`
}

// answer returns the answer that the scanners must return.
func (o *object) answer() answer {
	a := answer{status: o.Kind == "Status", whole: true}
	if a.status {
		a.name, a.uid = o.Details.Name, o.Details.UID
		return a
	}
	m := &o.Metadata
	a.name, a.uid, a.version = m.Name, string(m.UID), m.ResourceVersion
	a.deleted, a.finalizers = m.DeletionTimestamp != nil, len(m.Finalizers) > 0
	a.grace = m.DeletionGracePeriodSeconds != nil && *m.DeletionGracePeriodSeconds > 0
	return a
}

var mediaTypes = []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf, runtime.ContentTypeCBOR}

// encoded returns an object in an encoding.
func encoded(t testing.TB, mediaType string, obj runtime.Object) []byte {
	t.Helper()
	if mediaType == runtime.ContentTypeCBOR {
		data, err := runtime.Encode(cbor.NewSerializer(scheme.Scheme, scheme.Scheme), obj)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	data, err := runtime.Encode(info.Serializer, obj)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func newScanner(mediaType string) *scanner {
	s := scannerFor(http.Header{"Content-Type": {mediaType + ";charset=utf-8"}})
	return &s
}

// samples returns objects with all the fields that are read, and without them. size sets the
// lengths of long strings in them.
func samples(size int) map[string]runtime.Object {
	all := configMap("a")
	all.Kind, all.APIVersion = "ConfigMap", "v1"
	all.UID, all.ResourceVersion, all.Finalizers = "u\"1", "12", []string{"example.com/a"}
	all.DeletionTimestamp, all.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
	all.Annotations = map[string]string{"uid": `"}{`, "large": strings.Repeat("é", size)}
	all.OwnerReferences = []metav1.OwnerReference{{Name: "owner", UID: "other"}}
	all.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`)}}
	all.Data = map[string]string{"metadata": "no", "large": strings.Repeat(`\"}`, 10*size)}
	plain := all.DeepCopy()
	plain.DeletionTimestamp, plain.Finalizers, plain.ManagedFields = nil, nil, nil
	plain.DeletionGracePeriodSeconds, plain.Annotations = new(int64(0)), nil
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"}
	detailed := status.DeepCopy()
	detailed.Details = &metav1.StatusDetails{Name: "a", UID: "u", Kind: "configmaps"}
	return map[string]runtime.Object{"all": all, "plain": plain, "status": status, "details": detailed}
}

// TestScannersAgreeWithDecoding scans samples in pieces of different sizes.
func TestScannersAgreeWithDecoding(t *testing.T) {
	for name, obj := range samples(5000) {
		var whole object
		text, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &whole); err != nil {
			t.Fatal(err)
		}
		for _, mediaType := range mediaTypes {
			data := encoded(t, mediaType, obj)
			for _, size := range []int{1, 7, 512, 4096, len(data)} {
				s := newScanner(mediaType)
				for piece := range slices.Chunk(data, size) {
					s.scan(piece)
				}
				if got, want := s.result(), whole.answer(); got != want {
					t.Errorf("%s in %s, pieces of %d: %+v, want %+v", name, mediaType, size, got, want)
				}
			}
			if s := newScanner(mediaType); name == "all" {
				s.scan(data[:len(data)/100])
				if got := s.result(); got.whole {
					t.Errorf("%s in %s: a part is read as %+v", name, mediaType, got)
				}
			}
		}
	}
}

// TestScannersKeepLittle scans objects of a megabyte whose metadata comes first.
func TestScannersKeepLittle(t *testing.T) {
	obj := samples(5000)["plain"].(*corev1.ConfigMap)
	obj.Data["large"] = strings.Repeat("x", 1<<20)
	for _, mediaType := range mediaTypes[:2] {
		s, most := newScanner(mediaType), 0
		for piece := range slices.Chunk(encoded(t, mediaType, obj), 1000) {
			s.scan(piece)
			most = max(most, cap(s.head))
		}
		if !s.result().whole || most > 4096 {
			t.Errorf("%s: %d bytes were kept", mediaType, most)
		}
	}
	for _, mediaType := range mediaTypes { // a body that never ends
		s, most := newScanner(mediaType), 0
		for range 100 {
			s.scan(bytes.Repeat([]byte(" "), 1<<16))
			most = max(most, cap(s.head))
		}
		if most > 2*maxHead || s.result().whole {
			t.Errorf("%s: %d bytes were kept", mediaType, most)
		}
	}
}

func TestOtherMediaTypesAreNotRead(t *testing.T) {
	for _, h := range []http.Header{
		{}, {"Content-Type": {"text/html"}},
		{"Content-Type": {runtime.ContentTypeJSON}, "Content-Encoding": {"gzip"}},
	} {
		s := scannerFor(h)
		s.scan([]byte(`{"kind":"A","metadata":{"name":"a"}}`))
		if got := s.result(); got != (answer{}) {
			t.Errorf("%v is read as %+v", h, got)
		}
	}
}

// checkPieces scans data in pieces of a size, and compares the answer with the one for the whole.
func checkPieces(t *testing.T, mediaType string, data []byte, size int, whole answer) {
	t.Helper()
	s := newScanner(mediaType)
	s.next = 1
	for piece := range slices.Chunk(data, max(size, 1)) {
		s.scan(piece)
	}
	if inPieces := s.result(); whole.whole && inPieces != whole {
		t.Errorf("%q is %+v, in pieces %+v", data, whole, inPieces)
	}
}

// FuzzJSON compares the scanner with the decoder, for texts that are decoded without an error.
func FuzzJSON(f *testing.F) {
	for _, obj := range samples(3) {
		f.Add(encoded(f, runtime.ContentTypeJSON, obj), 3)
	}
	f.Add([]byte(`{"metadata":{"name":"\u0061","finalizers":[ ],"deletionTimestamp":null},"kind":null}`), 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		got := readJSON(data)
		checkPieces(t, runtime.ContentTypeJSON, data, size, got)
		var want object
		strict, err := sigsjson.UnmarshalStrict(data, &want, sigsjson.DisallowDuplicateFields)
		if err == nil && len(strict) == 0 && utf8.Valid(data) && got.whole && got != want.answer() {
			t.Errorf("%q is %+v, want %+v", data, got, want.answer())
		}
	})
}

// FuzzProtobuf compares the scanner with the decoder, for messages that are encoded as the API
// machinery encodes them.
func FuzzProtobuf(f *testing.F) {
	for _, obj := range samples(3) {
		f.Add(encoded(f, runtime.ContentTypeProtobuf, obj), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		got := readProtobuf(data)
		checkPieces(t, runtime.ContentTypeProtobuf, data, size, got)
		var envelope runtime.Unknown
		if len(data) < 4 || envelope.Unmarshal(data[4:]) != nil || !got.whole {
			return
		}
		want := object{Kind: envelope.Kind}
		var err error
		var again []byte
		if got.status {
			var status metav1.Status
			if err = status.Unmarshal(envelope.Raw); err == nil {
				again, err = status.Marshal()
			}
			if status.Details != nil {
				want.Details.Name, want.Details.UID = status.Details.Name, string(status.Details.UID)
			}
		} else {
			var partial metav1.PartialObjectMetadata
			if err = partial.Unmarshal(envelope.Raw); err == nil {
				again, err = partial.Marshal()
			}
			want.Metadata = partial.ObjectMeta
		}
		framed, sealed := envelope.Marshal()
		canonical := sealed == nil && bytes.Equal(framed, data[4:]) && bytes.Equal(again, envelope.Raw)
		if err == nil && canonical && got != want.answer() {
			t.Errorf("%q is %+v, want %+v", data, got, want.answer())
		}
	})
}

// FuzzCBOR reads any bytes.
func FuzzCBOR(f *testing.F) {
	for _, obj := range samples(3) {
		f.Add(encoded(f, runtime.ContentTypeCBOR, obj))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got := readCBOR(data); got.uid != "" && !got.whole {
			t.Errorf("%q is %+v", data, got)
		}
	})
}

// TestDeleteOptionsInEachEncoding reads options in the encodings that clients use.
func TestDeleteOptionsInEachEncoding(t *testing.T) {
	for _, mediaType := range mediaTypes {
		o := &metav1.DeleteOptions{
			TypeMeta:      metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"},
			Preconditions: metav1.NewUIDPreconditions("u"), DryRun: []string{metav1.DryRunAll},
		}
		body := bytes.NewReader(encoded(t, mediaType, o))
		req, err := http.NewRequest(http.MethodDelete, "https://a", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", mediaType)
		got := deleteOptionsOf(req)
		if got.Preconditions == nil || *got.Preconditions.UID != types.UID("u") || len(got.DryRun) != 1 {
			t.Errorf("%s: the options are %+v", mediaType, got)
		}
	}
}
