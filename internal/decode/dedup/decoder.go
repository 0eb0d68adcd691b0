package dedup

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

// A Message is a pointer to an API type that can be decoded from protobuf.
type Message interface{ Unmarshal(data []byte) error }

// Sharing selects the parts of objects that are shared with other objects.
type Sharing int

const (
	// ShareAll shares strings, messages, slices and maps. Objects must not be changed.
	ShareAll Sharing = iota
	// ShareStrings shares strings alone: an object may be changed like one that the
	// generated code has decoded.
	ShareStrings
	// ShareNothing leaves everything to the generated code, or to the API machinery.
	ShareNothing
)

func (s Sharing) off() bool { return s < 0 || s >= ShareNothing }

// A Decoder decodes objects of one Go type as the generated Unmarshal of that type does, and
// shares the parts that an object has in common with earlier ones. Several goroutines may use
// it at once; each of them keeps its own fieldStats.
type Decoder struct {
	typedDecoder
	nest    sync.Once // guards nesting
	nesting nesting
}

// A typedDecoder has the fields that decoders of one Go type have in common.
type typedDecoder struct {
	table   *Table
	typ     reflect.Type // a pointer, of what is decoded into
	api     reflect.Type // a pointer, of the objects of the API: typ, but for views
	form    form
	sharing Sharing
	secret  bool   // by the kind of the decoder
	kind    kindOf // of views in JSON, which do not have it
	cut     cut
	// clearer and projection leave out the rest of objects that are decoded by others.
	clearer    *fieldpath.Clearer
	projection *fieldpath.Projection

	compile sync.Once // guards plan
	plan    *plan

	counts decoderCounts
}

// decoderCounts are the counts of [DecoderStats].
type decoderCounts struct{ shared, generated, rejected atomic.Int64 }

func (c *decoderCounts) stats() DecoderStats {
	return DecoderStats{c.shared.Load(), c.generated.Load(), c.rejected.Load()}
}

// left counts an object that was left to others, and returns their error.
func (c *decoderCounts) left(err error) error {
	if err != nil {
		c.rejected.Add(1)
	} else {
		c.generated.Add(1)
	}
	return err
}

// DecoderStats count the objects of a decoder.
type DecoderStats struct {
	// Shared objects were decoded here.
	Shared int64
	// Generated objects were left to the generated code, or to the API machinery if they are in
	// JSON: all of them if Shares says so, and otherwise those that were encoded as Go does
	// not encode objects. Healthy is 0 or all.
	Generated int64
	// Rejected objects could not be decoded. Healthy is 0.
	Rejected int64
}

// NewDecoder returns a decoder for objects of the Go type of example, a pointer to a struct,
// that shares with all decoders of the table. It is cheap, so that each reader of a
// collection can have one with counts of its own: the table keeps the compiled type and the
// fieldStats.
func NewDecoder(table *Table, example Message, sharing Sharing) *Decoder {
	table.init()
	d := &Decoder{}
	d.table, d.typ, d.form, d.sharing = table, reflect.TypeOf(example), inProtobuf, sharing
	d.api = d.typ
	return d
}

// Without returns a decoder like d that leaves some fields out of the objects, as if they had
// never been set. A path names fields as JSON does, joined by dots, as in "spec.containers.env":
// it goes through messages and slices, and ends at a field of any type. The bytes of that field
// are skipped and not checked, so that an object is decoded that would otherwise be rejected for
// them. Where the generated code decodes an object, the fields are cleared afterwards.
//
// It returns an error, which names the path, if the type of d has no such field, if the path goes
// into a map or another single value, or if it leaves out a field that identifies objects.
func (d *Decoder) Without(paths ...string) (*Decoder, error) {
	less := &Decoder{}
	return less, d.without(&less.typedDecoder, paths)
}

// without makes less a decoder like d that leaves out fields.
func (d *typedDecoder) without(less *typedDecoder, paths []string) error {
	drop, err := fieldpath.Parse(slices.Concat(d.cut.drop.Paths(), paths))
	if err != nil {
		return err
	}
	if len(drop) > 0 && d.typ == nil {
		return fmt.Errorf("%v is left out of a decoder of no type", drop)
	}
	if err := drop.Check(d.typ); err != nil {
		return err
	}
	less.like(d)
	less.cut.drop, less.clearer = drop, fieldpath.NewClearer(drop, d.typ)
	return nil
}

