package dedup

import (
	"fmt"
	"reflect"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// maxDepth bounds the nesting of the messages that are decoded here, far beyond that of any API.
const maxDepth = wire.MaxDepth

// maxNesting bounds the nesting of messages where a Go type contains itself, as the schema
// of a CustomResourceDefinition does. The API machinery allows as many levels of JSON.
const maxNesting = 10_000

// ErrNesting is returned for data that has more messages in one another. The generated code
// calls itself for each, until the stack is exhausted, which ends the process.
var ErrNesting = fmt.Errorf("proto: more than %d messages in one another", maxNesting)

// A nesting has the fields, by their numbers, that lead to a Go type that contains itself.
// It is nil for a type that has no such fields.
type nesting map[int32]nesting

// nestings are those of the types that were visited. While a type is visited, it is not nil:
// a type that is visited again within itself contains itself.
type nestings map[reflect.Type]nesting

func (n nestings) of(t reflect.Type) nesting {
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	switch {
	case t == nil:
		return nil
	case t.Kind() == reflect.Map: // an entry has the value as its second field
		if value := n.of(t.Elem()); value != nil {
			return nesting{2: value}
		}
		return nil
	case t.Kind() != reflect.Struct:
		return nil
	}
	if known, visited := n[t]; visited {
		return known
	}
	fields := nesting{}
	n[t] = fields
	for sf := range t.Fields() {
		number, ok, err := fieldNumber(sf)
		if !ok || err != nil {
			continue
		}
		if inner := n.of(sf.Type); inner != nil {
			fields[int32(number)] = inner
		}
	}
	if len(fields) == 0 {
		n[t] = nil
	}
	return n[t]
}

// exceeds reports whether data has more than so many messages in one another. It sees
// everything that the generated code sees before it fails. It looks into groups, which the
// generated code skips.
func (n nesting) exceeds(data []byte, most int) bool {
	if n == nil {
		return false
	}
	if most == 0 {
		return true
	}
	for i := 0; i < len(data); {
		var tag uint64
		if tag, i = wire.Varint(data, i); i < 0 {
			return false
		}
		switch wireType := uint32(tag & 7); wireType {
		case wire.BytesType:
			start, end := wire.Span(data, i)
			if end < 0 {
				return false
			}
			if n[int32(tag>>3)].exceeds(data[start:end], most-1) {
				return true
			}
			i = end
		case wire.StartGroupType, wire.EndGroupType:
		default:
			if i = wire.Skip(data, i, wireType); i < 0 {
				return false
			}
		}
	}
	return false
}

// ErrGroups is returned for data that may have so many groups, one in the other, that the
// generated code would exhaust the stack, which ends the process. No API object has groups.
var ErrGroups = fmt.Errorf("proto: more than %d bytes that may begin a group, "+
	"in data that is not as Go encodes it", maxGroups)

// maxGroups is the number of groups that the generated code can take: a level is a call that needs
// about 100 bytes of the stack, of which there is 250 MB at least.
const maxGroups = 1 << 20

// groups returns an upper bound of the groups in data.
func groups(data []byte) int {
	if len(data) <= maxGroups {
		return 0
	}
	n := 0
	for _, b := range data {
		if b&7 == wire.StartGroupType {
			n++
		}
	}
	return n
}
