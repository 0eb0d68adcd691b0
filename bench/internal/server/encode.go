package server

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings/bench/internal/objects"
)

// Encoding is the encoding of objects on the wire.
type Encoding string

// The encodings.
const (
	// Protobuf is the encoding of built-in resources for clients in Go.
	Protobuf Encoding = "protobuf"
	// JSON is the encoding of all other resources.
	JSON Encoding = "JSON"
)

// Spec describes the objects of a server and their transmission.
type Spec struct {
	// Kind is the kind of the objects, Objects their number.
	Kind    objects.Kind
	Objects int
	// Encoding is the encoding of the objects.
	Encoding Encoding
	// Paged makes the server list in pages and refuse to stream lists. Otherwise it
	// streams, and refuses to list in pages.
	Paged bool
	// Relist prepares the list after a relist.
	Relist bool
	// Updates is the number of prepared updates, each with the next state of an object in turn.
	Updates int
	// Rate is the number of updates a second; 0 means as many as the client takes.
	Rate int
}

// Counts are the numbers of changes of a cache by a relist.
type Counts struct{ Deleted, Changed, Added int }

// After counts the changes of a relist of n objects.
func After(n int) Counts {
	return Counts{Deleted: (n + 99) / 100, Changed: (n + 98) / 100, Added: (n + 99) / 100}
}

// The resource versions of the lists, and of the first update. The other updates follow one by
// one.
const (
	listVersion        = 10_000_000
	relistVersion      = 21_000_000
	changedVersion     = 11_000_000
	addedVersion       = 12_000_000
	FirstUpdate    int = 30_000_000
)

// Encoded are the encoded objects of a Spec.
type Encoded struct {
	spec    Spec
	lists   [2]list // before and after a relist
	gone    []byte  // the frame that ends a watch with 410
	updates []byte  // the frames of the updates
}

// list is a whole list, encoded: either frames and the bookmark that ends them, or pages.
type list struct {
	frames []byte
	pages  [][]byte
}

// pageSize is the number of objects of a page, the default of clients.
const pageSize = 500

// Encode makes and encodes the objects.
func Encode(s Spec) (*Encoded, error) {
	e := &Encoded{spec: s}
	fail := func(err error) (*Encoded, error) {
		return nil, fmt.Errorf("server: encode %d %s in %s: %w", s.Objects, s.Kind, s.Encoding, err)
	}
	var err error
	encodeList := s.frames
	if s.Paged {
		encodeList = s.pages
	}
	if e.lists[0], err = encodeList(fmt.Sprint(listVersion), s.Kind.New); err != nil {
		return fail(err)
	}
	if s.Relist {
		if e.lists[1], err = encodeList(fmt.Sprint(relistVersion), s.relisted); err != nil {
			return fail(err)
		}
	}
	for i := range s.Updates {
		o := s.Kind.New(i % s.Objects)
		objects.Heartbeat(o, i)
		o.SetResourceVersion(fmt.Sprint(FirstUpdate + i))
		if e.updates, err = s.appendFrame(e.updates, watch.Modified, o); err != nil {
			return fail(err)
		}
	}
	e.gone, err = s.appendFrame(nil, watch.Error, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonExpired,
		Code: http.StatusGone, Message: "too old resource version",
	})
	if err != nil {
		return fail(err)
	}
	return e, nil
}

// relisted returns the object that stands in the list after a relist for the object of a number.
func (s Spec) relisted(number int) objects.Object {
	switch number % 100 {
	case 0:
		o := s.Kind.New(s.Objects + number/100)
		o.SetResourceVersion(fmt.Sprint(addedVersion + number))
		return o
	case 1:
		o := s.Kind.New(number)
		o.SetResourceVersion(fmt.Sprint(changedVersion + number))
		return o
	}
	return s.Kind.New(number)
}

// frames encodes a streamed list whose objects are made by a function.
func (s Spec) frames(version string, object func(int) objects.Object) (l list, err error) {
	for i := range s.Objects {
		if l.frames, err = s.appendFrame(l.frames, watch.Added, object(i)); err != nil {
			return l, err
		}
	}
	// The end of the list is an object of the same kind with an annotation.
	end, err := s.empty("")
	if err != nil {
		return l, err
	}
	accessor, err := meta.Accessor(end)
	if err != nil {
		return l, err
	}
	accessor.SetResourceVersion(version)
	accessor.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	l.frames, err = s.appendFrame(l.frames, watch.Bookmark, end)
	return l, err
}

// pages encodes a list in pages whose objects are made by a function. A continue token is the
// number of the next page.
func (s Spec) pages(version string, object func(int) objects.Object) (l list, err error) {
	for first := 0; first < s.Objects; first += pageSize {
		last := min(first+pageSize, s.Objects)
		var items []runtime.Object
		for i := first; i < last; i++ {
			o := object(i)
			if !s.Kind.IsCustom() { // in a typed list, items do not repeat their kind
				o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
			}
			items = append(items, o)
		}
		page, err := s.empty("List")
		if err == nil {
			err = meta.SetList(page, items)
		}
		if err != nil {
			return l, err
		}
		accessor, err := meta.ListAccessor(page)
		if err != nil {
			return l, err
		}
		accessor.SetResourceVersion(version)
		if last < s.Objects {
			accessor.SetContinue(fmt.Sprint(len(l.pages) + 1))
			accessor.SetRemainingItemCount(new(int64(s.Objects - last)))
		}
		raw, err := s.encode(page)
		if err != nil {
			return l, err
		}
		l.pages = append(l.pages, raw)
	}
	return l, nil
}

// types has the Go types of the kinds.
var types = objects.Scheme()

// empty returns an object of the kind, or its list for the suffix List, without any field.
func (s Spec) empty(suffix string) (o runtime.Object, err error) {
	gvk := s.Kind.GroupVersionKind()
	gvk.Kind += suffix
	switch {
	case s.Kind != objects.Widgets:
		o, err = types.New(gvk)
	case suffix == "":
		o = &unstructured.Unstructured{}
	default:
		o = &unstructured.UnstructuredList{}
	}
	if err == nil {
		o.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return o, err
}

// encode returns an object as a server sends it.
func (s Spec) encode(o runtime.Object) ([]byte, error) {
	if s.Encoding == JSON {
		return json.Marshal(o)
	}
	return runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), o)
}

// appendFrame appends an event of a watch.
func (s Spec) appendFrame(to []byte, t watch.EventType, o runtime.Object) ([]byte, error) {
	raw, err := s.encode(o)
	if err != nil || s.Encoding == JSON {
		return fmt.Appendf(to, `{"type":%q,"object":%s}`+"\n", t, raw), err
	}
	event := metav1.WatchEvent{Type: string(t), Object: runtime.RawExtension{Raw: raw}}
	frame, err := event.Marshal()
	to = binary.BigEndian.AppendUint32(to, uint32(len(frame)))
	return append(to, frame...), err
}