// like makes d a decoder of the same objects as another one.
func (d *typedDecoder) like(of *typedDecoder) {
	d.table, d.typ, d.api, d.form, d.sharing = of.table, of.typ, of.api, of.form, of.sharing
	d.secret, d.kind = of.secret, of.kind
}

// whole decodes an object with the code of others, into the API type if it is a view, and leaves
// out the rest.
func (d *typedDecoder) whole(into any, decode func(whole any) error) error {
	if d.projection == nil {
		err := decode(into)
		d.clearer.Clear(into)
		return err
	}
	whole := reflect.New(d.api.Elem()).Interface()
	err := decode(whole)
	if err == nil {
		d.projection.Project(into, whole)
	}
	return err
}

var errSharesNothing = errors.New("sharing is turned off")

// Shares returns nil if objects of the decoder's type are shared, and otherwise why each of them
// is decoded for itself: sharing is turned off, they are Secrets, or the type leads to Secrets, has
// an Unmarshal or UnmarshalJSON of its own, or a field of a kind that API types do not have.
func (d *typedDecoder) Shares() error {
	d.compile.Do(func() {
		switch {
		case d.sharing.off():
			d.plan = &plan{err: errSharesNothing}
		case d.secret:
			d.plan = &plan{err: errSecret}
		case d.typ == nil || d.typ.Kind() != reflect.Pointer:
			d.plan = &plan{err: fmt.Errorf("%v is not a pointer to a struct", d.typ)}
		default:
			d.plan = d.table.plans.plan(d.typ.Elem(), d.cut, d.form)
		}
	})
	return d.plan.err
}

// Stats returns the decoder's counts.
func (d *typedDecoder) Stats() DecoderStats { return d.counts.stats() }

// An objectWorker decodes an object into the memory at to. If it returns false, that is half
// filled, and refused is why others must not see the data either, if there is a reason. of is the
// kind that views in JSON are checked for.
type objectWorker interface {
	decode(of kindOf, data []byte, to unsafe.Pointer) (ok bool, refused error)
}

// share decodes an object with a worker of the pool. It reports whether that has ended with an
// object or an error; if not, into is the zero value again.
func share[W objectWorker](d *typedDecoder, pool *workerPool[W],
	newWorker func(*Table, *plan, Sharing) W, data []byte, into any) (done bool, err error) {
	v := reflect.ValueOf(into)
	if v.Type() != d.typ || v.IsNil() {
		return true, fmt.Errorf("a decoder of %v was given %T to decode into: give it a new %v",
			d.typ, into, d.typ.Elem())
	}
	w := pool.take(d.sharing, func() W { return newWorker(d.table, d.plan, d.sharing) })
	ok, refused := w.decode(d.kind, data, v.UnsafePointer())
	pool.give(w, d.sharing)
	switch {
	case ok:
		d.counts.shared.Add(1)
	case refused != nil:
		return true, d.counts.left(refused)
	default:
		v.Elem().SetZero()
	}
	return ok, nil
}

// Unmarshal decodes an object into a new one, which must be the zero value of the decoder's type.
// It keeps nothing of data. It accepts all data that the generated Unmarshal accepts, and then the
// object is deeply equal to the one that Unmarshal makes, except for the fields of
// [Decoder.Without]. For data that it rejects, it returns the error of the generated code, and the
// object is half filled.
func (d *Decoder) Unmarshal(data []byte, into any) error {
	if d.Shares() == nil {
		done, err := share(&d.typedDecoder, &d.plan.decoders, newProtoWorker, data, into)
		if done {
			return err
		}
	}
	return d.counts.left(d.whole(into, func(whole any) error {
		return d.generate(data, whole.(Message))
	}))
}

// generate decodes an object with the generated code, unless that would exhaust the stack.
func (d *Decoder) generate(data []byte, into Message) error {
	if groups(data) > maxGroups {
		return ErrGroups
	}
	d.nest.Do(func() { d.nesting = nestings{}.of(d.api) })
	if d.nesting.exceeds(data, maxNesting) {
		return ErrNesting
	}
	return into.Unmarshal(data)
}
