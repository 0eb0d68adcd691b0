package source

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// The protobuf messages around the objects, by the field numbers of
// k8s.io/apimachinery's generated.proto files: runtime.Unknown, runtime.TypeMeta,
// runtime.RawExtension, meta/v1 WatchEvent, ListMeta and any list type (whose
// metadata is field 1 and whose items are field 2 throughout the API).
const (
	unknownTypeMeta, unknownRaw, unknownEncoding = 1, 2, 3

	typeMetaAPIVersion, typeMetaKind = 1, 2

	watchEventType, watchEventObject = 1, 2

	rawExtensionRaw = 1

	listMetadata, listItems = 1, 2

	listMetaVersion, listMetaContinue, listMetaRemaining = 2, 3, 4
)

// protobufMagic precedes every object in Kubernetes' protobuf encoding.
var protobufMagic = []byte("k8s\x00")

// eachField calls use for every field of a protobuf message: with the content of
// a length-delimited field, or with the value of a varint.
func eachField(message []byte, use func(field protowire.Number, content []byte, value uint64) error) error {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return fmt.Errorf("%w protobuf: %w", ErrMalformed, protowire.ParseError(n))
		}
		message = message[n:]
		var content []byte
		var value uint64
		switch kind {
		case protowire.BytesType:
			content, n = protowire.ConsumeBytes(message)
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return fmt.Errorf("%w protobuf: field %d: %w", ErrMalformed, field, protowire.ParseError(n))
		}
		message = message[n:]
		if err := use(field, content, value); err != nil {
			return err
		}
	}
	return nil
}

// envelope is a runtime.Unknown whose raw bytes were not copied.
type envelope struct {
	apiVersion, kind, encoding string
	raw                        []byte
}

// openEnvelope reads the magic and the runtime.Unknown after it.
func openEnvelope(data []byte) (envelope, error) {
	var e envelope
	message, ok := bytes.CutPrefix(data, protobufMagic)
	if !ok {
		return e, fmt.Errorf("%w: an object in protobuf must begin with %q, received %s", ErrMalformed, protobufMagic, shown(data))
	}
	err := eachField(message, func(field protowire.Number, content []byte, _ uint64) error {
		switch field {
		case unknownTypeMeta:
			return eachField(content, func(field protowire.Number, content []byte, _ uint64) error {
				switch field {
				case typeMetaAPIVersion:
					e.apiVersion = string(content)
				case typeMetaKind:
					e.kind = string(content)
				}
				return nil
			})
		case unknownRaw:
			e.raw = content
		case unknownEncoding:
			e.encoding = string(content)
		}
		return nil
	})
	if err == nil && e.encoding != "" {
		err = fmt.Errorf("%w: an object in the content encoding %q was not asked for", ErrMalformed, e.encoding)
	}
	return e, err
}

// openWatchEvent reads a meta/v1 WatchEvent: its type and the encoded object.
func openWatchEvent(frame []byte) (eventType string, object []byte, err error) {
	err = eachField(frame, func(field protowire.Number, content []byte, _ uint64) error {
		switch field {
		case watchEventType:
			eventType = string(content)
		case watchEventObject:
			return eachField(content, func(field protowire.Number, content []byte, _ uint64) error {
				if field == rawExtensionRaw {
					object = content
				}
				return nil
			})
		}
		return nil
	})
	return eventType, object, err
}

// listHead is the metadata of a list.
type listHead struct {
	version, token string
	remaining      int64
}

// openList reads a list message and calls item for the bytes of every item.
func openList(message []byte, item func([]byte) error) (listHead, error) {
	var head listHead
	err := eachField(message, func(field protowire.Number, content []byte, _ uint64) error {
		switch field {
		case listMetadata:
			return eachField(content, func(field protowire.Number, content []byte, value uint64) error {
				switch field {
				case listMetaVersion:
					head.version = string(content)
				case listMetaContinue:
					head.token = string(content)
				case listMetaRemaining:
					head.remaining = int64(value)
				}
				return nil
			})
		case listItems:
			return item(content)
		}
		return nil
	})
	return head, err
}
