package source

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The protobuf messages around the objects, by the field numbers of
// k8s.io/apimachinery's generated.proto files: runtime.Unknown, runtime.TypeMeta,
// runtime.RawExtension, meta/v1 WatchEvent, ListMeta and any list type (whose
// metadata is field 1 and whose items are field 2 throughout the API).
const (
	unknownTypeMeta, unknownRaw, unknownEncoding, unknownContentType = 1, 2, 3, 4

	typeMetaAPIVersion, typeMetaKind = 1, 2

	watchEventType, watchEventObject = 1, 2

	rawExtensionRaw = 1

	listMetadata, listItems = 1, 2

	listMetaSelfLink, listMetaVersion, listMetaContinue, listMetaRemaining = 1, 2, 3, 4
)

// protobufMagic precedes every object in Kubernetes' protobuf encoding.
var protobufMagic = []byte("k8s\x00")

// fields walks the fields of a message, as the generated code does that client-go
// decodes with: what that takes is taken, and what it refuses is refused. With rest and
// kinds set it is ready.
type fields struct {
	rest []byte
	kinds
	// What was found last: a field with its content, if that is length-delimited, or
	// its value.
	field   int32
	content []byte
	value   uint64
	err     error
	cut     bool // err says that something is missing at the end
}

// The wire types of protobuf.
const (
	varintType     = 0
	fixed64Type    = 1
	bytesType      = 2
	startGroupType = 3
	endGroupType   = 4
	fixed32Type    = 5
)

// kinds are the wire types of a message's fields, by number, plus one; 0 is a field that
// nothing is known of.
type kinds [listMetaRemaining + 1]uint8

const (
	inBytes  = bytesType + 1
	inVarint = varintType + 1
)

// The fields that generated code would insist on, also those that are not used here.
var (
	unknownKinds      = kinds{unknownTypeMeta: inBytes, unknownRaw: inBytes, unknownEncoding: inBytes, unknownContentType: inBytes}
	typeMetaKinds     = kinds{typeMetaAPIVersion: inBytes, typeMetaKind: inBytes}
	watchEventKinds   = kinds{watchEventType: inBytes, watchEventObject: inBytes}
	rawExtensionKinds = kinds{rawExtensionRaw: inBytes}
	listKinds         = kinds{listMetadata: inBytes, listItems: inBytes}
	listMetaKinds     = kinds{listMetaSelfLink: inBytes, listMetaVersion: inBytes, listMetaContinue: inBytes, listMetaRemaining: inVarint}
)

// next finds the next field. It reports false at the end and where what follows is no
// field, or one of another wire type than it should have; err says which.
func (f *fields) next() bool {
	if len(f.rest) == 0 || f.err != nil {
		return false
	}
	tag, n := varint(f.rest)
	f.field, f.content, f.value = int32(tag>>3), nil, 0
	kind := uint8(tag & 7)
	switch {
	case n < 0:
		f.cut = len(f.rest) < maxVarint
		return f.fail("it is cut off within a tag")
	case kind == endGroupType || f.field <= 0:
		return f.fail(fmt.Sprintf("the tag %d is none of a field", tag))
	case int(f.field) >= len(f.kinds) || f.kinds[f.field] == 0:
		n = skip(f.rest)
	case f.kinds[f.field] != kind+1:
		return f.fail(fmt.Sprintf("field %d has the wire type %d", f.field, kind))
	case kind == varintType:
		var width int
		if f.value, width = varint(f.rest[n:]); width < 0 {
			n = -1
		} else {
			n += width
		}
	default:
		var end int
		if n, end = span(f.rest, n); end >= 0 {
			f.content, n = f.rest[n:end], end
		} else {
			n = -1
		}
	}
	if n < 0 {
		f.cut = true
		return f.fail(fmt.Sprintf("field %d is cut off", f.field))
	}
	f.rest = f.rest[n:]
	return true
}

func (f *fields) fail(why string) bool {
	f.err = fmt.Errorf("%w protobuf: %s", ErrMalformed, why)
	return false
}

// maxVarint is the largest width of a number.
const maxVarint = 10

