package dedup

import (
	"encoding/binary"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// nest is a type that contains itself in every way in which a type can.
type nest struct {
	Name   string          `protobuf:"bytes,1,opt,name=name"`
	One    *nest           `protobuf:"bytes,2,opt,name=one"`
	Many   []nest          `protobuf:"bytes,3,rep,name=many"`
	Named  map[string]nest `protobuf:"bytes,4,rep,name=named"`
	Within within          `protobuf:"bytes,20,opt,name=within"`
	Weight float64         `protobuf:"fixed64,21,opt,name=weight"` // decoded by Unmarshal only

	unmarshaled int
}

// within is a type that contains itself through another one.
type within struct {
	Nests []*nest `protobuf:"bytes,1,rep,name=nests"`
}

func (n *nest) Unmarshal([]byte) error {
	n.unmarshaled++
	return nil
}

// inField puts content into a field of bytes.
func inField(number uint64, content []byte) []byte {
	b := binary.AppendUvarint(nil, number<<3|wire.BytesType)
	return append(binary.AppendUvarint(b, uint64(len(content))), content...)
}

// nested is that many messages in one another, each in the fields of path, the innermost
// with content.
func nested(content []byte, depth int, path ...uint64) []byte {
	b := make([]byte, len(content)+depth*len(path)*12) // from the back: nothing is copied twice
	at := len(b) - copy(b[len(b)-len(content):], content)
	for i := range depth * len(path) {
		head := binary.AppendUvarint(nil, path[len(path)-1-i%len(path)]<<3|wire.BytesType)
		head = binary.AppendUvarint(head, uint64(len(b)-at))
		at -= copy(b[at-len(head):], head)
	}
	return b[at:]
}

// TestNestingIsLimited leaves no message that is nested too deep to code that would exhaust
// the stack.
func TestNestingIsLimited(t *testing.T) {
	d := NewDecoder(new(Table), new(nest), ShareAll)
	inGroup := func(content []byte) []byte {
		return append(append(binary.AppendUvarint(nil, 9<<3|wire.StartGroupType), content...), 9<<3|wire.EndGroupType)
	}
	for _, tt := range []struct {
		name    string
		data    []byte
		refused bool
	}{
		{"flat", nested(nil, 1, 2), false},
		{"as deep as may be", nested(nil, maxNesting-1, 2), false},
		{"too deep", nested(nil, maxNesting, 2), true},
		{"1.5 million behind a pointer", nested(nil, 1_500_000, 2), true},
		{"in a slice", nested(nil, maxNesting, 3), true},
		{"in a map", nested(nil, maxNesting/2, 4, 2), true},
		{"in a map, as deep as may be", nested(nil, maxNesting/2-1, 4, 2), false},
		{"through another type", nested(nil, maxNesting/2, 20, 1), true},
		{"in a string", nested(nil, 2*maxNesting, 1), false},
		{"in the key of a map", nested(nil, maxNesting, 4, 1), false},
		{"in a field that is not known", nested(nil, 2*maxNesting, 9), false},
		{"after an unknown field", append(inField(9, []byte("x")), nested(nil, maxNesting, 2)...), true},
		{"after a group", append(inGroup(inField(1, nil)), nested(nil, maxNesting, 2)...), true},
		{"after a number", append([]byte{5 << 3, 0xff, 1}, nested(nil, maxNesting, 2)...), true},
		{"after what is cut off", append([]byte{2<<3 | wire.BytesType, 0xff, 0xff, 0xff, 0xff, 1}, nested(nil, maxNesting, 2)...), false},
		{"a tag longer than need be", append([]byte{0x92, 0x80, 0}, nested(nil, maxNesting, 2)[1:]...), true},
	} {
		into := new(nest)
		err := d.Unmarshal(tt.data, into)
		if errors.Is(err, ErrNesting) != tt.refused || (into.unmarshaled > 0) == tt.refused {
			t.Errorf("%s: %v, decoded %d times", tt.name, err, into.unmarshaled)
		}
	}
}

// TestNestingOfAPITypes shows which of them contain themselves: no other one is scanned.
func TestNestingOfAPITypes(t *testing.T) {
	for _, typ := range everyType(t) {
		name := strings.TrimSuffix(typ.Name(), "List")
		if n := (nestings{}).of(typ); (n != nil) != (name == "Workload") {
			t.Errorf("%v leads to itself in %d fields", typ, len(n))
		}
	}
	if n := (nestings{}).of(reflect.TypeFor[nest]()); len(n) != 4 {
		t.Errorf("fields of %v lead to it, want 4", n)
	}
}

// FuzzNesting scans any bytes, and any bytes at a depth, because the depth decides.
func FuzzNesting(f *testing.F) {
	f.Add([]byte("\x12\x00"), 3)
	f.Add(nested(nil, 5, 4, 2), maxNesting-1)
	f.Fuzz(func(t *testing.T, data []byte, depth int) {
		depth = int(uint(depth) % (2 * maxNesting))
		n := nestings{}.of(reflect.TypeFor[nest]())
		n.exceeds(data, maxNesting)
		data = nested(data, depth, 2)
		if depth >= maxNesting && !n.exceeds(data, maxNesting) {
			t.Errorf("%d levels are not too deep", depth)
		}
	})
}
