package dedup

import (
	"reflect"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// An objectTag is eight bits of the UID of an object, which tell objects apart. All states
// of an object have the same.
type objectTag uint8

// noTag is the tag of an object whose UID is not known.
const noTag objectTag = 0

func tagOf(uid []byte) objectTag {
	if len(uid) == 0 {
		return noTag
	}
	return objectTag(1 + mix(uid)>>32%255)
}

// hasMetadata reports whether objects of a Go type begin with their metadata.
func hasMetadata(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	meta, ok := t.FieldByName("ObjectMeta")
	return ok && meta.Type == objectMeta
}

// tagIn returns the tag of an object in protobuf that begins with its metadata.
func tagIn(data []byte) objectTag {
	const metadata, uid = 1<<3 | wire.BytesType, 5<<3 | wire.BytesType
	if len(data) == 0 || data[0] != metadata {
		return noTag
	}
	begin, end := wire.Span(data, 1)
	if end < 0 {
		return noTag
	}
	for data = data[begin:end]; len(data) > 0 && data[0] <= uid; data = data[end:] {
		if data[0]&7 != wire.BytesType {
			break
		}
		if begin, end = wire.Span(data, 1); end < 0 {
			break
		}
		if data[0] == uid {
			return tagOf(data[begin:end])
		}
	}
	return noTag
}
