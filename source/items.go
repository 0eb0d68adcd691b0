package source

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jsonList is a list whose items are still encoded.
type jsonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []json.RawMessage `json:"items"`
}

// openJSONList reads a list but for its items, which it cuts out as they are. Whether
// they are JSON is found out when they are decoded.
//
// The items are nearly all of a list, and a general decoder goes through them three
// times: to check them, to find where each ends, and when they are decoded. Here their
// brackets are matched, once, and the general decoder gets the list without them. A list
// in which the items cannot be found so is left to it whole.
func openJSONList(body []byte) (jsonList, error) {
	items, rest, ok := cutItems(body)
	if !ok {
		items, rest = nil, body
	}
	var list jsonList
	if err := unmarshalJSON(rest, &list); err != nil {
		return list, err
	}
	if ok {
		list.Items = items
	}
	return list, nil
}

// cutItems returns what stands in the array items of the object in body, and the object
// with nothing in it. It returns false if there is no such array, or more than one.
func cutItems(body []byte) (items []json.RawMessage, rest []byte, ok bool) {
	begin, end := -1, -1
	if eachField(body, func(name []byte, i int) int {
		if string(name) != `"items"` {
			return valueEnd(body, i)
		}
		if begin >= 0 || body[i] != '[' {
			return -1
		}
		begin = i
		items, end = cutElements(body, i)
		return end
	}) < 0 || begin < 0 {
		return nil, nil, false
	}
	rest = append(append(append(make([]byte, 0, len(body)-(end-begin)+2), body[:begin]...), "[]"...), body[end:]...)
	return items, rest, true
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
func cutElements(body []byte, i int) ([]json.RawMessage, int) {
	items := []json.RawMessage{}
	i = skipSpace(body, i+1)
	if i < len(body) && body[i] == ']' {
		return items, i + 1
	}
	for i < len(body) {
		end := valueEnd(body, i)
		if end < 0 {
			return nil, -1
		}
		items = append(items, body[i:end:end])
		i = skipSpace(body, end)
		if i == len(body) || body[i] != ',' && body[i] != ']' {
			return nil, -1
		}
		if body[i] == ']' {
			return items, i + 1
		}
		i = skipSpace(body, i+1)
	}
	return nil, -1
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
