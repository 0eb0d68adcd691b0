package apisim

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"
)

var protobufMagic = []byte("k8s\x00")

// inForm returns an object in a form, with its kind.
func inForm(r *resource, f form, obj object) runtime.Object {
	switch {
	case f.table:
		return tableOf(r, f, metav1.ListMeta{ResourceVersion: obj.GetResourceVersion()}, obj)
	case f.metadata:
		return metadataOf(obj)
	default:
		return withKind(obj, r.gvk())
	}
}

// encode writes an object that has its kind.
func encode(f form, obj runtime.Object) ([]byte, error) {
	if !f.protobuf {
		return f.marshal(obj)
	}
	raw, err := marshalProtobuf(obj)
	if err != nil {
		return nil, err
	}
	return wrapProtobuf(obj.GetObjectKind().GroupVersionKind(), raw)
}

// marshal writes a value in JSON or YAML.
func (f form) marshal(value any) ([]byte, error) {
	if f.yaml {
		return yaml.Marshal(value)
	}
	return json.Marshal(value)
}

func marshalProtobuf(obj any) ([]byte, error) {
	message, ok := obj.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return nil, fmt.Errorf("apisim: a %T cannot be encoded in protobuf", obj)
	}
	return message.Marshal()
}

// wrapProtobuf puts an encoded object into a runtime.Unknown, after the magic.
func wrapProtobuf(gvk schema.GroupVersionKind, raw []byte) ([]byte, error) {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	unknown := runtime.Unknown{Raw: raw}
	unknown.APIVersion, unknown.Kind = apiVersion, kind
	data := make([]byte, len(protobufMagic)+unknown.Size())
	n, err := unknown.MarshalTo(data[copy(data, protobufMagic):])
	return data[:len(protobufMagic)+n], err
}

// encodeEvent writes a watch frame about a state of an object.
func encodeEvent(r *resource, f form, eventType watch.EventType, obj object) ([]byte, error) {
	return encodeFrame(f, eventType, inForm(r, f, obj))
}

// encodeFrame writes a watch frame about an object that has its kind.
func encodeFrame(f form, eventType watch.EventType, obj runtime.Object) ([]byte, error) {
	raw, err := encode(f, obj)
	if err != nil {
		return nil, err
	}
	event := metav1.WatchEvent{Type: string(eventType), Object: runtime.RawExtension{Raw: raw}}
	if !f.protobuf {
		frame, err := json.Marshal(event)
		return append(frame, '\n'), err
	}
	frame := make([]byte, 4+event.Size())
	n, err := event.MarshalTo(frame[4:])
	binary.BigEndian.PutUint32(frame, uint32(n))
	return frame[:4+n], err
}

// encodeList writes a list of stored objects. The items of typed lists have no kind of
// their own, as those of a real server.
func encodeList(r *resource, f form, meta metav1.ListMeta, objects []object) ([]byte, error) {
	if f.table {
		return f.marshal(tableOf(r, f, meta, objects...))
	}
	gvk, items := r.listGVK(), make([]object, len(objects))
	for i, obj := range objects {
		switch {
		case f.metadata:
			items[i] = metadataOf(obj)
		case r.typed:
			items[i] = obj
		default: // it may be stored in another version
			items[i] = withKind(obj, r.gvk())
		}
	}
	if f.metadata {
		gvk = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList")
	}
	if f.protobuf {
		return encodeProtobufList(gvk, meta, items)
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return f.marshal(jsonList{APIVersion: apiVersion, Kind: kind, Metadata: meta, Items: items})
}

type jsonList struct {
	Kind       string          `json:"kind"`
	APIVersion string          `json:"apiVersion"`
	Metadata   metav1.ListMeta `json:"metadata"`
	Items      []object        `json:"items"`
}

// encodeProtobufList writes a list message: all lists of the API have their metadata in
// field 1 and their items in field 2.
func encodeProtobufList(gvk schema.GroupVersionKind, meta metav1.ListMeta,
	items []object) ([]byte, error) {
	head, err := meta.Marshal()
	if err != nil {
		return nil, err
	}
	list := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), head)
	for _, item := range items {
		raw, err := marshalProtobuf(item)
		if err != nil {
			return nil, err
		}
		list = protowire.AppendBytes(protowire.AppendTag(list, 2, protowire.BytesType), raw)
	}
	return wrapProtobuf(gvk, list)
}
