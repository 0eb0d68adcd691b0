package dedup

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidings-go/tidings/internal/fieldpath"
)

// A Message is a pointer to an API type that can be decoded from protobuf.
type Message interface{ Unmarshal(data []byte) error }

// Sharing says what the objects that a decoder makes have in common with others.
type Sharing int

const (
	// ShareAll shares strings, messages, slices and maps. Objects must not be
	// changed.
	ShareAll Sharing = iota
	// ShareStrings shares strings alone: an object may be changed as if it had
	// been decoded by the generated code.
	ShareStrings
	// ShareNothing leaves everything to the generated code, or to the API machinery.
	ShareNothing
)

// A Decoder decodes objects of one Go type as the generated Unmarshal of that
// type does, except that what an object has in common with earlier ones is one
// in memory. It may be used by several goroutines at once; each of them then
// learns for itself what repeats.
type Decoder struct {
	table   *Table
	typ     reflect.Type
	sharing Sharing
	drop    fieldpath.Tree
	clearer *fieldpath.Clearer // of drop, for what the generated code has decoded

	compile sync.Once // guards plan and reason
	plan    *plan
	reason  error

	nest    sync.Once // guards nesting
	nesting nesting

	decoded, generated, rejected atomic.Int64
}

// NewDecoder returns a decoder for objects of the Go type of example, a pointer
// to a struct, that shares with all decoders of the table. It is cheap, so that each
// reader of a collection can have one with counts of its own: the type is looked at
// when the first object of any decoder is decoded, and what decoders learn about a
// type is in the table.
func NewDecoder(table *Table, example Message, sharing Sharing) *Decoder {
	table.start()
	return &Decoder{table: table, typ: reflect.TypeOf(example), sharing: sharing}
}

// Without returns a decoder as d is whose objects come without some fields, as if these had
// never been set. A path names fields as JSON does, joined by dots, as in
// "spec.containers.env": it goes through messages and slices, and ends at a field of any
// type. The bytes of that field are passed over: what they hold is not looked at, so that
// an object is decoded though it would be rejected for them. Where the generated code has
// to decode an object, the fields are cleared afterwards.
//
// It returns an error, which names the path, if the type of d has no such field, if the
// path goes into a map or another single value, or if it leaves out what objects are told
// apart by.
func (d *Decoder) Without(paths ...string) (*Decoder, error) {
	drop, err := fieldpath.Parse(slices.Concat(d.drop.Paths(), paths))
	if err != nil {
		return nil, err
	}
	if len(drop) > 0 && d.typ == nil {
		return nil, fmt.Errorf("%v is left out of a decoder of no type", drop)
	}
	less := &Decoder{table: d.table, typ: d.typ, sharing: d.sharing, drop: drop}
	if err := drop.Check(d.typ); err != nil {
		return nil, err
	}
	less.clearer = fieldpath.NewClearer(drop, d.typ)
	return less, nil
}

var errSharesNothing = errors.New("sharing is turned off")

// prepare makes the plan. Without one, reason says why there is none.
func (d *Decoder) prepare() {
	switch {
	case d.sharing < 0 || d.sharing >= ShareNothing:
		d.reason = errSharesNothing
	case d.typ == nil || d.typ.Kind() != reflect.Pointer:
		d.reason = fmt.Errorf("%v is not a pointer to a struct", d.typ)
	default:
		d.plan, d.reason = d.table.planFor(d.typ.Elem(), d.drop)
	}
}

// Shares returns nil if objects of the decoder's type are shared, and otherwise
// why all of them are left to the generated code: the type is Secret, has an
// Unmarshal that is not generated, or a field of a kind that API types do not have.
func (d *Decoder) Shares() error {
	d.compile.Do(d.prepare)
	return d.reason
}

// Unmarshal decodes an object into a new one, which must be the zero value of the
// decoder's type. It keeps nothing of data. It accepts what the generated
// Unmarshal accepts, and then the object is deeply equal to what that makes, but for
// the fields of [Decoder.Without]; it returns its error for what it rejects, and then the
// object is half filled.
func (d *Decoder) Unmarshal(data []byte, into Message) error {
	if d.Shares() != nil {
		d.generated.Add(1)
		err := d.generate(data, into)
		d.clearer.Clear(into)
		return err
	}
	v := reflect.ValueOf(into)
	if v.Type() != d.typ || v.IsNil() {
		return fmt.Errorf("a decoder of %v was given %T to decode into: give it a new %v", d.typ, into, d.typ.Elem())
	}
	r := d.plan.take(d.table, d.sharing)
	ok, refused := r.object(d.plan.program, data, v.UnsafePointer()), r.refused
	r.refused = nil
	d.plan.give(r)
	if ok {
		d.decoded.Add(1)
		return nil
	}
	v.Elem().SetZero()
	if refused != nil {
		d.rejected.Add(1)
		return refused
	}
	return d.fallBack(data, into)
}

// fallBack leaves an object to the generated code.
func (d *Decoder) fallBack(data []byte, into Message) error {
	if groups(data) > maxGroups {
		d.rejected.Add(1)
		return ErrGroups
	}
	if err := d.generate(data, into); err != nil {
		d.rejected.Add(1)
		return err
	}
	d.clearer.Clear(into)
	d.generated.Add(1)
	return nil
}

// generate has the generated code decode an object. What decodes here builds at most
// maxDepth values in one another.
func (d *Decoder) generate(data []byte, into Message) error {
	d.nest.Do(func() { d.nesting = nestingOf(d.typ) })
	if d.nesting.exceeds(data, maxNesting) {
		return ErrNesting
	}
	return into.Unmarshal(data)
}

// ErrGroups is returned for data that may have so many groups, one in the other,
// that the generated code would exhaust the stack, which ends the process. No API
// object has groups.
var ErrGroups = fmt.Errorf("proto: more than %d bytes that may begin a group, in data that is not as Go encodes it", maxGroups)

// maxGroups is what the generated code can take: a level is a call that needs
// about 100 bytes of the stack, of which there is 250 MB at least.
const maxGroups = 1 << 20

// groups returns an upper bound of the groups in data.
func groups(data []byte) int {
	if len(data) <= maxGroups {
		return 0
	}
	n := 0
	for _, b := range data {
		if b&7 == 3 {
			n++
		}
	}
	return n
}
