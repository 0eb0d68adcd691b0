package source

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// The protobuf messages around the objects, by the field numbers of k8s.io/apimachinery's
// generated.proto files: runtime.Unknown, runtime.TypeMeta, runtime.RawExtension, meta/v1
// WatchEvent, ListMeta and any list type, whose metadata is field 1 and whose items are
// field 2 throughout the API.
const (
	unknownTypeMeta, unknownRaw, unknownFields = 1, 2, 4 // and encoding, content type
	typeMetaAPIVersion, typeMetaKind           = 1, 2
	watchEventType, watchEventObject           = 1, 2
	rawExtensionRaw                            = 1
	listMetadata, listItems                    = 1, 2

	listMetaVersion, listMetaContinue, listMetaRemaining = 2, 3, 4 // 1 is the self link
	listMetaShardInfo, shardInfoSelector                 = 5, 1
)

// protobufMagic precedes every object in Kubernetes' protobuf encoding.
var protobufMagic = []byte("k8s\x00")

// fields reads the fields of a message in order. It accepts and refuses the same messages as the
// generated code, with which client-go decodes. With rest and known set it is ready.
type fields struct {
	rest []byte
	// The fields 1 to known are length-delimited, except the number, if there is one. Others
	// are skipped. Those that are not used here count too: generated code checks them.
	known, number int32

	// The field that was read last, with its content or its value.
	field   int32
	content []byte
	value   uint64
	err     error
	cut     bool // err says that something is missing at the end
}

// maxVarint is the largest width of a number.
const maxVarint = 10

// next reads the next field. It reports false at the end, and before something that is not a
// field or has another wire type than it should have; err says which.
func (f *fields) next() bool {
	if len(f.rest) == 0 || f.err != nil {
		return false
	}
	tag, end := wire.Varint(f.rest, 0)
	f.field, f.content, f.value = int32(tag>>3), nil, 0
	wireType := tag & 7
	switch {
	case end < 0:
		f.cut = len(f.rest) < maxVarint
		return f.fail("it is cut off within a tag")
	case wireType == wire.EndGroupType || f.field <= 0:
		return f.fail(fmt.Sprintf("the tag %d is not that of a field", tag))
	case f.field > f.known:
		end = wire.SkipField(f.rest, 0)
	case f.field == f.number && wireType == wire.VarintType:
		f.value, end = wire.Varint(f.rest, end)
	case f.field == f.number || wireType != wire.BytesType:
		return f.fail(fmt.Sprintf("field %d has the wire type %d", f.field, wireType))
	default:
		var begin int
		if begin, end = wire.Span(f.rest, end); end >= 0 {
			f.content = f.rest[begin:end]
		}
	}
	if end < 0 {
		f.cut = true
		return f.fail(fmt.Sprintf("field %d is cut off", f.field))
	}
	f.rest = f.rest[end:]
	return true
}

func (f *fields) fail(why string) bool {
	f.err = fmt.Errorf("%w protobuf: %s", ErrMalformed, why)
	return false
}

// envelope is a runtime.Unknown whose bytes were not copied.
type envelope struct {
	apiVersion, kind, raw []byte
}

// openEnvelope reads the magic and the runtime.Unknown after it. Like client-go, it ignores
// the encoding and content type there: the bytes show whether they are protobuf.
func openEnvelope(data []byte) (envelope, error) {
	var e envelope
	message, ok := bytes.CutPrefix(data, protobufMagic)
	if !ok {
		return e, noMagic(data)
	}
	f := fields{rest: message, known: unknownFields}
	for f.next() {
		switch f.field {
		case unknownTypeMeta:
			if err := e.readKind(f.content); err != nil {
				return e, err
			}
		case unknownRaw:
			e.raw = f.content
		}
	}
	return e, f.err
}

// noMagic returns the error of data that does not begin as an object in protobuf does.
func noMagic(received []byte) error {
	return fmt.Errorf("%w: an object in protobuf must begin with %q, received %s",
		ErrMalformed, protobufMagic, summary(received))
}

// readKind reads a runtime.TypeMeta. Fields that it lacks keep their values.
func (e *envelope) readKind(typeMeta []byte) error {
	f := fields{rest: typeMeta, known: typeMetaKind}
	for f.next() {
		switch f.field {
		case typeMetaAPIVersion:
			e.apiVersion = f.content
		case typeMetaKind:
			e.kind = f.content
		}
	}
	return f.err
}

func (e *envelope) describes(apiVersion, kind string) bool {
	return string(e.apiVersion) == apiVersion && string(e.kind) == kind
}

func (e *envelope) groupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(string(e.apiVersion), string(e.kind))
}

// openWatchEvent reads a meta/v1 WatchEvent: its type and the encoded object.
func openWatchEvent(frame []byte) (eventType, object []byte, err error) {
	f := fields{rest: frame, known: watchEventObject}
	for f.next() {
		switch f.field {
		case watchEventType:
			eventType = f.content
		case watchEventObject:
			r := fields{rest: f.content, known: rawExtensionRaw}
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

// readListMeta reads the metadata of a list. The last of repeated fields counts.
func readListMeta(metadata []byte, to *metav1.ListMeta) error {
	m := fields{rest: metadata, known: listMetaShardInfo, number: listMetaRemaining}
	for m.next() {
		switch m.field {
		case listMetaVersion:
			to.ResourceVersion = string(m.content)
		case listMetaContinue:
			to.Continue = string(m.content)
		case listMetaRemaining:
			to.RemainingItemCount = new(int64(m.value))
		case listMetaShardInfo:
			if err := readShardInfo(m.content, to); err != nil {
				return err
			}
		}
	}
	return m.err
}

// readShardInfo notes that a list has a shardInfo, of which nothing else is used.
func readShardInfo(info []byte, to *metav1.ListMeta) error {
	to.ShardInfo = &metav1.ShardInfo{}
	f := fields{rest: info, known: shardInfoSelector}
	for f.next() { // it is malformed where the generated code says so
	}
	return f.err
}
