package guard

import (
	"bytes"
	"encoding/json"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// The functions of this file read an answer from the beginning of an encoded object. The answer
// is whole if no further byte can change it.

// readJSON reads an object in JSON. The client's decoder checks the syntax.
func readJSON(head []byte) (a answer) {
	var kind, metadata, details []byte
	closed := wire.Fields(head, func(name []byte, i int) int {
		end := jsonEnd(head, i)
		switch {
		case end < 0:
		case string(name) == `"kind"`:
			kind = head[i:end]
		case string(name) == `"metadata"`:
			metadata = head[i:end]
		case string(name) == `"details"`:
			details = head[i:end]
		}
		if a.status = string(kind) == `"Status"`; kind != nil && metadata != nil && !a.status {
			return -1 // there is no more to read
		}
		return end
	}) >= 0
	noted, ended := metadata, kind != nil || closed // patches have no kind
	if a.status {
		noted, ended = details, closed
	}
	a.whole = ended && (noted == nil && a.status || wire.Fields(noted, func(name []byte, i int) int {
		end := jsonEnd(noted, i)
		if end >= 0 {
			a.set(string(name), noted[i:end])
		}
		return end
	}) >= 0)
	return a
}

// set stores a field of the metadata, or of the details of a Status, in JSON.
func (a *answer) set(name string, value []byte) {
	switch name {
	case `"name"`:
		a.name = text(value)
	case `"uid"`:
		a.uid = text(value)
	case `"resourceVersion"`:
		a.version = text(value)
	case `"deletionTimestamp"`:
		a.deleted = value[0] == '"'
	case `"deletionGracePeriodSeconds"`:
		seconds, err := strconv.ParseInt(string(value), 10, 64)
		a.grace = err == nil && seconds > 0
	case `"finalizers"`:
		a.finalizers = value[0] == '[' && value[wire.Space(value, 1)] != ']'
	}
}

// jsonEnd returns the index after the value that begins at i, -1 if it is cut off.
func jsonEnd(body []byte, i int) int {
	if body[i] == '"' || body[i] == '{' || body[i] == '[' {
		return wire.ValueEnd(body, i)
	}
	if n := bytes.IndexAny(body[i:], ",}] \n\r\t"); n > 0 {
		return i + n
	}
	return -1
}

// text returns the content of a string in JSON, "" for another value.
func text(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	if content := value[1 : len(value)-1]; bytes.IndexByte(content, '\\') < 0 {
		return string(content)
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// readCBOR reads a whole object in CBOR.
func readCBOR(body []byte) (a answer) {
	var object unstructured.Unstructured
	if direct.Unmarshal(body, &object.Object) != nil {
		return a
	}
	a.whole = true
	if a.status = object.GetKind() == "Status"; a.status {
		details, _, _ := unstructured.NestedMap(object.Object, "details")
		a.name, _ = details["name"].(string)
		a.uid, _ = details["uid"].(string)
		return a
	}
	a.name, a.uid, a.version = object.GetName(), string(object.GetUID()), object.GetResourceVersion()
	a.deleted, a.finalizers = object.GetDeletionTimestamp() != nil, len(object.GetFinalizers()) > 0
	period := object.GetDeletionGracePeriodSeconds()
	a.grace = period != nil && *period > 0
	return a
}

// The messages around the metadata, by the field numbers of k8s.io/apimachinery's
// generated.proto files: runtime.Unknown, runtime.TypeMeta, meta/v1 ObjectMeta, Status and
// StatusDetails. The metadata is field 1 of every object, and servers send it first.
const (
	unknownTypeMeta, unknownRaw = 1, 2
	typeMetaKind                = 2
	objectMetadata              = 1
	statusDetails               = 5
	detailsName, detailsUID     = 1, 6

	metaName, metaUID, metaVersion          = 1, 5, 6
	metaDeletion, metaGrace, metaFinalizers = 9, 10, 14
)

// protobufMagic precedes every object in Kubernetes' protobuf encoding.
var protobufMagic = []byte("k8s\x00")

// readProtobuf reads an object in protobuf, with the envelope around it.
func readProtobuf(head []byte) (a answer) {
	message, ok := bytes.CutPrefix(head, protobufMagic)
	if !ok {
		return a
	}
	tag, i := wire.Tag(message, 0)
	begin, end := wire.Span(message, max(i, 0))
	if i < 0 || end < 0 || tag != unknownTypeMeta<<3|wire.BytesType {
		return a
	}
	eachField(message[begin:end], func(field uint32, content []byte, _ uint64) {
		if field == typeMetaKind {
			a.status = string(content) == "Status"
		}
	})
	tag, i = wire.Tag(message, end)
	size, begin := wire.Varint(message, max(i, 0))
	if i < 0 || begin < 0 || tag != unknownRaw<<3|wire.BytesType {
		return a
	}
	object := message[begin:]
	if a.status {
		a.whole = size <= uint64(len(object)) && eachField(object[:size], a.setDetails)
		return a
	}
	tag, i = wire.Tag(object, 0)
	if begin, end = wire.Span(object, max(i, 0)); i >= 0 && end >= 0 && uint64(end) <= size &&
		tag == objectMetadata<<3|wire.BytesType {
		a.whole = eachField(object[begin:end], a.setMetadata)
	}
	return a
}

// setDetails stores a field of a Status in protobuf.
func (a *answer) setDetails(field uint32, content []byte, _ uint64) {
	if field != statusDetails {
		return
	}
	eachField(content, func(field uint32, content []byte, _ uint64) {
		switch field {
		case detailsName:
			a.name = string(content)
		case detailsUID:
			a.uid = string(content)
		}
	})
}

// setMetadata stores a field of the metadata in protobuf.
func (a *answer) setMetadata(field uint32, content []byte, number uint64) {
	switch field {
	case metaName:
		a.name = string(content)
	case metaUID:
		a.uid = string(content)
	case metaVersion:
		a.version = string(content)
	case metaDeletion:
		a.deleted = true
	case metaGrace:
		a.grace = int64(number) > 0
	case metaFinalizers:
		a.finalizers = true
	}
}

// eachField calls f with the fields of a message, each with its content or its number. It
// reports whether the message is whole.
func eachField(message []byte, f func(field uint32, content []byte, number uint64)) bool {
	for i := 0; i < len(message); {
		tag, value := wire.Tag(message, i)
		if value < 0 {
			return false
		}
		var content []byte
		var number uint64
		switch tag & 7 {
		case wire.BytesType:
			begin, end := wire.Span(message, value)
			content, i = message[begin:max(begin, end)], end
		case wire.VarintType:
			number, i = wire.Varint(message, value)
		default:
			i = wire.Skip(message, value, tag&7)
		}
		if i < 0 {
			return false
		}
		f(tag>>3, content, number)
	}
	return true
}