// varint reads a number. Its width is -1 where there is none.
func varint(b []byte) (v uint64, width int) {
	for i := 0; i < len(b) && i < maxVarint; i++ {
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, -1
}

// span reads a length at begin. It returns where what it announces begins and ends; the
// end is -1 if that is not all there.
func span(b []byte, begin int) (start, end int) {
	length, width := varint(b[begin:])
	start = begin + width
	if width < 0 || length > uint64(len(b)-start) {
		return 0, -1
	}
	return start, start + int(length)
}

// skip returns the width of a field, -1 where there is none. A group ends where as many
// have ended as have begun.
func skip(b []byte) int {
	for i, depth := 0, 0; i < len(b); {
		tag, width := varint(b[i:])
		if width < 0 {
			return -1
		}
		i += width
		switch tag & 7 {
		case varintType:
			if _, width = varint(b[i:]); width < 0 {
				return -1
			}
			i += width
		case fixed64Type:
			i += 8
		case bytesType:
			if _, i = span(b, i); i < 0 {
				return -1
			}
		case startGroupType:
			depth++
		case endGroupType:
			if depth--; depth < 0 {
				return -1
			}
		case fixed32Type:
			i += 4
		default:
			return -1
		}
		if i > len(b) {
			return -1
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// envelope is a runtime.Unknown whose bytes were not copied.
type envelope struct {
	apiVersion, kind, raw []byte
}

// openEnvelope reads the magic and the runtime.Unknown after it. As in client-go, it is
// of no consequence which encoding and content type that names: a server that did not
// write protobuf is found out by its bytes.
func openEnvelope(data []byte) (envelope, error) {
	var e envelope
	message, ok := bytes.CutPrefix(data, protobufMagic)
	if !ok {
		return e, fmt.Errorf("%w: an object in protobuf must begin with %q, received %s", ErrMalformed, protobufMagic, shown(data))
	}
	f := fields{rest: message, kinds: unknownKinds}
	for f.next() {
		switch f.field {
		case unknownTypeMeta:
			t := fields{rest: f.content, kinds: typeMetaKinds}
			for t.next() {
				switch t.field {
				case typeMetaAPIVersion:
					e.apiVersion = t.content
				case typeMetaKind:
					e.kind = t.content
				}
			}
			if t.err != nil {
				return e, t.err
			}
		case unknownRaw:
			e.raw = f.content
		}
	}
	return e, f.err
}

// describes reports whether what is in the envelope is of that kind.
func (e *envelope) describes(apiVersion, kind string) bool {
	return string(e.apiVersion) == apiVersion && string(e.kind) == kind
}

// groupVersionKind says of what kind is what is in the envelope.
func (e *envelope) groupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(string(e.apiVersion), string(e.kind))
}

// openWatchEvent reads a meta/v1 WatchEvent: its type and the encoded object.
func openWatchEvent(frame []byte) (eventType, object []byte, err error) {
	f := fields{rest: frame, kinds: watchEventKinds}
	for f.next() {
		switch f.field {
		case watchEventType:
			eventType = f.content
		case watchEventObject:
			r := fields{rest: f.content, kinds: rawExtensionKinds}
			for r.next() {
				if r.field == rawExtensionRaw {
					object = r.content
				}
			}
			if r.err != nil {
				return nil, nil, r.err
			}
		}
	}
	return eventType, object, f.err
}

// listHead is the metadata of a list.
type listHead struct {
	version, token string
	remaining      int64
}

// read reads the metadata of a list. Of what comes twice, the last holds.
func (h *listHead) read(metadata []byte) error {
	m := fields{rest: metadata, kinds: listMetaKinds}
	for m.next() {
		switch m.field {
		case listMetaVersion:
			h.version = string(m.content)
		case listMetaContinue:
			h.token = string(m.content)
		case listMetaRemaining:
			h.remaining = int64(m.value)
		}
	}
	return m.err
}

// openList reads a list message and calls item for the bytes of every item.
func openList(message []byte, item func([]byte) error) (listHead, error) {
	var head listHead
	f := fields{rest: message, kinds: listKinds}
	for f.next() {
		var err error
		switch f.field {
		case listMetadata:
			err = head.read(f.content)
		case listItems:
			err = item(f.content)
		}
		if err != nil {
			return head, err
		}
	}
	return head, f.err
}
