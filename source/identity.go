package source

import (
	"reflect"
	"strings"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// identity is what tells one state of an object from all others, as it stands in the
// object's encoded form.
type identity struct{ namespace, name, version, uid []byte }

// The fields of meta/v1 ObjectMeta that are strings of which one is in an object, in the
// order in which Go's encoders write them; every other field comes after them.
const (
	objectMetadata = 1

	objectMetaName, objectMetaNamespace, objectMetaUID, objectMetaVersion = 1, 3, 5, 6
)

// identify reads the identity of an object in protobuf. It is of the opinion that it
// can only if the object begins with its metadata, and metadata and object are fields in
// rising order to the end, as encoders write them: then a decoder reads the same.
// Anything else is left to the decoder.
func identify(message []byte) (id identity, ok bool) {
	begin, end := 1, 0
	if len(message) == 0 || message[0] != objectMetadata<<3|bytesType {
		return id, false
	}
	if begin, end = span(message, begin); end < 0 {
		return id, false
	}
	metadata := message[begin:end]
	if !ascending(message[end:], objectMetadata) {
		return id, false
	}
	for last := byte(0); len(metadata) > 0; {
		tag := metadata[0]
		field := tag >> 3
		if field > objectMetaVersion {
			break
		}
		if tag&7 != bytesType || field <= last {
			return id, false
		}
		begin, end := span(metadata, 1)
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
		last, metadata = field, metadata[end:]
	}
	known := len(id.name) > 0 && len(id.version) > 0 && len(id.uid) > 0
	return id, known && ascending(metadata, objectMetaVersion)
}

// ascending reports whether b is a sequence of fields above a number that do not fall.
func ascending(b []byte, last uint64) bool {
	for first := true; len(b) > 0; first = false {
		tag, width := varint(b)
		field := tag >> 3
		if width < 0 || field < last || field == last && first || field > 1<<29-1 {
			return false
		}
		last = field
		switch tag & 7 {
		case bytesType:
			_, end := span(b, width)
			if end < 0 {
				return false
			}
			b = b[end:]
		case varintType:
			_, value := varint(b[width:])
			if value < 0 {
				return false
			}
			b = b[width+value:]
		default: // the API has no fields of other types
			return false
		}
	}
	return true
}

// asker asks of encoded objects whether they are held. A nil one holds nothing.
type asker struct {
	held     Held
	identify func(object []byte) (identity, bool)
	key      []byte // scratch
}

// askerFor returns nil if nothing is held or the objects' identity cannot be read.
func (s *REST[T]) askerFor(held Held, protobuf bool) *asker {
	switch {
	case held == nil:
		return nil
	case protobuf && s.identifiable:
		return &asker{held: held, identify: identify}
	case !protobuf && s.identifiableInJSON && s.decoder.wants().Kind != "":
		kind := jsonKindOf(s.decoder.wants())
		return &asker{held: held, identify: kind.identify}
	}
	return nil
}

// holds reports whether an object is held.
func (a *asker) holds(object []byte) bool {
	if a == nil {
		return false
	}
	id, ok := a.identify(object)
	if !ok {
		return false
	}
	key := id.name
	if len(id.namespace) > 0 {
		a.key = append(append(append(a.key[:0], id.namespace...), '/'), id.name...)
		key = a.key
	}
	return a.held(view(key), view(id.version), view(id.uid))
}

// view returns a string in the place of bytes, as long as nobody writes to them.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// identifiable reports whether values of a Go type are encoded with their metadata as
// the first field, as all types of the API are.
func identifiable(t reflect.Type) bool {
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return false
	}
	field, ok := t.Elem().FieldByName("ObjectMeta")
	return ok && field.Anonymous && len(field.Index) == 1 && field.Type == reflect.TypeFor[metav1.ObjectMeta]() &&
		strings.HasPrefix(field.Tag.Get("protobuf"), "bytes,1,")
}
