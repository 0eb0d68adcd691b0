package source

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
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

// fields walks the fields of a message. Its zero value with rest set is ready.
type fields struct {
	rest []byte
	kinds
	// What was found last: a field with its content, if that is length-delimited, or
	// its value.
	field   protowire.Number
	content []byte
	value   uint64
	err     error
}

// kinds are the wire types of a message's fields, by number, plus one; 0 is a field that
// nothing is known of.
type kinds [listMetaRemaining + 1]protowire.Type

const (
	inBytes  = protowire.BytesType + 1
	inVarint = protowire.VarintType + 1
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
	number, kind, n := protowire.ConsumeTag(f.rest)
	if n < 0 {
		f.err = fmt.Errorf("%w protobuf: %w", ErrMalformed, protowire.ParseError(n))
		return false
	}
	if int(number) < len(f.kinds) && f.kinds[number] != 0 && f.kinds[number] != kind+1 {
		f.err = fmt.Errorf("%w protobuf: field %d has the wire type %d", ErrMalformed, number, kind)
		return false
	}
	f.rest = f.rest[n:]
	f.field, f.content, f.value = number, nil, 0
	switch kind {
	case protowire.BytesType:
		f.content, n = protowire.ConsumeBytes(f.rest)
	case protowire.VarintType:
		f.value, n = protowire.ConsumeVarint(f.rest)
	default:
		n = protowire.ConsumeFieldValue(number, kind, f.rest)
	}
	if n < 0 {
		f.err = fmt.Errorf("%w protobuf: field %d: %w", ErrMalformed, number, protowire.ParseError(n))
		return false
	}
	f.rest = f.rest[n:]
	return true
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
		return e, fmt.Errorf("%w: an object in protobuf must begin with %q, received %s", ErrMalformed, protobufMagic, quote(data))
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

// openList reads a list message and calls item for the bytes of every item.
func openList(message []byte, item func([]byte) error) (listHead, error) {
	var head listHead
	f := fields{rest: message, kinds: listKinds}
	for f.next() {
		switch f.field {
		case listMetadata:
			m := fields{rest: f.content, kinds: listMetaKinds}
			for m.next() {
				switch m.field {
				case listMetaVersion:
					head.version = string(m.content)
				case listMetaContinue:
					head.token = string(m.content)
				case listMetaRemaining:
					head.remaining = int64(m.value)
				}
			}
			if m.err != nil {
				return head, m.err
			}
		case listItems:
			if err := item(f.content); err != nil {
				return head, err
			}
		}
	}
	return head, f.err
}
