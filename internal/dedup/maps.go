package dedup

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tidings-go/tidings/internal/fieldpath"
)

// A MapDecoder decodes JSON objects of one kind into maps as the API machinery does
// for unstructured objects, except that what an object has in common with earlier
// ones is one in memory. It may be used by several goroutines at once; each of them
// then learns for itself what repeats.
type MapDecoder struct {
	table   *Table
	kind    string
	sharing Sharing
	drop    fieldpath.Tree
	skip    *omitted
	reason  error
	// own is how many strings the last object had for itself.
	own atomic.Int32

	decoded, standard, rejected atomic.Int64
}

// NewMapDecoder returns a decoder for objects of a kind that shares with all decoders of
// the table. The kind says only whose repetition is learned together; it may be the zero
// value. The fields of drop are left out of the objects; nil leaves out none.
func NewMapDecoder(table *Table, kind schema.GroupVersionKind, sharing Sharing, drop fieldpath.Tree) *MapDecoder {
	table.start()
	d := &MapDecoder{table: table, kind: kind.String(), sharing: sharing, drop: drop}
	d.skip = table.omittedFor(drop)
	switch {
	case sharing < 0 || sharing >= ShareNothing:
		d.reason = errSharesNothing
	case IsSecret(kind.Group, "", kind.Kind):
		d.reason = errSecret
	}
	return d
}

// Shares returns nil if objects of the decoder's kind are shared, and otherwise why each
// of them is decoded for itself: they are Secrets, or sharing is turned off.
func (d *MapDecoder) Shares() error { return d.reason }

// Unmarshal decodes an object. It keeps nothing of data. It accepts what the API
// machinery accepts, and then the object is deeply equal to what that makes, but for the
// fields that are left out; it returns its error for what it rejects. The map of the
// object itself is always new and may be changed. A JSON null is a nil map. An object that
// says of itself that it is a Secret is decoded for itself.
func (d *MapDecoder) Unmarshal(data []byte) (map[string]any, error) {
	if d.reason != nil {
		return d.fallBack(data)
	}
	r := d.table.maps.take(d.table, d.sharing)
	object, ok := r.decode(d, data)
	d.table.maps.give(r)
	if !ok {
		return d.fallBack(data)
	}
	d.decoded.Add(1)
	return object, nil
}

// fallBack leaves an object to the API machinery.
func (d *MapDecoder) fallBack(data []byte) (map[string]any, error) {
	var object map[string]any
	if err := utiljson.Unmarshal(data, &object); err != nil {
		d.rejected.Add(1)
		return nil, err
	}
	d.standard.Add(1)
	d.drop.Remove(object)
	return object, nil
}

// Stats returns the decoder's counts.
func (d *MapDecoder) Stats() DecoderStats {
	return DecoderStats{Shared: d.decoded.Load(), Generated: d.standard.Load(), Rejected: d.rejected.Load()}
}

// omitted are the fields to be left out of the objects at a place. Bytes mean the same
// value only where the same is left out of them, which the shape says.
type omitted struct {
	fields map[string]*omitted // nil for a field that is left out whole
	shape  *shape
}
