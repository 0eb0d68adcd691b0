package dedup

import (
	"unsafe"
	"weak"
)

const (
	// maxPiece bounds the bytes of what is shared as a whole; larger values are
	// shared in parts.
	maxPiece = 1 << 14
	// maxDepth bounds how deep messages are nested: far deeper than in any API.
	maxDepth = 100
)

// piece returns the value of a field whose n elements are in data: one that was
// decoded before from the same bytes, if it is still in use, or a new one.
func (r *run) piece(f *field, data []byte, n int) (value, bool) {
	if r.sharing != ShareAll || len(data) > maxPiece || len(data) == 0 || f.element == 0 {
		return r.build(f, data, n)
	}
	s := &r.sites[f.site]
	if s.resting() && !r.sample() {
		return r.build(f, data, n)
	}
	slot := &r.recent.items[(mix(data)^f.shape.salt)>>r.recent.shift]
	if it := *slot; it != nil && it.shape == f.shape && it.key == string(data) {
		if v, ok := it.value(); ok {
			r.hits++
			s.found(it, r.owner)
			return v, true
		}
	}
	t := r.table
	h := t.hash(f.shape, data)
	it, v, ok := t.pieces.find(h, f.shape, data)
	if ok {
		r.hits++
		s.found(it, r.owner)
		if len(data) <= mostRecentKey {
			*slot = it
		}
		return v, true
	}
	r.misses++
	if !s.miss(costItem+len(data), len(data), t.pieceAgain(h, r.owner)) || t.full.Load() {
		return r.build(f, data, n)
	}
	return r.buildShared(f, data, n, h)
}

// buildShared makes a value and puts it into the table.
func (r *run) buildShared(f *field, data []byte, n int, h uint64) (value, bool) {
	key := string(data)
	owned, unshared, saves := r.owned, r.unshared, r.saves
	r.owned, r.unshared, r.saves = true, false, 0
	v, ok := r.build(f, unsafe.Slice(unsafe.StringData(key), len(key)), n)
	if ok && !r.unshared {
		r.table.keepPiece(&item{
			hash: h, shape: f.shape, key: key, at: weak.Make((*byte)(v.at)), n: int32(v.n), size: int32(min(r.saves, 1<<30)), by: r.owner,
		})
	}
	r.owned, r.unshared, r.saves = owned, unshared || r.unshared, saves+r.saves
	return v, ok
}

// build makes the value of a field.
func (r *run) build(f *field, data []byte, n int) (value, bool) {
	if r.depth == maxDepth {
		return value{}, false
	}
	r.depth++
	v, ok := r.buildDeeper(f, data, n)
	r.depth--
	return v, ok
}

func (r *run) buildDeeper(f *field, data []byte, n int) (value, bool) {
	if f.op == opMap {
		at, ok := r.newMap(f, data, n)
		return value{at, n}, ok
	}
	at := r.make(f.maker, n)
	v := value{at, n}
	switch f.op {
	case opStringPointer:
		r.text(f.inner, data, (*string)(at))
		return v, true
	case opStrings:
		r.strings(f, data, unsafe.Slice((*string)(at), n))
		return v, true
	}
	if f.program.quantities {
		r.unshared = true
	}
	if f.op == opMessagePointer {
		return v, r.message(f.program, data, at)
	}
	return v, r.messages(f, data, at, n)
}
