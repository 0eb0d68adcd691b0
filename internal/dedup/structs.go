package dedup

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// A StructDecoder decodes JSON objects of one kind into a Go type as the API machinery does, and
// shares the parts that an object has in common with earlier ones. Several goroutines may use it
// at once; each of them keeps its own fieldStats.
type StructDecoder struct {
	typedDecoder
	secret bool
}

// NewStructDecoder returns a decoder for objects of a kind, of the Go type of example, a pointer
// to a struct. It shares with all decoders of the table. The kind may be the zero value. It is
// cheap: the table keeps the compiled type and the fieldStats.
func NewStructDecoder(table *Table, kind schema.GroupVersionKind, example any,
	sharing Sharing) *StructDecoder {
	table.init()
	d := &StructDecoder{secret: IsSecret(kind.Group, "", kind.Kind)}
	d.table, d.typ, d.form, d.sharing = table, reflect.TypeOf(example), inJSON, sharing
	return d
}

// Without returns a decoder like d that leaves some fields out of the objects: see
// [Decoder.Without]. The values of the fields must be JSON, and are not checked further.
func (d *StructDecoder) Without(paths ...string) (*StructDecoder, error) {
	less := &StructDecoder{secret: d.secret}
	return less, d.without(&less.typedDecoder, paths)
}

// Shares is as [Decoder.Shares].
func (d *StructDecoder) Shares() error {
	if d.secret {
		return errSecret
	}
	return d.typedDecoder.Shares()
}

// Unmarshal decodes an object into a new one, which must be the zero value of the decoder's type.
// It keeps nothing of data. It accepts what the API machinery accepts, and then the object is
// deeply equal to what that makes, except for the fields of [StructDecoder.Without]. For data that
// it rejects, it returns the error of the API machinery, and the object is half filled. It reports
// whether the object is shared: one whose own kind is Secret, and one that is left to the API
// machinery, is decoded for itself.
func (d *StructDecoder) Unmarshal(data []byte, into any) (shared bool, err error) {
	if d.Shares() != nil {
		return false, d.unshared(data, into)
	}
	to, err := d.check(into)
	if err != nil {
		return false, err
	}
	w := d.plan.structs.take(d.sharing, func() *structWorker {
		return newStructWorker(d.table, d.plan, d.sharing)
	})
	ok := w.decode(data, to)
	refused := w.refused
	w.refused = nil
	d.plan.structs.give(w, d.sharing)
	switch {
	case ok:
		d.counts.shared.Add(1)
		return true, nil
	case refused != nil:
		d.counts.rejected.Add(1)
		return false, refused
	}
	reflect.ValueOf(into).Elem().SetZero()
	return false, d.unshared(data, into)
}

// unshared decodes an object as the API machinery does.
func (d *StructDecoder) unshared(data []byte, into any) error {
	if err := utiljson.Unmarshal(data, into); err != nil {
		d.counts.rejected.Add(1)
		return err
	}
	d.counts.generated.Add(1)
	d.clearer.Clear(into)
	return nil
}
