package dedup

import (
	"math/rand/v2"
	"strings"
	"unsafe"
)

// A shareWorker is the state of one goroutine that shares objects of one Go type.
type shareWorker struct {
	finder
	typedValues
	hash    hasher
	lately  []foundValue // by field and path
	path    uint32       // of the current elements of slices
	patches []patch

	// saved counts the bytes that shared values save, and searched those that were looked
	// through for them.
	saved, searched int
	// objectStats are those of whole objects, and sampled reports whether the current one is a
	// sample.
	objectStats fieldStats
	sampled     bool
	depth       int
}

// A foundValue is a shared value of a field. The next object often has the same there, and
// then it is only compared.
type foundValue struct {
	stats int32
	path  uint32
	entry *valueEntry
	at    unsafe.Pointer // the value, if it is small: it is kept alive
}

const (
	foundBits = 9
	// maxFound bounds a value that is kept alive because it was found lately, and with it
	// the memory: to 256 KiB.
	maxFound = 1 << 9

	// maxWhole bounds the memory of a value that is shared as a whole, in bytes.
	maxWhole = 1 << 16
	// costObject is the cost of an object in which little was found.
	costObject = 128
	// copyPerSaved is the number of bytes that a copy of a value may take for one that it saves.
	copyPerSaved = 3
	// hashedPerCost is the number of bytes that are hashed in the time that it takes to allocate
	// one.
	hashedPerCost = 8
)

// A patch is a change to a copy of a value.
type patch struct {
	offset uintptr
	kind   kind
	value
}

func newShareWorker(t *Table, p *plan, sharing Sharing) *shareWorker {
	w := &shareWorker{
		finder:      finder{table: t, sharing: sharing, random: rand.Uint64()},
		typedValues: newTypedValues(p), lately: make([]foundValue, 1<<foundBits),
	}
	w.hash.seed, w.hash.key = t.seed, t.hash(textSpace, []byte("multiplier"))|1
	return w
}

func (w *shareWorker) share(p unsafe.Pointer, tag objectTag) unsafe.Pointer {
	if w.recent.round != w.table.round.Load() {
		clear(w.lately)
	}
	w.begin(tag)
	w.hash.left, w.hash.depth, w.depth, w.path = maxVisits, 0, 0, 0
	w.saved, w.searched = 0, 0
	if w.sampled = w.objectStats.paused(); w.sampled && !w.sample() {
		return p
	}
	p = w.parts(w.plan.root, value{p, 1})
	w.count()
	w.end()
	return p
}

// count counts whether it was worth looking through an object.
func (w *shareWorker) count() {
	saved := w.saved * 2
	if w.sampled {
		saved = w.saved // every field was tried, also those that are mostly not worth it
	}
	switch {
	case w.sharing != ShareAll:
	case saved >= w.searched:
		w.objectStats.gain(w.saved)
	default:
		w.objectStats.pay(costObject)
	}
}

// tries reports whether to look for a value of a field.
func (w *shareWorker) tries(s *fieldStats) bool { return w.sampled || w.finder.tries(s) }

// parts looks for parts to share in a value, or in the elements of a slice. If it finds some,
// it returns a copy that has them, because the given object is not written to.
func (w *shareWorker) parts(l *layout, v value) unsafe.Pointer {
	if l.flat || l.opaque != nil || w.tooDeep() {
		return v.at
	}
	if l.selfWriting && w.depth > 0 {
		return v.at // to copy a Quantity is to read it, while its readers may write to it
	}
	w.depth++
	first, path, size := len(w.patches), w.path, v.n*int(l.size)
	before := w.search(size)
	for i := range v.n {
		w.path = path*31 + uint32(i)
		offset := uintptr(i) * l.size
		w.fields(l, unsafe.Add(v.at, offset), offset)
	}
	w.path = path
	at := v.at
	if w.worthwhile(before, len(w.patches) > first, size) {
		at = w.allocators[l.index].copy(l.typ, v)
		for _, p := range w.patches[first:] {
			store(p.kind, unsafe.Add(at, p.offset), p.value)
		}
	}
	clear(w.patches[first:])
	w.patches = w.patches[:first]
	w.depth--
	return at
}

func (w *shareWorker) tooDeep() bool { return w.depth == maxDepth || w.hash.left <= 0 }

// search begins to look through size bytes. It returns the bytes that were saved before.
func (w *shareWorker) search(size int) (before int) {
	before, w.saved = w.saved, 0
	w.searched += size
	return before
}

// worthwhile ends the search. It reports whether the parts found in a value are worth a copy
// of size bytes; if it is not, it does not count as saved.
func (w *shareWorker) worthwhile(before int, changed bool, size int) bool {
	if changed = changed && w.saved*copyPerSaved >= size; changed {
		before += w.saved
	}
	w.saved = before
	return changed
}

