package dedup

import (
	"encoding/binary"
	"math/bits"
	"unsafe"
	"weak"
)

// A finder finds shared strings and values for the objects of one goroutine, and keeps new
// ones. [fieldStats] and samples decide which ones it looks for.
type finder struct {
	table   *Table
	sharing Sharing
	object  objectTag // of the current object
	objects int       // so far
	random  uint64
	recent  recentCache
	numbers [256]cachedNumber
	found   *valueEntry // by the last call of decoded; nil if it found none

	hits, misses int // not yet counted in the table
}

// begin prepares for the next object.
func (f *finder) begin(object objectTag) {
	f.recent.begin(f.objects, f.table.round.Load())
	f.object = object
	f.objects++
}

// end counts an object and, after some of them, maintains the table.
func (f *finder) end() {
	if f.objects%maintainEvery != 0 {
		return
	}
	f.table.counts.hits.Add(int64(f.hits))
	f.table.counts.misses.Add(int64(f.misses))
	f.hits, f.misses = 0, 0
	f.table.maintain(maintainEvery)
}

// tries reports whether to look for a value of a field.
func (f *finder) tries(s *fieldStats) bool { return !s.paused() || f.sample() }

// sample reports whether a value is to be tried though its field is paused. It goes by
// chance, not by turns: an object may repeat values in turns.
func (f *finder) sample() bool {
	f.random = f.random*0x5851f42d4c957f2d + 0x14057b7ef767814f
	return f.random>>32%sampleRate == 0
}

// text returns a shared string with this content, whose mix is m, or nil. Sharing it saves
// that many bytes. A string that the object has in own already is not shared: that it comes
// twice in one object says nothing about others, and the two become one copy.
func (f *finder) text(s *fieldStats, m uint64, content []byte, saved int, own *ownStrings) *string {
	slot := &f.recent.texts[m>>f.recent.shift]
	if text := *slot; text != nil && *text == string(content) {
		f.hits++
		s.hit(saved)
		return text
	}
	if own != nil {
		if _, has := own.find(m, content); has {
			return nil
		}
	}
	t := f.table
	h := t.hash(textSpace, content)
	text, mine := t.findText(h, content, f.object)
	switch {
	case text == nil:
		f.misses++
		if !s.miss(costText+len(content), saved, t.seenText(h, f.object)) || t.full.Load() {
			return nil
		}
		e := newTextEntry(string(content), f.object)
		keep(t, &t.texts, h, e)
		text = &e.text
	case mine:
		f.hits++
		s.hitOwn(costText+saved, saved)
	default:
		f.hits++
		s.hit(saved)
	}
	if len(content) <= maxRecentText {
		*slot = text
	}
	return text
}

// decoded returns the value that was decoded from these bytes in a key space. If there is
// none, its address is nil, and kept reports whether to keep a new one, by the hash h.
func (f *finder) decoded(s *fieldStats, space *keySpace,
	key []byte) (v value, h uint64, kept bool) {
	slot := &f.recent.values[(mix(key)^space.salt)>>f.recent.shift]
	if e := *slot; e != nil && e.space == space && e.key == string(key) {
		if v, ok := e.value(); ok {
			f.hit(s, e)
			f.found = e
			return v, 0, false
		}
	}
	h = f.table.hash(space, key)
	e, v, kept := f.lookUp(s, h, space, key, nil, len(key))
	f.found = e
	if e != nil && len(key) <= maxRecentKey {
		*slot = e
	}
	return v, h, kept
}

// lookUp looks for a value in the table, as findValue does. Sharing it saves size bytes. If
// there is none, kept reports whether to keep a new one.
func (f *finder) lookUp(s *fieldStats, h uint64, space *keySpace, key []byte,
	equal func(value) bool, size int) (e *valueEntry, v value, kept bool) {
	t := f.table
	if e, v = t.findValue(h, space, key, equal); e != nil {
		f.hit(s, e)
		return e, v, false
	}
	f.misses++
	kept = s.miss(costValue+size, size, t.seenValue(h, f.object))
	return nil, value{}, kept && !t.full.Load()
}

func (f *finder) hit(s *fieldStats, e *valueEntry) {
	f.hits++
	if e.object == f.object && e.object != noTag {
		s.hitOwn(e.cost(), int(e.size))
		return
	}
	s.hit(int(e.size))
}

// keep puts a new value into the table.
func (f *finder) keep(h uint64, space *keySpace, key string, v value, size int) *valueEntry {
	e := &valueEntry{
		space: space, key: key, at: weak.Make((*byte)(v.at)), n: int32(v.n),
		size: int32(min(size, 1<<30)), object: f.object,
	}
	keep(f.table, &f.table.values, h, e)
	return e
}

// A cachedNumber is a number that many objects point to.
type cachedNumber struct {
	size uintptr
	bits uint64
	at   unsafe.Pointer // nil until it is needed
}

// number returns the address of the shared number of size bytes. For a number that was not
// asked for lately it returns nil, unless early is set.
func (f *finder) number(size uintptr, bits uint64, early bool) unsafe.Pointer {
	n := &f.numbers[(bits*0x9e3779b97f4a7c15^uint64(size)<<56)>>56]
	if n.size != size || n.bits != bits {
		*n = cachedNumber{size: size, bits: bits}
		if !early {
			return nil
		}
	}
	if n.at == nil {
		n.at = newNumber(size, bits)
	}
	return n.at
}

// A recentCache has the strings and values that a worker has shared lately, by a cheap hash.
// It spares the table for the strings that are everywhere, and for objects that come after
// similar ones.
type recentCache struct {
	texts  []*string
	values []*valueEntry
	shift  uint // of a hash of 64 bits, for an index
	round  uint32
}

const (
	leastRecent = 6  // bits of an index at first
	mostRecent  = 10 // and after manyObjects
	manyObjects = 256

	// maxRecentText and maxRecentKey bound the strings and keys that are remembered, and with them
	// the memory: to 256 KiB of strings and 1 MiB of keys, in the worst case.
	maxRecentText = 256
	maxRecentKey  = 1 << 10
)

func (c *recentCache) resize(bits uint) {
	c.texts, c.values = make([]*string, 1<<bits), make([]*valueEntry, 1<<bits)
	c.shift = 64 - bits
}

// begin prepares for the next object, after so many. It forgets everything when the strings
// of the table were swept, so that the table notices which ones are in use.
func (c *recentCache) begin(objects int, round uint32) {
	switch {
	case c.texts == nil:
		c.resize(leastRecent)
	case objects == manyObjects:
		c.resize(mostRecent)
	case c.round != round:
		clear(c.texts)
		clear(c.values)
	}
	c.round = round
}

// mix is a cheap hash of the length and the ends of b. It decides only where to look.
func mix(b []byte) uint64 {
	var x uint64
	n := len(b)
	switch {
	case n >= 8:
		x = binary.LittleEndian.Uint64(b) ^
			bits.RotateLeft64(binary.LittleEndian.Uint64(b[n-8:]), 29)
	case n >= 4:
		x = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<32
	case n > 0:
		x = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	return (x ^ uint64(n)<<7) * 0x9e3779b97f4a7c15
}
