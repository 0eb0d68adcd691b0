package dedup

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An owner is eight bits that tell objects apart. An object has the same in all its states.
type owner uint8

// anyone is an owner that is not known.
const anyone owner = 0

// ownerOf returns the owner that has a UID.
func ownerOf(uid []byte) owner {
	if len(uid) == 0 {
		return anyone
	}
	return owner(1 + mix(uid)>>32%255)
}

// hasMetadata reports whether objects of a Go type begin with their metadata.
func hasMetadata(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	meta, ok := t.FieldByName("ObjectMeta")
	return ok && meta.Type == reflect.TypeFor[metav1.ObjectMeta]()
}

// ownerIn returns the owner of an object in protobuf that begins with its metadata.
func ownerIn(data []byte) owner {
	const metadata, uid = 1<<3 | wireBytes, 5<<3 | wireBytes
	if len(data) == 0 || data[0] != metadata {
		return anyone
	}
	begin, end := span(data, 1)
	if end < 0 {
		return anyone
	}
	for data = data[begin:end]; len(data) > 0 && data[0] <= uid; data = data[end:] {
		if data[0]&7 != wireBytes {
			break
		}
		if begin, end = span(data, 1); end < 0 {
			break
		}
		if data[0] == uid {
			return ownerOf(data[begin:end])
		}
	}
	return anyone
}
