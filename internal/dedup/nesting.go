package dedup

import (
	"fmt"
	"reflect"
)

// maxNesting is how many messages may be in one another where a Go type contains itself, as
// the schema of a CustomResourceDefinition does. The API machinery allows as many levels of
// JSON.
const maxNesting = 10_000

// ErrNesting is returned for data that has more messages in one another. The generated code
// calls itself for each, until the stack is exhausted, which ends the process.
var ErrNesting = fmt.Errorf("proto: more than %d messages in one another", maxNesting)

// A nesting is a Go type that contains itself, or leads to one that does: it has the fields
// that lead there, by their numbers. All other types have none, which is nil.
type nesting map[int32]nesting

// nestingOf returns the nesting of a Go type.
func nestingOf(t reflect.Type) nesting {
	return nestings{}.of(t)
}

// nestings are those of the types that were met, nil before it is known that they have one.
// A type that is met again within itself contains itself.
type nestings map[reflect.Type]*typeNesting

// typeNesting is what is known of a type.
type typeNesting struct {
	fields nesting
	within bool // the fields of the type are being looked at
}

func (n nestings) of(t reflect.Type) nesting {
	for t != nil && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	if t == nil || t.Kind() == reflect.Map {
		return n.ofMap(t)
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	if f := n[t]; f != nil {
		if f.within || len(f.fields) > 0 {
			return f.fields
		}
		return nil
	}
	f := &typeNesting{fields: nesting{}, within: true}
	n[t] = f
	for sf := range t.Fields() {
		number, ok, err := fieldNumber(sf)
		if !ok || err != nil {
			continue
		}
		if inner := n.of(sf.Type); inner != nil {
			f.fields[int32(number)] = inner
		}
	}
	if f.within = false; len(f.fields) == 0 {
		return nil
	}
	return f.fields
}

// ofMap returns the nesting of a map, whose entries have the value as their second field.
func (n nestings) ofMap(t reflect.Type) nesting {
	if t == nil {
		return nil
	}
	if value := n.of(t.Elem()); value != nil {
		return nesting{2: value}
	}
	return nil
}

// exceeds reports whether data has more than so many messages in one another. It sees all
// that the generated code sees before it fails. Groups are looked into, which the generated
// code passes over.
func (n nesting) exceeds(data []byte, most int) bool {
	if n == nil {
		return false
	}
	if most == 0 {
		return true
	}
	for i := 0; i < len(data); {
		tag, next := uvarint(data, i)
		if next < 0 {
			return false
		}
		i = next
		switch tag & 7 {
		case wireBytes:
			start, end := span(data, i)
			if end < 0 {
				return false
			}
			if n[int32(tag>>3)].exceeds(data[start:end], most-1) {
				return true
			}
			i = end
		case wireStartGroup, wireEndGroup:
		default:
			if i = skip(data, i, uint32(tag&7)); i < 0 {
				return false
			}
		}
	}
	return false
}
