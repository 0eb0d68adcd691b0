package dedup

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

// A MapDecoder decodes JSON objects of one kind into maps as the API machinery does for
// unstructured objects, and shares the parts that an object has in common with earlier ones.
// Several goroutines may use it at once; each of them keeps its own fieldStats.
type MapDecoder struct {
	table   *Table
	kind    string
	sharing Sharing
	drop    fieldpath.Tree
	omitted *omitted
	reason  error
	// strings is the number of strings that the last object had for itself.
	strings atomic.Int32

	counts decoderCounts
}

// NewMapDecoder returns a decoder for objects of a kind that shares with all decoders of the
// table. The decoders of one kind have their fieldStats in common; the kind may be the zero
// value. The fields of drop are left out of the objects; nil leaves out none.
func NewMapDecoder(table *Table, kind schema.GroupVersionKind, sharing Sharing,
	drop fieldpath.Tree) *MapDecoder {
	table.init()
	d := &MapDecoder{table: table, kind: kind.String(), sharing: sharing, drop: drop}
	d.omitted = table.plans.omit(drop)
	switch {
	case sharing.off():
		d.reason = errSharesNothing
	case IsSecret(kind.Group, "", kind.Kind):
		d.reason = errSecret
	}
	return d
}

// Shares returns nil if objects of the decoder's kind are shared, and otherwise why each of
// them is decoded for itself: they are Secrets, or sharing is turned off.
func (d *MapDecoder) Shares() error { return d.reason }

// Stats returns the decoder's counts.
func (d *MapDecoder) Stats() DecoderStats { return d.counts.stats() }

// Unmarshal decodes an object. It keeps nothing of data. It accepts all data that the API machinery
// accepts, and then the object is deeply equal to the one that the API machinery makes, except for
// the fields that are left out. For data that the API machinery rejects, it returns the error of
// the API machinery. The map of the object itself is always new and may be changed. A JSON null is
// a nil map. An object whose own kind is Secret is decoded for itself.
func (d *MapDecoder) Unmarshal(data []byte) (map[string]any, error) {
	if d.reason != nil {
		return d.unshared(data)
	}
	w := d.table.maps.take(d.sharing, func() *mapWorker {
		return newMapWorker(d.table, d.sharing)
	})
	object, ok := w.decode(d, data)
	d.table.maps.give(w, d.sharing)
	if !ok {
		return d.unshared(data)
	}
	d.counts.shared.Add(1)
	return object, nil
}

// unshared decodes an object as the API machinery does.
func (d *MapDecoder) unshared(data []byte) (map[string]any, error) {
	var object map[string]any
	if err := d.counts.left(utiljson.Unmarshal(data, &object)); err != nil {
		return nil, err
	}
	d.drop.Remove(object)
	return object, nil
}

// omitted are the fields to leave out of an object. They have a key space of their own: the
// same bytes have the same value only where the same fields are left out.
type omitted struct {
	fields map[string]*omitted // nil for a field that is left out whole
	space  *keySpace
}

// omit returns the fields that a tree leaves out, or nil if there are none.
func (p *plans) omit(drop fieldpath.Tree) *omitted {
	if len(drop.Paths()) == 0 {
		return nil
	}
	p.mu.Lock()
	o := &omitted{
		fields: map[string]*omitted{},
		space:  p.spaceLocked(variant{typ: objectsType, drop: drop.String()}),
	}
	p.mu.Unlock()
	for field, rest := range drop {
		if drop.Drops(field) {
			o.fields[field] = nil
		} else if inner := p.omit(rest); inner != nil {
			o.fields[field] = inner
		}
	}
	return o
}
