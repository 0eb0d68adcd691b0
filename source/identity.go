package source

import (
	"encoding/json"
	"reflect"
	"strings"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// identity tells one state of an object from all others, as it stands in the object's
// encoded form.
type identity struct{ namespace, name, version, uid []byte }

func (id *identity) complete() bool {
	return len(id.name) > 0 && len(id.version) > 0 && len(id.uid) > 0
}

// The fields of meta/v1 ObjectMeta that are the identity, in the order in which Go's
// encoders write them; all other fields that encoders write come after them.
const (
	objectMetadata = 1

	objectMetaName, objectMetaNamespace, objectMetaUID, objectMetaVersion = 1, 3, 5, 6
)

// identify reads the identity of an object in protobuf. It refuses objects that do not begin
// with their metadata, and those in which object and metadata are not fields in rising order
// to the end, as encoders write them: then a decoder might read something else.
func identify(message []byte) (id identity, ok bool) {
	if len(message) == 0 || message[0] != objectMetadata<<3|wire.BytesType {
		return id, false
	}
	begin, end := wire.Span(message, 1)
	if end < 0 || !ascending(message, end, objectMetadata) {
		return id, false
	}
	metadata := message[begin:end]
	i, last := 0, byte(0)
	for i < len(metadata) {
		field := metadata[i] >> 3
		if field > objectMetaVersion {
			break
		}
		if metadata[i]&7 != wire.BytesType || field <= last {
			return id, false
		}
		begin, end := wire.Span(metadata, i+1)
		if end < 0 {
			return id, false
		}
		switch field {
		case objectMetaName:
			id.name = metadata[begin:end]
		case objectMetaNamespace:
			id.namespace = metadata[begin:end]
		case objectMetaUID:
			id.uid = metadata[begin:end]
		case objectMetaVersion:
			id.version = metadata[begin:end]
		}
		last, i = field, end
	}
	return id, id.complete() && ascending(metadata, i, objectMetaVersion)
}

// ascending reports whether b, from i on, is a sequence of fields above a number that do not
// fall.
func ascending(b []byte, i int, last uint64) bool {
	for first := true; i < len(b); first = false {
		var tag uint64
		if tag, i = wire.Varint(b, i); i < 0 {
			return false
		}
		field, wireType := tag>>3, uint32(tag&7)
		if field < last || field == last && first || field > 1<<29-1 {
			return false
		}
		last = field
		if wireType != wire.BytesType && wireType != wire.VarintType {
			return false // the API has no fields of other types
		}
		if i = wire.Skip(b, i, wireType); i < 0 {
			return false
		}
	}
	return true
}

// A filter drops encoded objects that the caller does not want, or has cached. A nil one drops
// nothing.
type filter struct {
	selects  Selects  // nil selects all
	isCached IsCached // nil has none
	identify func(object []byte) (identity, bool)
	key      []byte // scratch
}

// filterFor returns nil if there is nothing to drop or the objects' identity cannot be read.
func (s *REST[T]) filterFor(selects Selects, isCached IsCached, protobuf bool) *filter {
	switch {
	case selects == nil && isCached == nil:
		return nil
	case protobuf && s.identifiable:
		return &filter{selects: selects, isCached: isCached, identify: identify}
	case !protobuf && s.identifiableInJSON && s.decoder.wants().Kind != "":
		identify := jsonKindOf(s.decoder.wants()).identify
		return &filter{selects: selects, isCached: isCached, identify: identify}
	}
	return nil
}

// drops reports whether an object is not wanted or cached.
func (f *filter) drops(object []byte) bool {
	if f == nil {
		return false
	}
	id, ok := f.identify(object)
	switch {
	case !ok:
		return false
	case f.selects != nil && !f.selects(view(id.uid), view(id.namespace)):
		return true
	case f.isCached == nil:
		return false
	}
	key := id.name
	if len(id.namespace) > 0 {
		f.key = append(append(append(f.key[:0], id.namespace...), '/'), id.name...)
		key = f.key
	}
	return f.isCached(view(key), view(id.version), view(id.uid))
}

// view returns a string with the memory of b, valid until b is written to.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// identifiable reports whether values of a Go type are encoded in protobuf with their
// metadata as the first field, as all types of the API are.
func identifiable(t reflect.Type) bool {
	tag, ok := metadataTag(t)
	return ok && strings.HasPrefix(tag.Get("protobuf"), "bytes,1,")
}

// identifiableInJSON reports whether values of a Go type are decoded from JSON with their
// metadata from the field metadata, by encoding/json's rules.
func identifiableInJSON(t reflect.Type) bool {
	tag, ok := metadataTag(t)
	name, _, _ := strings.Cut(tag.Get("json"), ",")
	return ok && name == "metadata" && !t.Implements(reflect.TypeFor[json.Unmarshaler]())
}

// metadataTag returns the tag of the embedded ObjectMeta of the struct that a type points to.
func metadataTag(t reflect.Type) (reflect.StructTag, bool) {
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return "", false
	}
	field, ok := t.Elem().FieldByName("ObjectMeta")
	return field.Tag, ok && field.Anonymous && len(field.Index) == 1 &&
		field.Type == reflect.TypeFor[metav1.ObjectMeta]()
}
