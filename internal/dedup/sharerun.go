package dedup

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"unsafe"
	"weak"
)

// A shareRun is the state of one goroutine that shares objects of one Go type.
type shareRun struct {
	table   *Table
	sharing Sharing
	plan    *sharePlan
	sites   []site
	lately  []found // what was found lately, by site and path
	path    uint32  // of the elements that are being looked at
	makers  []copier
	hash    hasher
	recent  recent
	numbers [128]sharedBits
	patches []patch

	// saved counts the bytes that what was found saves, walked those that were looked
	// through in vain.
	saved, walked int
	// objects is the account of whole objects, and curious says that this one is a sample.
	objects site
	curious bool

	owner  owner // of the object
	depth  int
	shared int // objects so far
	random uint64

	hits, misses int
}

// A found value is one that was taken in some place. The next object often has the same
// there, and to compare is all that it then takes.
type found struct {
	site int32
	path uint32
	it   *item
	at   unsafe.Pointer // the value, if it is small: it is kept alive
}

const (
	latelyFound = 1 << 9
	// mostFound bounds a value that is kept alive because it was found lately, and with
	// it the memory: to 256 KiB.
	mostFound = 1 << 9
)

// lastFound returns the place for what is found at a site.
func (r *shareRun) lastFound(site int32) *found {
	return &r.lately[(uint32(site)*0x9e3779b1^r.path*0x85ebca6b)>>(32-9)]
}

// A patch is a change to a copy of a value.
type patch struct {
	offset uintptr
	kind   stepKind
	at     unsafe.Pointer
	n      int
}

// sharedBits is a number that many objects point to.
type sharedBits struct {
	elem *layout
	bits uint64
	at   unsafe.Pointer // nil until the number was seen again
}

func newShareRun(t *Table, p *sharePlan, sharing Sharing) *shareRun {
	r := &shareRun{table: t, sharing: sharing, plan: p, sites: make([]site, p.sites), lately: make([]found, latelyFound), random: rand.Uint64()}
	r.hash.seed, r.hash.key = t.seed, textShape.salt^t.hash(textShape, []byte("multiplier"))|1
	r.makers = make([]copier, len(p.makers))
	return r
}

// object returns what is to be in the place of the object at p.
func (r *shareRun) object(p unsafe.Pointer) unsafe.Pointer {
	if round := r.table.round.Load(); r.recent.round != round {
		clear(r.lately)
	}
	r.recent.enter(r.shared, r.table.round.Load())
	r.shared++
	r.hash.left, r.hash.depth, r.saved, r.depth, r.path = mostVisits, 0, 0, 0, 0
	r.walked, r.curious = 0, false
	if r.objects.resting() {
		if !r.sample() {
			return p
		}
		r.curious = true
	}
	p = r.block(r.plan.root, value{p, 1})
	r.account()
	if r.shared%tendEvery == 0 {
		r.table.counts.hits.Add(int64(r.hits))
		r.table.counts.misses.Add(int64(r.misses))
		r.hits, r.misses = 0, 0
		r.table.tend(tendEvery)
	}
	return p
}

// costObject is what an object costs in which little was found, in the bytes of sites.
const costObject = 128

// account takes note of whether it was worth it to look through an object.
func (r *shareRun) account() {
	found := r.saved * 2
	if r.curious {
		found = r.saved // all was tried, which finds what is otherwise not worth it
	}
	switch {
	case r.sharing != ShareAll:
	case found >= r.walked:
		r.objects.gain(r.saved)
	default:
		r.objects.pay(costObject)
	}
}

// tries reports whether a site tries with a value.
func (r *shareRun) tries(st *site) bool { return !st.resting() || r.curious || r.sample() }

// worth says how many bytes a copy of a value may take for one that it saves.
const worth = 3

// block looks for what can be shared in a value, or in the elements of a slice. Where
// something can be, it returns a copy that has it: what was given belongs to others.
func (r *shareRun) block(l *layout, v value) unsafe.Pointer {
	if l.flat || l.opaque != nil || r.depth == maxDepth || r.hash.left <= 0 {
		return v.at
	}
	if l.quantities && r.depth > 0 {
		return v.at // to copy a Quantity is to read it, which its owner may write to
	}
	r.depth++
	first, before := len(r.patches), r.saved
	r.saved = 0
	r.walked += v.n * int(l.size)
	path := r.path
	for i := range v.n {
		r.path = path*31 + uint32(i)
		offset := uintptr(i) * l.size
		r.steps(l, unsafe.Add(v.at, offset), offset)
	}
	r.path = path
	at := v.at
	if len(r.patches) > first && r.saved*worth >= v.n*int(l.size) {
		at = r.copy(l, v)
		for i := range r.patches[first:] {
			r.patches[first+i].apply(at)
		}
		before += r.saved
	}
	clear(r.patches[first:])
	r.patches = r.patches[:first]
	r.saved = before
	r.depth--
	return at
}

