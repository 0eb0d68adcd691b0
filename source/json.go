package source

import (
	"encoding/json"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// jsonList is a list whose items are still encoded.
type jsonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []json.RawMessage `json:"items"`
}

// isListOf reports whether this is a list of objects of a kind. A custom resource definition
// may call its lists anything, but not as it calls its objects. A list without items must
// have the usual name: other documents whose kind ends in List, such as those of discovery,
// are not empty lists.
func (l *jsonList) isListOf(kind schema.GroupVersionKind) bool {
	isList := strings.HasSuffix(l.Kind, "List")
	switch {
	case l.Items != nil:
		return isList || l.Kind != "" && l.Kind != kind.Kind
	case kind.Kind != "":
		return l.Kind == kind.Kind+"List"
	default:
		return isList && l.Kind != "APIResourceList" &&
			l.GroupVersionKind().GroupVersion() == kind.GroupVersion()
	}
}

// maxUncut bounds an answer that is left to the general decoder, which may need fifty times
// its size in memory. Servers send none.
const maxUncut = 64 << 20

// openJSONList reads a list without its items, which it cuts out as they are. Their decoder
// checks whether they are JSON. An error of item, which is called with the size of each, is
// returned.
//
// The items are nearly all of an answer, and the general decoder goes through them three
// times: to check them, to find where each ends, and to decode them. Here their brackets are
// matched, once, and the general decoder gets the list without them. It gets the whole list if
// the items cannot be found by their brackets.
func openJSONList(body []byte, item func(size int) error) (list jsonList, err error) {
	items, rest, err := cutItems(body, item)
	if err == errUncut && len(body) <= maxUncut {
		err = unmarshalJSON(body, &list)
		for i := 0; i < len(list.Items) && err == nil; i++ {
			err = item(len(list.Items[i]))
		}
		return list, err
	}
	if err == nil {
		err = unmarshalJSON(rest, &list)
		list.Items = items
	}
	return list, err
}

// errUncut is a list whose items cannot be found by their brackets, or come twice.
var errUncut = errors.New("brackets and quotes do not show where its items are")

// cutItems returns the items of a list, and the list without them. An error of item is returned.
func cutItems(body []byte, item func(size int) error) (
	items []json.RawMessage, rest []byte, err error) {
	begin, end := -1, -1
	closed := wire.Fields(body, func(field []byte, i int) int {
		if string(field) != `"items"` {
			return wire.ValueEnd(body, i)
		}
		if begin >= 0 || body[i] != '[' {
			return -1
		}
		begin = i
		items, end, err = cutElements(body, i, item)
		return end
	})
	if err != nil {
		return nil, nil, err
	}
	if closed < 0 || begin < 0 {
		return nil, nil, errUncut
	}
	rest = append(make([]byte, 0, len(body)-(end-begin)+2), body[:begin]...)
	rest = append(append(rest, "[]"...), body[end:]...)
	return items, rest, nil
}

// cutElements cuts the array that begins at i, and returns the index after it, or -1.
func cutElements(body []byte, i int, element func(size int) error) ([]json.RawMessage, int, error) {
	elements := []json.RawMessage{}
	i = wire.Space(body, i+1)
	if i < len(body) && body[i] == ']' {
		return elements, i + 1, nil
	}
	for i < len(body) {
		end := wire.ValueEnd(body, i)
		if end < 0 {
			break
		}
		if err := element(end - i); err != nil {
			return nil, -1, err
		}
		elements = append(elements, body[i:end:end])
		i = wire.Space(body, end)
		if i == len(body) || body[i] != ',' && body[i] != ']' {
			break
		}
		if body[i] == ']' {
			return elements, i + 1, nil
		}
		i = wire.Space(body, i+1)
	}
	return nil, -1, nil
}

// jsonWatchEvent is a watch event whose object is still encoded.
type jsonWatchEvent struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// cutEvent returns the type of a watch event and its object, as they are in the frame. It
// returns false if the frame holds more or less than a server sends. The decoder of the
// object checks whether it is JSON.
func cutEvent(frame []byte) (name, object []byte, ok bool) {
	end := wire.Fields(frame, func(field []byte, i int) int {
		end := wire.ValueEnd(frame, i)
		switch {
		case end < 0:
		case string(field) == `"type"` && name == nil && frame[i] == '"':
			name = frame[i+1 : end-1]
		case string(field) == `"object"` && object == nil && frame[i] == '{':
			object = frame[i:end:end]
		default:
			return -1
		}
		return end
	})
	ok = end >= 0 && wire.Space(frame, end+1) == len(frame) && object != nil
	return name, object, ok && (eventTypeOf(name) != 0 || string(name) == "ERROR")
}

// jsonKind is a kind as it stands in objects in JSON, quotes included.
type jsonKind struct{ apiVersion, kind string }

func jsonKindOf(gvk schema.GroupVersionKind) jsonKind {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return jsonKind{`"` + apiVersion + `"`, `"` + kind + `"`}
}

// identify reads the identity of an object in JSON, if the object is of this kind or without a
// kind, as items of lists are. An empty kind is any. It refuses objects in which the name of a
// field has an escape, or a field that matters comes twice or is not plain text: then a decoder
// might read something else.
func (k jsonKind) identify(object []byte) (id identity, ok bool) {
	var apiVersion, kind, metadata []byte
	if !readOnce(object, jsonField{`"metadata"`, &metadata}, jsonField{`"kind"`, &kind},
		jsonField{`"apiVersion"`, &apiVersion}) ||
		apiVersion != nil && string(apiVersion) != k.apiVersion ||
		kind != nil && k.kind != `""` && string(kind) != k.kind {
		return id, false
	}
	if !readOnce(metadata, jsonField{`"name"`, &id.name}, jsonField{`"namespace"`, &id.namespace},
		jsonField{`"resourceVersion"`, &id.version}, jsonField{`"uid"`, &id.uid}) {
		return id, false
	}
	plain := unquote(&id.name) && unquote(&id.namespace) && unquote(&id.version) && unquote(&id.uid)
	return id, plain && id.complete()
}

// jsonField is a field to be read, by its name with the quotes.
type jsonField struct {
	name  string
	value *[]byte
}

// readOnce reads fields of an object as they are encoded. It reports false if one comes twice
// or the object is not the whole text.
func readOnce(object []byte, fields ...jsonField) bool {
	end := wire.Fields(object, func(name []byte, i int) int {
		end := anyValueEnd(object, i)
		for _, f := range fields {
			if end < 0 || string(name) != f.name {
				continue
			}
			if *f.value != nil {
				return -1
			}
			*f.value = object[i:end]
		}
		return end
	})
	return end >= 0 && wire.Space(object, end+1) == len(object)
}

// unquote takes the quotes off a string, if there is one. It reports false for another value
// and for a string that is not plain: with escapes, or not in ASCII, so that a decoder would
// replace something in it.
func unquote(value *[]byte) bool {
	text := *value
	if text == nil {
		return true
	}
	if text[0] != '"' {
		return false
	}
	text = text[1 : len(text)-1]
	*value = text
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			return false
		}
	}
	return true
}

// anyValueEnd returns the index after the value of any kind that begins at i, or -1.
func anyValueEnd(body []byte, i int) int {
	if end := wire.ValueEnd(body, i); end >= 0 {
		return end
	}
	end := i
	const letters = "+-.E0123456789abcdefghijklmnopqrstuvwxyz" // of numbers and words
	for end < len(body) && strings.IndexByte(letters, body[end]) >= 0 {
		end++
	}
	if end == i || !json.Valid(body[i:end]) {
		return -1
	}
	return end
}