// fields goes through the fields of one value, which is at an offset of the current value.
func (w *shareWorker) fields(l *layout, at unsafe.Pointer, offset uintptr) {
	for i := range l.fields {
		f := &l.fields[i]
		p := unsafe.Add(at, f.offset)
		switch f.kind {
		case kindBits, kindAny, kindQuantity:
		case kindString:
			t := *(*string)(p)
			shared, ok := w.text(f.stats, t)
			if ok && unsafe.StringData(shared) != unsafe.StringData(t) {
				w.saved += (len(t) + 7) &^ 7
				text := value{unsafe.Pointer(unsafe.StringData(shared)), len(t)}
				w.patches = append(w.patches, patch{offset + f.offset, kindString, text})
			}
		default:
			v := load(f.kind, p)
			if v.at == nil || v.n == 0 {
				continue
			}
			if other := w.replacement(f, v); other != v.at {
				w.patches = append(w.patches, patch{offset + f.offset, f.kind, value{other, v.n}})
			}
		}
	}
}

func (w *shareWorker) replacement(f *field, v value) unsafe.Pointer {
	if f.kind == kindNumber {
		return w.number(f.elem.size, v.at)
	}
	if other, ok := w.whole(f, v); ok {
		return other.at
	}
	switch f.kind {
	case kindMap:
		return v.at
	case kindObject:
		other, _ := w.objectParts(v)
		return other.at
	}
	return w.parts(f.elem, v)
}

// number returns a number that others have, too.
func (w *shareWorker) number(size uintptr, at unsafe.Pointer) unsafe.Pointer {
	if w.sharing != ShareAll {
		return at
	}
	shared := w.finder.number(size, bitsAt(at, size), false)
	if shared == nil {
		return at
	}
	w.saved += 8
	return shared
}

// whole returns the shared value that equals the target of a field, if there is one now.
func (w *shareWorker) whole(f *field, v value) (value, bool) {
	if w.sharing != ShareAll || f.elem != nil && uintptr(v.n)*f.elem.size > maxWhole {
		return value{}, false
	}
	s := &w.stats[f.stats]
	if !w.tries(s) {
		return value{}, false
	}
	last := &w.lately[(uint32(f.stats)*0x9e3779b1^w.path*0x85ebca6b)>>(32-foundBits)]
	if e := last.entry; e != nil && last.stats == f.stats && last.path == w.path &&
		int(e.n) == v.n {
		other, ok := value{last.at, v.n}, true
		if last.at == nil {
			other, ok = e.value()
		}
		if ok && equalValues(f, v, other) {
			w.hit(s, e)
			w.saved += int(e.size)
			return other, true
		}
	}
	w.hash.failed, w.hash.size = false, 0
	h := w.hash.value(f, v)
	size := w.hash.size
	if w.hash.failed || size > maxWhole {
		s.pay(size / hashedPerCost)
		return value{}, false
	}
	h = max(h^f.space.salt, firstHash)
	equal := func(other value) bool { return equalValues(f, v, other) }
	e, other, kept := w.lookUp(s, h, f.space, nil, equal, size)
	if e == nil {
		s.pay(size / hashedPerCost)
		if !kept {
			return value{}, false
		}
		other = w.clone(f, v)
		e = w.keep(h, f.space, "", other, size)
	}
	w.saved += size
	*last = foundValue{stats: f.stats, path: w.path, entry: e}
	if e.size <= maxFound {
		last.at = other.at
	}
	return other, true
}

// clone returns a copy of the target of a field, down to the last pointer: only those have
// it that it will be shared with.
func (w *shareWorker) clone(f *field, v value) value {
	switch f.kind {
	case kindMap:
		return w.cloneMap(f, v)
	case kindObject:
		return cloneEntries(w, w.plan.generic[genericName("")].inner, v, func(key string, x any) any {
			x, _ = w.generic(x, genericName(key), true)
			return x
		})
	case kindArray:
		list := exactCopy(listOf(v))
		for i := range list {
			list[i], _ = w.generic(list[i], f.tag, true)
		}
		return listAt(list)
	}
	l := f.elem
	clone := value{w.allocators[l.index].copy(l.typ, v), v.n}
	if !l.flat {
		for i := range v.n {
			w.separate(l, unsafe.Add(clone.at, uintptr(i)*l.size))
		}
	}
	return clone
}

// separate replaces the parts that a copy has in common with its original.
func (w *shareWorker) separate(l *layout, at unsafe.Pointer) {
	for i := range l.fields {
		f := &l.fields[i]
		p := unsafe.Add(at, f.offset)
		switch f.kind {
		case kindBits, kindAny, kindQuantity:
		case kindString:
			*(*string)(p) = w.cloneText(f.stats, *(*string)(p))
		default:
			v := load(f.kind, p)
			if v.at == nil {
				continue
			}
			other, ok := emptySlice, true
			if v.n > 0 {
				other, ok = w.whole(f, v)
			}
			if !ok {
				other = w.clone(f, v)
			}
			store(f.kind, p, value{other.at, v.n})
		}
	}
}

// cloneText returns a string that keeps nothing else alive.
func (w *shareWorker) cloneText(stats int32, s string) string {
	if shared, ok := w.text(stats, s); ok {
		return shared
	}
	return strings.Clone(s)
}

// text returns the shared string that equals s.
func (w *shareWorker) text(stats int32, s string) (string, bool) {
	if len(s) == 0 || len(s) > maxText {
		return "", false
	}
	st := &w.stats[stats]
	if !w.tries(st) {
		return "", false
	}
	content := bytesOf(s)
	if shared := w.finder.text(st, mix(content), content, len(s), nil); shared != nil {
		return *shared, true
	}
	return "", false
}
