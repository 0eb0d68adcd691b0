package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// jsonList is a list whose items are still encoded.
type jsonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []json.RawMessage `json:"items"`
}

// of reports whether this is a list of objects of a kind. A custom resource definition may
// call its lists anything, but not as it calls its objects. One without items is called as
// usual: other documents whose kind ends in List, such as those of discovery, are no empty lists.
func (l *jsonList) of(kind schema.GroupVersionKind) bool {
	ends := strings.HasSuffix(l.Kind, "List")
	switch {
	case l.Items != nil:
		return ends || l.Kind != "" && l.Kind != kind.Kind
	case kind.Kind != "":
		return l.Kind == kind.Kind+"List"
	default:
		return ends && l.Kind != "APIResourceList" && l.GroupVersionKind().GroupVersion() == kind.GroupVersion()
	}
}

// openJSONList reads a list but for its items, which it cuts out as they are. Whether
// they are JSON is found out when they are decoded. An error of item, which is called with
// the size of each, is returned.
func openJSONList(body []byte, item func(size int) error) (jsonList, error) {
	var list jsonList
	return list, openArray(body, `"items"`, &list, &list.Items, item)
}

// mostUncut bounds an answer that is left to a general decoder, which may take fifty times
// of that in memory. Servers send none.
const mostUncut = 64 << 20

// openArray reads the object in body into the value at into, but for the elements of the
// array of a name, which it cuts out as they are; array is where in that value they belong.
//
// The elements are nearly all of an answer, and a general decoder goes through them three
// times: to check them, to find where each ends, and when they are decoded. Here their
// brackets are matched, once, and the general decoder gets the object without them. One in
// which the elements cannot be found so is left to it whole.
func openArray(body []byte, name string, into any, array *[]json.RawMessage, element func(size int) error) error {
	elements, rest, err := cutArray(body, name, element)
	if err == errUncut && len(body) <= mostUncut {
		err = unmarshalJSON(body, into)
		for i := 0; i < len(*array) && err == nil; i++ {
			err = element(len((*array)[i]))
		}
		return err
	}
	if err != nil {
		return err
	}
	err = unmarshalJSON(rest, into)
	*array = elements
	return err
}

// errUncut is an object in which an array cannot be found by its brackets, or more than one.
var errUncut = errors.New("brackets and quotes do not show where its elements are")

// cutArray returns what stands in the array of a name, quotes included, in the object in
// body, and the object with nothing in it. An error of element is returned.
func cutArray(body []byte, name string, element func(size int) error) (elements []json.RawMessage, rest []byte, err error) {
	begin, end := -1, -1
	closed := eachField(body, func(field []byte, i int) int {
		if string(field) != name {
			return valueEnd(body, i)
		}
		if begin >= 0 || body[i] != '[' {
			return -1
		}
		begin = i
		elements, end, err = cutElements(body, i, element)
		return end
	})
	if err != nil {
		return nil, nil, err
	}
	if closed < 0 || begin < 0 {
		return nil, nil, errUncut
	}
	rest = append(append(append(make([]byte, 0, len(body)-(end-begin)+2), body[:begin]...), "[]"...), body[end:]...)
	return elements, rest, nil
}

// cutEvent returns the type of a watch event and its object, as they are in the frame. It
// returns false if there is anything else, in them or beside them, than a server sends.
// Whether the object is JSON is found out when it is decoded.
func cutEvent(frame []byte) (name, object []byte, ok bool) {
	end := eachField(frame, func(field []byte, i int) int {
		end := valueEnd(frame, i)
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
	return name, object, end >= 0 && skipSpace(frame, end+1) == len(frame) && object != nil && isEventType(name)
}

// isEventType reports whether this is a type of a watch event.
func isEventType(name []byte) bool {
	switch string(name) {
	case "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR":
		return true
	}
	return false
}

// eachField calls read with the names of the fields of the object in body, quotes
// included, and with where their values begin. read returns the index after the value, or
// -1. eachField returns the index of the bracket that ends the object, or -1.
func eachField(body []byte, read func(name []byte, i int) int) int {
	i := skipSpace(body, 0)
	if i == len(body) || body[i] != '{' {
		return -1
	}
	for {
		begin := skipSpace(body, i+1)
		if begin == len(body) || body[begin] != '"' {
			return -1
		}
		if i = valueEnd(body, begin); i < 0 {
			return -1
		}
		name := body[begin:i]
		if i = skipSpace(body, i); i == len(body) || body[i] != ':' || bytes.IndexByte(name, '\\') >= 0 {
			return -1 // a name with an escape in it may be any
		}
		if i = skipSpace(body, i+1); i == len(body) {
			return -1
		}
		if i = read(name, i); i < 0 {
			return -1
		}
		if i = skipSpace(body, i); i == len(body) || body[i] != ',' {
			break
		}
	}
	if i == len(body) || body[i] != '}' {
		return -1
	}
	return i
}

// cutElements cuts the array that begins at i, and returns the index after it, or -1.
func cutElements(body []byte, i int, element func(size int) error) ([]json.RawMessage, int, error) {
	elements := []json.RawMessage{}
	i = skipSpace(body, i+1)
	if i < len(body) && body[i] == ']' {
		return elements, i + 1, nil
	}
	for i < len(body) {
		end := valueEnd(body, i)
		if end < 0 {
			return nil, -1, nil
		}
		if err := element(end - i); err != nil {
			return nil, -1, err
		}
		elements = append(elements, body[i:end:end])
		i = skipSpace(body, end)
		if i == len(body) || body[i] != ',' && body[i] != ']' {
			return nil, -1, nil
		}
		if body[i] == ']' {
			return elements, i + 1, nil
		}
		i = skipSpace(body, i+1)
	}
	return nil, -1, nil
}

// skipSpace returns the index of the first byte from i on that is no white space.
func skipSpace(body []byte, i int) int {
	for i < len(body) && isSpace(body[i]) {
		i++
	}
	return i
}

// valueEnd returns the index after the object, array or string that begins at i, as its
// brackets and quotes say, or -1 if it has no end or is something else.
func valueEnd(body []byte, i int) int {
	depth := 0
	for ; i < len(body); i++ {
		switch body[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			if i = quoteEnd(body, i+1); i < 0 {
				return -1
			}
		default:
			if depth == 0 {
				return -1
			}
			continue
		}
		if depth <= 0 {
			return i + 1
		}
	}
	return -1
}

// quoteEnd returns the index of the quote that ends a string, or -1.
func quoteEnd(body []byte, i int) int {
	for {
		n := bytes.IndexByte(body[i:], '"')
		if n < 0 {
			return -1
		}
		escapes := 0
		for escapes < n && body[i+n-1-escapes] == '\\' {
			escapes++
		}
		i += n
		if escapes%2 == 0 {
			return i
		}
		i++
	}
}
