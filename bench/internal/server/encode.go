package server

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings/bench/internal/objects"
)

// list is a whole list, encoded. With Streamed, bytes are frames and the bookmark that
// ends them; with Paged, items one after another, and ends[i] is where item i ends.
type list struct {
	bytes []byte
	ends  []int
}

// protobufHead is how a protobuf message of the API begins.
var protobufHead = []byte("k8s\x00")

func encode(s Spec, relisted bool) (list, error) {
	var l list
	err := s.made(relisted, func(o objects.Object) error {
		var err error
		if s.Way == Streamed {
			l.bytes, err = appendFrame(l.bytes, s.Encoding, watch.Added, o)
			return err
		}
		l.bytes, err = appendItem(l.bytes, s.Encoding, o)
		l.ends = append(l.ends, len(l.bytes))
		return err
	})
	if err != nil || s.Way == Paged {
		return l, err
	}
	// The end of the list is an object of the same kind with an annotation.
	bookmark := s.Kind.New(s.Seed, 0)
	empty, err := emptyLike(bookmark)
	if err != nil {
		return l, err
	}
	empty.SetResourceVersion(version(relisted))
	empty.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	l.bytes, err = appendFrame(l.bytes, s.Encoding, watch.Bookmark, empty)
	return l, err
}

// emptyLike returns an object of the same kind that is empty otherwise.
func emptyLike(o objects.Object) (objects.Object, error) {
	gvk := o.GetObjectKind().GroupVersionKind()
	if _, ok := o.(*unstructured.Unstructured); ok {
		empty := &unstructured.Unstructured{}
		empty.SetGroupVersionKind(gvk)
		return empty, nil
	}
	made, err := scheme.Scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	empty, ok := made.(objects.Object)
	if !ok {
		return nil, fmt.Errorf("%T has no metadata", made)
	}
	empty.GetObjectKind().SetGroupVersionKind(gvk)
	return empty, nil
}

// appendItem appends an object as an item of a list. In a typed list, items do not repeat
// their kind.
func appendItem(to []byte, e Encoding, o objects.Object) ([]byte, error) {
	if _, ok := o.(*unstructured.Unstructured); !ok {
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	if e == JSON {
		raw, err := json.Marshal(o)
		return append(append(to, raw...), ','), err
	}
	raw, err := marshal(o)
	to = protowire.AppendTag(to, 2, protowire.BytesType)
	return protowire.AppendBytes(to, raw), err
}

func marshal(o any) ([]byte, error) {
	m, ok := o.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("%T has no protobuf: ask for JSON", o)
	}
	return m.Marshal()
}

// appendFrame appends an event of a watch.
func appendFrame(to []byte, e Encoding, t watch.EventType, o runtime.Object) ([]byte, error) {
	if e == JSON {
		raw, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		return fmt.Appendf(to, `{"type":%q,"object":%s}`+"\n", t, bytes.TrimSpace(raw)), nil
	}
	raw, err := marshal(o)
	if err != nil {
		return nil, err
	}
	event := metav1.WatchEvent{Type: string(t), Object: runtime.RawExtension{Raw: append(messageHead(o.GetObjectKind().GroupVersionKind(), len(raw)), raw...)}}
	frame, err := event.Marshal()
	if err != nil {
		return nil, err
	}
	to = binary.BigEndian.AppendUint32(to, uint32(len(frame)))
	return append(to, frame...), nil
}

// messageHead returns what comes before the n bytes of an object.
func messageHead(gvk schema.GroupVersionKind, n int) []byte {
	var typeMeta []byte
	typeMeta = protowire.AppendTag(typeMeta, 1, protowire.BytesType)
	typeMeta = protowire.AppendString(typeMeta, gvk.GroupVersion().String())
	typeMeta = protowire.AppendTag(typeMeta, 2, protowire.BytesType)
	typeMeta = protowire.AppendString(typeMeta, gvk.Kind)
	head := bytes.Clone(protobufHead)
	head = protowire.AppendTag(head, 1, protowire.BytesType)
	head = protowire.AppendBytes(head, typeMeta)
	head = protowire.AppendTag(head, 2, protowire.BytesType)
	return protowire.AppendVarint(head, uint64(n))
}

// page returns what comes before and after the items of a page of n bytes.
func page(e Encoding, kind objects.Kind, meta metav1.ListMeta, n int) (head, tail []byte, err error) {
	gvk := kind.GroupVersionKind()
	gvk.Kind += "List"
	if e == JSON {
		raw, err := json.Marshal(meta)
		head = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":[`, gvk.Kind, gvk.GroupVersion(), raw)
		return head, []byte("]}\n"), err
	}
	raw, err := meta.Marshal()
	listMeta := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), raw)
	return append(messageHead(gvk, len(listMeta)+n), listMeta...), nil, err
}
