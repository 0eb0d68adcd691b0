package server

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings/bench/internal/objects"
)

// Encoding is how objects are sent.
type Encoding string

// The encodings.
const (
	// Protobuf is how servers send built-in resources to clients in Go.
	Protobuf Encoding = "protobuf"
	// JSON is how servers send everything else.
	JSON Encoding = "JSON"
)

// Spec says which objects a server has and how it sends them.
type Spec struct {
	// Kind is the kind of the objects, Objects their number.
	Kind    objects.Kind
	Objects int
	// Encoding is how they are sent.
	Encoding Encoding
	// Paged makes the server list in pages and refuse to stream lists. Otherwise it
	// streams, and refuses to list in pages.
	Paged bool
	// Relist prepares the list after a relist.
	Relist bool
	// Updates is how many new states of the objects, in turn, are prepared.
	Updates int
}

// Counts says how a relist changes a cache.
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

// list is a whole list, encoded. Streamed, bytes are frames and the bookmark that ends them;
// in pages, they are items one after another, and ends[i] is where item i ends.
type list struct {
	version string
	bytes   []byte
	ends    []int
}

// Encode makes and encodes the objects.
func Encode(s Spec) (*Encoded, error) {
	e := &Encoded{spec: s}
	fail := func(err error) (*Encoded, error) {
		return nil, fmt.Errorf("server: encode %d %s in %s: %w", s.Objects, s.Kind, s.Encoding, err)
	}
	var err error
	if e.lists[0], err = s.list(listVersion, s.Kind.New); err != nil {
		return fail(err)
	}
	if s.Relist {
		if e.lists[1], err = s.list(relistVersion, s.relisted); err != nil {
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

// list encodes a list whose objects are made by a function.
func (s Spec) list(version int, object func(number int) objects.Object) (l list, err error) {
	l.version = fmt.Sprint(version)
	for i := range s.Objects {
		if s.Paged {
			l.bytes, err = s.appendItem(l.bytes, object(i))
			l.ends = append(l.ends, len(l.bytes))
		} else {
			l.bytes, err = s.appendFrame(l.bytes, watch.Added, object(i))
		}
		if err != nil {
			return l, err
		}
	}
	if s.Paged {
		return l, nil
	}
	// The end of the list is an object of the same kind with an annotation.
	end, err := s.empty()
	if err != nil {
		return l, err
	}
	end.SetResourceVersion(l.version)
	end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	l.bytes, err = s.appendFrame(l.bytes, watch.Bookmark, end)
	return l, err
}

// empty returns an object of the kind without any field.
func (s Spec) empty() (objects.Object, error) {
	gvk := s.Kind.GroupVersionKind()
	var o objects.Object = &unstructured.Unstructured{}
	if s.Kind != objects.Widgets {
		typed, err := scheme.Scheme.New(gvk)
		if err != nil {
			return nil, err
		}
		o = typed.(objects.Object)
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o, nil
}

// appendItem appends an object as an item of a list. In a typed list, items do not repeat
// their kind.
func (s Spec) appendItem(to []byte, o objects.Object) ([]byte, error) {
	if s.Kind != objects.Widgets {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	if s.Encoding == JSON {
		raw, err := json.Marshal(o)
		return append(append(to, raw...), ','), err
	}
	raw, err := marshal(o)
	return protowire.AppendBytes(protowire.AppendTag(to, 2, protowire.BytesType), raw), err
}

func marshal(o any) ([]byte, error) {
	m, ok := o.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf: ask for JSON", o)
	}
	return m.Marshal()
}

// appendFrame appends an event of a watch.
func (s Spec) appendFrame(to []byte, t watch.EventType, o runtime.Object) ([]byte, error) {
	if s.Encoding == JSON {
		raw, err := json.Marshal(o)
		return fmt.Appendf(to, `{"type":%q,"object":%s}`+"\n", t, raw), err
	}
	raw, err := marshal(o)
	if err != nil {
		return nil, err
	}
	raw, err = envelope(o.GetObjectKind().GroupVersionKind(), raw)
	if err != nil {
		return nil, err
	}
	event := metav1.WatchEvent{Type: string(t), Object: runtime.RawExtension{Raw: raw}}
	frame, err := event.Marshal()
	to = binary.BigEndian.AppendUint32(to, uint32(len(frame)))
	return append(to, frame...), err
}

// envelope puts a protobuf message into the envelope of the API.
func envelope(gvk schema.GroupVersionKind, raw []byte) ([]byte, error) {
	version, kind := gvk.ToAPIVersionAndKind()
	u := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: version, Kind: kind}, Raw: raw}
	message, err := u.Marshal()
	return append([]byte("k8s\x00"), message...), err
}

// page returns the body of a page of items.
func (s Spec) page(meta metav1.ListMeta, items []byte) ([]byte, error) {
	gvk := s.Kind.GroupVersionKind()
	gvk.Kind += "List"
	if s.Encoding == JSON {
		raw, err := json.Marshal(meta)
		body := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`,
			gvk.Kind, gvk.GroupVersion(), raw)
		body = append(body, items[:max(len(items)-1, 0)]...) // without the last comma
		return append(body, "]}\n"...), err
	}
	raw, err := meta.Marshal()
	if err != nil {
		return nil, err
	}
	head := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), raw)
	return envelope(gvk, append(head, items...))
}
