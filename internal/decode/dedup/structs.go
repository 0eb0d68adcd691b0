package dedup

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// A StructDecoder decodes JSON objects of one kind into a Go type as the API machinery does, and
// shares the parts that an object has in common with earlier ones. Several goroutines may use it
// at once; each of them keeps its own fieldStats.
type StructDecoder struct{ typedDecoder }

// NewStructDecoder returns a decoder for objects of a kind, of the Go type of example, a pointer
// to a struct. It shares with all decoders of the table. The kind may be the zero value. It is
// cheap: the table keeps the compiled type and the fieldStats.
func NewStructDecoder(table *Table, kind schema.GroupVersionKind, example any,
	sharing Sharing) *StructDecoder {
	table.init()
	d := &StructDecoder{}
	d.table, d.typ, d.form, d.sharing = table, reflect.TypeOf(example), inJSON, sharing
	d.api, d.secret = d.typ, IsSecret(kind.Group, "", kind.Kind)
	d.kind.apiVersion, d.kind.kind = kind.ToAPIVersionAndKind()
	return d
}

// Without returns a decoder like d that leaves some fields out of the objects: see
// [Decoder.Without]. The values of the fields must be JSON, and are not checked further.
func (d *StructDecoder) Without(paths ...string) (*StructDecoder, error) {
	less := &StructDecoder{}
	return less, d.without(&less.typedDecoder, paths)
}

// Unmarshal decodes an object into a new one, which must be the zero value of the decoder's type.
// It keeps nothing of data. It accepts all data that the API machinery accepts, and then the object
// is deeply equal to the one that the API machinery makes, except for the fields of
// [StructDecoder.Without]. For data that it rejects, it returns the error of the API machinery, and
// the object is half filled. It reports whether the object is shared: one whose own kind is Secret,
// and one that is left to the API machinery, is decoded for itself.
func (d *StructDecoder) Unmarshal(data []byte, into any) (shared bool, err error) {
	if d.Shares() == nil {
		done, err := share(&d.typedDecoder, &d.plan.structs, newStructWorker, data, into)
		if done {
			return err == nil, err
		}
	}
	err = d.whole(into, func(whole any) error { return utiljson.Unmarshal(data, whole) })
	if err == nil && d.cut.of != nil {
		err = d.kind.check(data)
	}
	return false, d.counts.left(err)
}
