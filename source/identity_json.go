package source

import (
	"encoding/json"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// jsonKind is how a kind stands in objects in JSON, quotes included.
type jsonKind struct{ apiVersion, kind string }

func jsonKindOf(gvk schema.GroupVersionKind) jsonKind {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return jsonKind{`"` + apiVersion + `"`, `"` + kind + `"`}
}

// identify reads the identity of an object in JSON, if the object is of this kind or does
// not say of which, as items of lists do not. It can only if no name of a field in the
// object, or in its metadata, has an escape in it, and none of those that matter comes
// twice or has a value that is no plain text: then a decoder reads the same. Anything else
// is left to the decoder.
func (k jsonKind) identify(object []byte) (id identity, ok bool) {
	var apiVersion, kind, metadata []byte
	end := eachField(object, func(name []byte, i int) int {
		end := anyValueEnd(object, i)
		if end < 0 {
			return -1
		}
		switch string(name) {
		case `"apiVersion"`:
			return once(&apiVersion, object[i:end], end)
		case `"kind"`:
			return once(&kind, object[i:end], end)
		case `"metadata"`:
			return once(&metadata, object[i:end], end)
		}
		return end
	})
	if end < 0 || skipSpace(object, end+1) != len(object) {
		return id, false
	}
	if apiVersion != nil && string(apiVersion) != k.apiVersion || kind != nil && string(kind) != k.kind {
		return id, false
	}
	return identifyMetadata(metadata)
}

// identifyMetadata reads the identity in the field metadata of an object in JSON.
func identifyMetadata(metadata []byte) (id identity, ok bool) {
	end := eachField(metadata, func(name []byte, i int) int {
		end := anyValueEnd(metadata, i)
		if end < 0 {
			return -1
		}
		switch string(name) {
		case `"name"`:
			return onceText(&id.name, metadata[i:end], end)
		case `"namespace"`:
			return onceText(&id.namespace, metadata[i:end], end)
		case `"resourceVersion"`:
			return onceText(&id.version, metadata[i:end], end)
		case `"uid"`:
			return onceText(&id.uid, metadata[i:end], end)
		}
		return end
	})
	return id, end >= 0 && len(id.name) > 0 && len(id.version) > 0 && len(id.uid) > 0
}

// once keeps a value and returns end, or -1 if there is one already.
func once(to *[]byte, value []byte, end int) int {
	if *to != nil {
		return -1
	}
	*to = value
	return end
}

// onceText keeps the text of a string that is plain: without escapes, and in ASCII, so that
// a decoder has nothing to replace.
func onceText(to *[]byte, value []byte, end int) int {
	if value[0] != '"' {
		return -1
	}
	text := value[1 : len(value)-1]
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			return -1
		}
	}
	return once(to, text, end)
}

// anyValueEnd returns the index after the value that begins at i, or -1.
func anyValueEnd(body []byte, i int) int {
	if end := valueEnd(body, i); end >= 0 {
		return end
	}
	end := i
	for end < len(body) && (body[end] >= '0' && body[end] <= '9' || body[end] >= 'a' && body[end] <= 'z' || strings.IndexByte("+-.E", body[end]) >= 0) {
		end++
	}
	if end == i || !json.Valid(body[i:end]) {
		return -1
	}
	return end
}

// identifiableInJSON reports whether values of a Go type are decoded from JSON with their
// metadata from the field metadata, by encoding/json's rules.
func identifiableInJSON(t reflect.Type) bool {
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct || t.Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return false
	}
	field, ok := t.Elem().FieldByName("ObjectMeta")
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return ok && field.Anonymous && len(field.Index) == 1 && field.Type == reflect.TypeFor[metav1.ObjectMeta]() && name == "metadata"
}