// apply changes a copy.
func (p *patch) apply(copied unsafe.Pointer) {
	at := unsafe.Add(copied, p.offset)
	switch p.kind {
	case stepText:
		*(*string)(at) = unsafe.String((*byte)(p.at), p.n)
	case stepSlice:
		*(*sliceHeader)(at) = sliceHeader{p.at, p.n, p.n}
	default:
		*(*unsafe.Pointer)(at) = p.at
	}
}

// steps goes through one value, which is at an offset of what is looked at.
func (r *shareRun) steps(l *layout, at unsafe.Pointer, offset uintptr) {
	for i := range l.steps {
		s := &l.steps[i]
		p := unsafe.Add(at, s.offset)
		switch s.kind {
		case stepMemory, stepInterface, stepQuantity:
		case stepText:
			t := *(*string)(p)
			if shared, ok := r.text(s.site, t); ok && unsafe.StringData(shared) != unsafe.StringData(t) {
				r.saved += (len(t) + 7) &^ 7
				r.patches = append(r.patches, patch{offset + s.offset, stepText, unsafe.Pointer(unsafe.StringData(shared)), len(t)})
			}
		default:
			v := s.load(p)
			if v.at == nil || v.n == 0 {
				continue
			}
			if other := r.part(s, v); other != v.at {
				r.patches = append(r.patches, patch{offset + s.offset, s.kind, other, v.n})
			}
		}
	}
}

// part returns what is to be in the place of what a field points to.
func (r *shareRun) part(s *step, v value) unsafe.Pointer {
	if s.kind == stepNumber {
		return r.number(s.elem, v.at)
	}
	if other, ok := r.whole(s, v); ok {
		return other.at
	}
	switch s.kind {
	case stepMap:
		return v.at
	case stepTree:
		m, _ := r.parts(asTree(v))
		return mapAt(m)
	}
	return r.block(s.elem, v)
}

// number returns a number that others have, too.
func (r *shareRun) number(l *layout, at unsafe.Pointer) unsafe.Pointer {
	if r.sharing != ShareAll {
		return at
	}
	bits := bitsAt(at, l.size)
	n := &r.numbers[(bits*0x9e3779b97f4a7c15^uint64(l.maker)<<57)>>57]
	switch {
	case n.elem != l || n.bits != bits:
		*n = sharedBits{elem: l, bits: bits}
		return at
	case n.at == nil:
		n.at = r.copy(l, value{at, 1})
	}
	r.saved += 8
	return n.at
}

// maxWhole bounds what is shared as a whole, in bytes of memory.
const maxWhole = 1 << 16

// whole returns the value that others have of what a step points to.
func (r *shareRun) whole(s *step, v value) (value, bool) {
	if r.sharing != ShareAll || s.elem != nil && s.kind != stepMap && uintptr(v.n)*s.elem.size > maxWhole {
		return value{}, false
	}
	st := &r.sites[s.site]
	if !r.tries(st) {
		return value{}, false
	}
	last := r.lastFound(s.site)
	if last.it != nil && last.site == s.site && last.path == r.path && int(last.it.n) == v.n {
		other, ok := value{last.at, v.n}, true
		if last.at == nil {
			other, ok = last.it.value()
		}
		if ok && equalParts(s, v, other) {
			r.hit(st, last.it)
			return other, true
		}
	}
	r.hash.failed, r.hash.size = false, 0
	h := r.hash.part(s, v)
	size := r.hash.size
	if r.hash.failed || size > maxWhole {
		st.pay(size / hashed)
		return value{}, false
	}
	h = max(h^s.shape.salt, firstHash)
	if it, other, ok := r.table.pieces.findPart(h, s, v); ok {
		r.remember(last, s, it, other)
		r.hit(st, it)
		return other, true
	}
	r.misses++
	keep := st.miss(costItem+size, size, r.table.pieceAgain(h, r.owner))
	st.pay(size / hashed)
	if !keep || r.table.full.Load() {
		return value{}, false
	}
	own := r.own(s, v)
	it := &item{hash: h, shape: s.shape, at: weak.Make((*byte)(own.at)), n: int32(own.n), size: int32(size), by: r.owner}
	r.table.keepPiece(it)
	r.remember(last, s, it, own)
	r.saved += size
	return own, true
}

// hashed is how many bytes are hashed in the time that it takes to allocate one.
const hashed = 8

// hit counts a value that was found.
func (r *shareRun) hit(st *site, it *item) {
	r.hits++
	r.saved += int(it.size)
	st.found(it, r.owner)
}

