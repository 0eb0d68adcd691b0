package dedup

import (
	"reflect"
	"unsafe"
)

// A run is the state of one goroutine that decodes objects of one Go type.
type run struct {
	table   *Table
	sharing Sharing
	sites   []site
	makers  []maker
	entries []entryScratch

	// owned says that the data being decoded is a copy that belongs to the value
	// that is being made, so that its strings may point into it.
	owned bool
	// unshared says that what was decoded holds something that must not be
	// shared: a Quantity with an address, or one with a number behind a pointer.
	unshared bool
	// refused is why the generated code must not see the data either, or nil.
	refused error
	// saves counts the bytes that sharing what was decoded would have saved.
	saves int
	depth int

	meta      bool  // objects begin with their metadata
	owner     owner // of the object
	decoded   int
	random    uint64
	collected collected
	recent    recent
	numbers   numbers

	hits, misses int
}

func newRun(t *Table, p *plan, sharing Sharing) *run {
	r := &run{table: t, sharing: sharing, meta: p.meta, sites: make([]site, p.sites)}
	for _, typ := range p.makers {
		r.makers = append(r.makers, newMaker(typ))
	}
	for _, typ := range p.maps {
		r.entries = append(r.entries, newEntryScratch(typ))
	}
	return r
}

// object decodes an object into the memory at to. If it returns false, that is
// half filled.
func (r *run) object(p *program, data []byte, to unsafe.Pointer) bool {
	r.recent.enter(r.decoded, r.table.round.Load())
	r.owner = anyone
	if r.meta {
		r.owner = ownerIn(data)
	}
	r.decoded++
	ok := r.message(p, data, to)
	if ok {
		r.collected.settle()
	} else {
		r.collected.forget()
	}
	r.unshared, r.saves = false, 0
	if r.decoded%tendEvery == 0 {
		r.table.counts.hits.Add(int64(r.hits))
		r.table.counts.misses.Add(int64(r.misses))
		r.hits, r.misses = 0, 0
		r.table.tend(tendEvery)
	}
	return ok
}

// sample reports whether a value is to be tried though its site is resting. It
// goes by chance, not by turns, as what a message repeats it may repeat in
// turns.
func (r *run) sample() bool {
	r.random = r.random*0x5851f42d4c957f2d + 0x14057b7ef767814f
	return r.random>>32%sampleRate == 0
}

// A maker makes zeroed values of one type. It grows a slice, which is the one way
// in which reflect allocates the values and nothing else.
type maker struct {
	slice  reflect.Value
	header *sliceHeader
	size   int
}

// sliceHeader is the layout of a slice.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// The layouts that are relied on: the build fails where one of them is another.
var (
	_ = [1]struct{}{}[unsafe.Sizeof([]byte(nil))-unsafe.Sizeof(sliceHeader{})]
	_ = [1]struct{}{}[unsafe.Sizeof(map[string]string(nil))-unsafe.Sizeof(unsafe.Pointer(nil))]
)

func newMaker(t reflect.Type) maker {
	p := reflect.New(reflect.SliceOf(t))
	return maker{slice: p.Elem(), header: (*sliceHeader)(p.UnsafePointer()), size: int(t.Size())}
}

// make returns the address of n values.
func (r *run) make(maker int32, n int) unsafe.Pointer {
	m := &r.makers[maker]
	m.slice.Grow(n)
	p := m.header.data
	*m.header = sliceHeader{}
	r.saves += n * m.size
	return p
}

// text sets *to to the string content.
func (r *run) text(site int32, content []byte, to *string) {
	if len(content) == 0 {
		*to = ""
		return
	}
	if r.owned {
		r.saves += len(content)
		*to = unsafe.String(&content[0], len(content))
		return
	}
	m := mix(content)
	if s, ok := r.sharedText(site, m, content); ok {
		*to = s
		return
	}
	r.collected.add(m, content, to)
}

// sharedText returns a shared string with this content, if there is to be one.
func (r *run) sharedText(site int32, m uint64, content []byte) (string, bool) {
	s := &r.sites[site]
	if s.resting() && !r.sample() || len(content) > maxText {
		return "", false
	}
	slot := &r.recent.texts[m>>r.recent.shift]
	if *slot == string(content) {
		r.hits++
		s.hit(len(content))
		return *slot, true
	}
	if r.collected.has(m, content) {
		// It is in this object already, which says nothing of others: the two are to
		// be one copy.
		return "", false
	}
	t := r.table
	h := t.hash(textShape, content)
	text, own, ok := t.texts.find(h, content, r.owner)
	if ok {
		r.hits++
		s.foundText(len(content), own)
	} else {
		r.misses++
		if !s.miss(costText+len(content), len(content), t.textAgain(h, r.owner)) || t.full.Load() {
			return "", false
		}
		text = string(content)
		t.keepText(h, text, r.owner)
	}
	if len(text) <= mostRecentText {
		*slot = text
	}
	return text, true
}

// keep returns content as a string that needs no settling.
func (r *run) keep(content []byte) string {
	if r.owned && len(content) > 0 {
		return unsafe.String(&content[0], len(content))
	}
	return string(content)
}
