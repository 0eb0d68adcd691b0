package dedup

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// lengthy encodes a field of bytes.
func lengthy(number int, content ...byte) []byte {
	if number > 15 || len(content) > 127 {
		panic("not for so much")
	}
	return append([]byte{byte(number<<3 | wire.BytesType), byte(len(content))}, content...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// TestUnusualEncodings decodes legal and illegal messages, as written by hand. Here says which
// of them this package decodes by itself; the rest is left to the generated code.
func TestUnusualEncodings(t *testing.T) {
	name := func(s string) []byte { return lengthy(1, lengthy(1, []byte(s)...)...) }
	data := func(key, value string) []byte {
		return lengthy(2, join(lengthy(1, []byte(key)...), lengthy(2, []byte(value)...))...)
	}
	cases := map[string]struct {
		data []byte
		here bool
	}{
		"nothing":                           {nil, true},
		"empty metadata":                    {lengthy(1), true},
		"metadata twice merges":             {join(lengthy(1, lengthy(1, 'a')...), lengthy(1, lengthy(3, 'b')...)), false},
		"name twice, the last counts":       {lengthy(1, join(lengthy(1, 'a'), lengthy(1, 'b'))...), false},
		"fields in falling order":           {join(data("k", "v"), name("a")), false},
		"map with a key twice":              {join(data("k", "v"), data("k", "w"), data("l", "x")), true},
		"map in two places":                 {join(data("k", "v"), lengthy(3), data("l", "w")), false},
		"empty map entry":                   {lengthy(2), false},
		"map entry without a key":           {lengthy(2, lengthy(2, 'v')...), false},
		"map entry without a value":         {lengthy(2, lengthy(1, 'k')...), true},
		"map entry in falling order":        {lengthy(2, join(lengthy(2, 'v'), lengthy(1, 'k'))...), false},
		"map entry with its key twice":      {lengthy(2, join(lengthy(1, 'k'), lengthy(1, 'l'), lengthy(2, 'v'))...), false},
		"map entry with an unknown field":   {lengthy(2, join(lengthy(1, 'k'), lengthy(2, 'v'), lengthy(9))...), false},
		"map entry that ends behind itself": {join(lengthy(2, 1<<3|wire.BytesType, 3, 'k'), []byte("xy")), false},
		"value of bytes that is empty":      {lengthy(3, join(lengthy(1, 'k'), lengthy(2))...), true},
		"unknown varint":                    {join(name("a"), []byte{15 << 3, 0xff, 0xff, 1}), true},
		"unknown fixed64":                   {join(name("a"), []byte{15<<3 | wire.Fixed64Type, 1, 2, 3, 4, 5, 6, 7, 8}), true},
		"unknown fixed32":                   {join(name("a"), []byte{15<<3 | wire.Fixed32Type, 1, 2, 3, 4}), true},
		"unknown bytes, twice":              {join(name("a"), lengthy(15, 1, 2), lengthy(15)), true},
		"unknown between known":             {lengthy(1, join(lengthy(1, 'a'), lengthy(15, 1), []byte{17<<3&0x7f | wire.BytesType | 0x80, 1, 0})...), true},
		"unknown group":                     {join(name("a"), []byte{15<<3 | 3, 15<<3 | 4}), false},
		"unknown group in a group":          {join(name("a"), []byte{15<<3 | 3, 14<<3 | 3, 14<<3 | 4, 15<<3 | 4}), false},
		"unknown group that does not end":   {join(name("a"), []byte{15<<3 | 3}), false},
		"end of a group":                    {join(name("a"), []byte{15<<3 | 4}), false},
		"wire type that does not exist":     {join(name("a"), []byte{15<<3 | 7}), false},
		"field number 0":                    {join(name("a"), []byte{wire.VarintType, 1}), false},
		"number as wrong type":              {[]byte{4<<3 | wire.BytesType, 1, 1}, false},
		"message as wrong type":             {[]byte{1 << 3, 1}, false},
		"tag in two bytes":                  {join([]byte{1<<3 | wire.BytesType | 0x80, 0, 3}, lengthy(1, 'a')), true},
		"tag in two bytes for a second map": {join(data("k", "v"), []byte{2<<3 | wire.BytesType | 0x80, 0, 0}), false},
		"tag in six bytes":                  {[]byte{4<<3 | 0x80, 0x80, 0x80, 0x80, 0x80, 0, 1}, false},
		"tag of more than 32 bits":          {[]byte{4<<3 | 0x80, 0x80, 0x80, 0x80, 0x7f, 1}, false},
		"length in three bytes":             {[]byte{1<<3 | wire.BytesType, 0x80, 0x80, 0}, true},
		"length beyond the end":             {[]byte{1<<3 | wire.BytesType, 5, 1}, false},
		"length that is negative":           {[]byte{1<<3 | wire.BytesType, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, false},
		"number in ten bytes":               {[]byte{4 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, true},
		"number in eleven bytes":            {[]byte{4 << 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, false},
		"number that is cut off":            {[]byte{4 << 3, 0xff}, false},
		"false":                             {[]byte{4 << 3, 0}, true},
	}
	for title, c := range cases {
		t.Run(strings.ReplaceAll(title, " ", "_"), func(t *testing.T) {
			d := NewDecoder(new(Table), &corev1.ConfigMap{}, ShareAll)
			for range 3 {
				same(t, d, c.data)
				keen(d)
			}
			if here := d.Stats().Shared == 3; here != c.here {
				t.Errorf("decoded here: %v, should be %v", here, c.here)
			}
		})
	}
}

// TestGroupsThatExhaustTheStack decodes a Quantity with groups in groups, on which
// the generated code ends the process.
func TestGroupsThatExhaustTheStack(t *testing.T) {
	groups := bytes.Repeat([]byte{2<<3 | 3}, 16<<20)
	quantity := join([]byte{1<<3 | wire.BytesType, 0xff, 0xff, 0xff, 0x7f}, groups)
	for _, sharing := range []Sharing{ShareAll, ShareNothing} {
		d := NewDecoder(new(Table), &corev1.ResourceQuota{}, sharing)
		if err := d.Unmarshal(quantity, &corev1.ResourceQuota{}); !errors.Is(err, ErrGroups) {
			t.Fatalf("got %v, want %v", err, ErrGroups)
		}
		if s := d.Stats(); s.Rejected != 1 {
			t.Errorf("%+v", s)
		}
	}
	// As large an object that has few of the bytes is left to the generated code.
	big := &corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("a", 16<<20)}}
	same(t, NewDecoder(new(Table), &corev1.ConfigMap{}, ShareAll), append(encode(big), lengthy(1)...))
}

// handWritten has an Unmarshal that its fields say nothing of.
type handWritten struct {
	Name string `protobuf:"bytes,1,opt,name=name"`
}

func (h *handWritten) Unmarshal(data []byte) error {
	h.Name = "by hand: " + string(data)
	return nil
}

// promoted has the Unmarshal of one of its fields.
type promoted struct {
	metav1.ObjectMeta `protobuf:"bytes,1,opt,name=metadata"`
	Spec              string `protobuf:"bytes,2,opt,name=spec"`
}

// notAStruct has an Unmarshal and no fields.
type notAStruct []int32

func (n *notAStruct) Unmarshal([]byte) error { *n = notAStruct{1}; return nil }

// TestTypesOfOthers decodes types whose tags do not say how: they are left to
// their own code, and the decoder says why.
func TestTypesOfOthers(t *testing.T) {
	table := new(Table)
	check := func(example, got, want Message, data []byte, reason string) {
		t.Helper()
		d := NewDecoder(table, example, ShareAll)
		if err := d.Shares(); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%T is shared, or not because of %q: %v", example, reason, err)
		}
		if err, wantErr := d.Unmarshal(data, got), want.Unmarshal(data); (err == nil) != (wantErr == nil) {
			t.Errorf("%T: %v, want %v", example, err, wantErr)
		}
		if d.Stats().Generated != 1 {
			t.Errorf("%T: %+v", example, d.Stats())
		}
	}
	h := &handWritten{}
	check(h, h, &handWritten{}, []byte("x"), "not known")
	if h.Name != "by hand: x" {
		t.Errorf("decoded %+v", h)
	}
	p := &promoted{}
	check(p, p, &promoted{}, lengthy(1, 'a'), "not known")
	if p.Name != "a" {
		t.Errorf("decoded %+v", p)
	}
	n := &notAStruct{}
	check(n, n, &notAStruct{}, nil, "neither a struct")
}

func TestWrongTarget(t *testing.T) {
	d := NewDecoder(new(Table), &corev1.Pod{}, ShareAll)
	for _, into := range []Message{&corev1.Node{}, (*corev1.Pod)(nil)} {
		if err := d.Unmarshal(nil, into); err == nil || !strings.Contains(err.Error(), "*v1.Pod") {
			t.Errorf("%T: %v", into, err)
		}
	}
}