func (r *shareRun) remember(last *found, s *step, it *item, v value) {
	*last = found{site: s.site, path: r.path, it: it}
	if it.size <= mostFound {
		last.at = v.at
	}
}

// findPart returns the item of a value that equals v, and the value.
func (p *pieces) findPart(h uint64, s *step, v value) (*item, value, bool) {
	slots := *p.slots.Load()
	mask := uint64(len(slots) - 1)
	for k := range uint64(window) {
		slot := &slots[(h+k)&mask]
		have := slot.hash.Load()
		if have == emptySlot {
			break
		}
		if have != h {
			continue
		}
		it := slot.item.Load()
		if it == nil || it.hash != h || it.shape != s.shape || it.key != "" || int(it.n) != v.n {
			continue
		}
		if other, ok := it.value(); ok && equalParts(s, v, other) {
			return it, other, true
		}
	}
	return nil, value{}, false
}

// own returns a copy of what a step points to, down to the last pointer: nobody has it
// but those it will be shared with.
func (r *shareRun) own(s *step, v value) value {
	if s.kind == stepMap {
		return r.ownMap(s, v)
	}
	if s.kind == stepTree || s.kind == stepList {
		return r.ownTree(s, v)
	}
	own := value{r.copy(s.elem, v), v.n}
	if !s.elem.flat {
		for i := range v.n {
			r.ownBlock(s.elem, unsafe.Add(own.at, uintptr(i)*s.elem.size))
		}
	}
	return own
}

// ownBlock replaces what a copy has in common with what it is a copy of.
func (r *shareRun) ownBlock(l *layout, at unsafe.Pointer) {
	for i := range l.steps {
		s := &l.steps[i]
		p := unsafe.Add(at, s.offset)
		switch s.kind {
		case stepMemory, stepInterface, stepQuantity:
		case stepText:
			*(*string)(p) = r.ownText(s.site, *(*string)(p))
		default:
			v := s.load(p)
			if v.at == nil {
				continue
			}
			other, ok := value{unsafe.Pointer(&struct{}{}), 0}, true // an empty slice
			if v.n > 0 {
				other, ok = r.whole(s, v)
			}
			if !ok {
				other = r.own(s, v)
			}
			change := patch{s.offset, s.kind, other.at, v.n}
			change.apply(at)
		}
	}
}

// ownText returns a string that keeps nothing else alive.
func (r *shareRun) ownText(site int32, s string) string {
	if shared, ok := r.text(site, s); ok {
		return shared
	}
	return strings.Clone(s)
}

// text returns the string that others have of s.
func (r *shareRun) text(site int32, s string) (string, bool) {
	if len(s) == 0 || len(s) > maxText {
		return "", false
	}
	st := &r.sites[site]
	if !r.tries(st) {
		return "", false
	}
	content := unsafe.Slice(unsafe.StringData(s), len(s))
	slot := &r.recent.texts[mix(content)>>r.recent.shift]
	if *slot == s {
		r.hits++
		st.hit(len(s))
		return *slot, true
	}
	t := r.table
	h := t.hash(textShape, content)
	text, own, ok := t.texts.find(h, content, r.owner)
	if ok {
		r.hits++
		st.foundText(len(s), own)
	} else {
		r.misses++
		if !st.miss(costText+len(s), len(s), t.textAgain(h, r.owner)) || t.full.Load() {
			return "", false
		}
		text = strings.Clone(s)
		t.keepText(h, text, r.owner)
	}
	if len(text) <= mostRecentText {
		*slot = text
	}
	return text, true
}

// sample is that of run.
func (r *shareRun) sample() bool {
	r.random = r.random*0x5851f42d4c957f2d + 0x14057b7ef767814f
	return r.random>>32%sampleRate == 0
}

// A copier copies values of one type. Package reflect moves them, so that the garbage
// collector sees their pointers.
type copier struct {
	to, from             reflect.Value
	toHeader, fromHeader *sliceHeader
}

// copy returns the address of a copy of n values.
func (r *shareRun) copy(l *layout, v value) unsafe.Pointer {
	c := &r.makers[l.maker]
	if c.toHeader == nil {
		t := reflect.SliceOf(l.typ)
		to, from := reflect.New(t), reflect.New(t)
		*c = copier{to.Elem(), from.Elem(), (*sliceHeader)(to.UnsafePointer()), (*sliceHeader)(from.UnsafePointer())}
	}
	c.to.Grow(v.n)
	c.toHeader.len = v.n
	*c.fromHeader = sliceHeader{v.at, v.n, v.n}
	reflect.Copy(c.to, c.from)
	at := c.toHeader.data
	*c.toHeader, *c.fromHeader = sliceHeader{}, sliceHeader{}
	return at
}
