package apisim

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// marshaler is what API types have in addition to runtime.Object.
type marshaler interface{ Marshal() ([]byte, error) }

var protobufMagic = []byte("k8s\x00")

// shown returns an object in a form, with its kind.
func shown(r *resource, f form, obj object) runtime.Object {
	switch {
	case f.table:
		return tabled(r, f, metav1.ListMeta{ResourceVersion: obj.GetResourceVersion()}, obj)
	case !f.metadata:
		return withKind(obj, r.gvk())
	}
	if partial, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return partial
	}
	return metadataOf(obj)
}

// encode writes an object that has its kind.
func encode(f form, obj runtime.Object) ([]byte, error) {
	if !f.protobuf {
		return f.marshal(obj)
	}
	message, ok := obj.(marshaler)
	if !ok {
		return nil, fmt.Errorf("apisim: a %T cannot be encoded in protobuf", obj)
	}
	raw, err := message.Marshal()
	if err != nil {
		return nil, err
	}
	return envelop(obj.GetObjectKind().GroupVersionKind(), raw)
}

// marshal writes a value in JSON or YAML.
func (f form) marshal(value any) ([]byte, error) {
	if f.yaml {
		return yaml.Marshal(value)
	}
	return json.Marshal(value)
}

// envelop puts an encoded object into a runtime.Unknown, after the magic.
func envelop(gvk schema.GroupVersionKind, raw []byte) ([]byte, error) {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	data := make([]byte, len(protobufMagic)+unknown.Size())
	n, err := unknown.MarshalTo(data[copy(data, protobufMagic):])
	if err != nil {
		return nil, err
	}
	return data[:len(protobufMagic)+n], nil
}

// encodeEvent writes a watch frame about a state of an object.
func encodeEvent(r *resource, f form, kind string, obj object) ([]byte, error) {
	raw, err := encode(f, shown(r, f, obj))
	if err != nil {
		return nil, err
	}
	return frameOf(f, kind, raw)
}

// frameOf writes a watch frame around an encoded object.
func frameOf(f form, kind string, raw []byte) ([]byte, error) {
	watchEvent := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}}
	if !f.protobuf {
		frame, err := json.Marshal(watchEvent)
		return append(frame, '\n'), err
	}
	frame := make([]byte, 4+watchEvent.Size())
	n, err := watchEvent.MarshalTo(frame[4:])
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(frame, uint32(n))
	return frame[:4+n], nil
}

// encodeList writes a list of stored objects. The items of typed lists have no kind
// of their own, as those of a real server.
func encodeList(r *resource, f form, meta metav1.ListMeta, objects []object) ([]byte, error) {
	if f.table {
		return f.marshal(tabled(r, f, meta, objects...))
	}
	gvk := r.listGVK()
	items := objects
	switch {
	case f.metadata:
		gvk = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList")
		items = make([]object, len(objects))
		for i, obj := range objects {
			items[i] = metadataOf(obj)
		}
	case !r.typed: // they may be stored in another version
		items = make([]object, len(objects))
		for i, obj := range objects {
			items[i] = withKind(obj, r.gvk())
		}
	}
	if f.protobuf {
		return encodeProtobufList(gvk, meta, items)
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	if items == nil {
		items = []object{}
	}
	return f.marshal(jsonList{APIVersion: apiVersion, Kind: kind, Metadata: meta, Items: items})
}

type jsonList struct {
	Kind       string          `json:"kind"`
	APIVersion string          `json:"apiVersion"`
	Metadata   metav1.ListMeta `json:"metadata"`
	Items      []object        `json:"items"`
}

// encodeProtobufList writes a list message: all lists of the API have their metadata
// in field 1 and their items in field 2.
func encodeProtobufList(gvk schema.GroupVersionKind, meta metav1.ListMeta, items []object) ([]byte, error) {
	head, err := meta.Marshal()
	if err != nil {
		return nil, err
	}
	list := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), head)
	for _, item := range items {
		message, ok := item.(marshaler)
		if !ok {
			return nil, fmt.Errorf("apisim: a %T cannot be encoded in protobuf", item)
		}
		raw, err := message.Marshal()
		if err != nil {
			return nil, err
		}
		list = protowire.AppendBytes(protowire.AppendTag(list, 2, protowire.BytesType), raw)
	}
	return envelop(gvk, list)
}
