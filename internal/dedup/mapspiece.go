package dedup

import (
	"unsafe"
	"weak"
)

// mostPieceBoxes bounds the room that is made at a time for the strings of what is to be
// shared.
const mostPieceBoxes = 8

// subtree makes an object or array, or finds one that was decoded before from the same
// bytes, if it is still in use.
func (r *mapRun) subtree(i uint32, at int32, skip *omitted) any {
	t := r.cut.tokens[i]
	if r.sharing != ShareAll {
		return r.build(i, at, skip)
	}
	if t.n == 0 {
		if t.kind == tokenObject {
			return r.emptyObject
		}
		return r.emptyArray
	}
	data := r.bytes(&t)
	if len(data) > maxPiece {
		return r.build(i, at, skip)
	}
	s := &r.places.all[at].subtree
	if s.resting() && !r.sample() {
		return r.build(i, at, skip)
	}
	shape := wholeShape
	if skip != nil {
		shape = skip.shape
	}
	slot := &r.recent.items[(mix(data)^shape.salt)>>r.recent.shift]
	if it := *slot; it != nil && it.shape == shape && it.key == string(data) {
		if v, ok := it.value(); ok {
			r.hits++
			s.found(it, r.owner)
			return held(&t, v.at)
		}
	}
	table := r.table
	h := table.hash(shape, data)
	it, v, ok := table.pieces.find(h, shape, data)
	if ok {
		r.hits++
		s.found(it, r.owner)
		if len(data) <= mostRecentKey {
			*slot = it
		}
		return held(&t, v.at)
	}
	r.misses++
	if !s.miss(costItem+len(data), len(data), table.pieceAgain(h, r.owner)) || table.full.Load() {
		return r.build(i, at, skip)
	}
	return r.buildShared(i, at, skip, &item{hash: h, shape: shape, key: string(data), n: 1, by: r.owner})
}

// held returns an interface with what is at an address: a map, or the header of a
// slice.
func held(t *token, at unsafe.Pointer) any {
	if t.kind == tokenObject {
		return eface{objectType, at}.any()
	}
	return eface{arrayType, at}.any()
}

// buildShared makes a value and puts it into the table. Its strings are parts of the
// item's key.
func (r *mapRun) buildShared(i uint32, at int32, skip *omitted, it *item) any {
	t := r.cut.tokens[i]
	data, base, owned, saves := r.data, r.base, r.owned, r.saves
	boxes, more, taken := r.boxes, r.more, r.taken
	r.data, r.base, r.owned, r.saves = unsafe.Slice(unsafe.StringData(it.key), len(it.key)), t.begin, true, 0
	r.boxes, r.more = nil, max(1, min(int(t.strings), mostPieceBoxes))
	v := r.build(i, at, skip)
	it.at, it.size = weak.Make((*byte)(efaceOf(v).data)), int32(min(r.saves, 1<<30))
	r.table.keepPiece(it)
	r.data, r.base, r.owned, r.saves = data, base, owned, saves+r.saves
	r.boxes, r.more, r.taken = boxes, more, taken
	return v
}

// build makes an object or array.
func (r *mapRun) build(i uint32, at int32, skip *omitted) any {
	if r.cut.tokens[i].kind == tokenObject {
		return r.object(i, at, skip)
	}
	return r.array(i, at, skip)
}
