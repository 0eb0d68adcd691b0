package dedup

import (
	"math"
	"strconv"
	"unsafe"
)

// An eface is the layout of an interface without methods: its dynamic type, and a
// pointer to the value, or the value itself if that is a pointer, as maps are.
type eface struct{ typ, data unsafe.Pointer }

var _ = [1]struct{}{}[unsafe.Sizeof(any(nil))-unsafe.Sizeof(eface{})]

func efaceOf(v any) eface { return *(*eface)(unsafe.Pointer(&v)) }

func (e eface) any() any { return *(*any)(unsafe.Pointer(&e)) }

var (
	textType   = efaceOf("").typ
	objectType = efaceOf(map[string]any(nil)).typ
	arrayType  = efaceOf([]any(nil)).typ
)

// boxed returns an interface that holds the string at s, which nobody writes to once
// the object is decoded.
func boxed(s *string) any { return eface{textType, unsafe.Pointer(s)}.any() }

// box returns room for a string.
func (r *mapRun) box() *string {
	if len(r.boxes) == 0 {
		r.boxes = make([]string, r.more)
		r.more = min(r.more, 4)
	}
	s := &r.boxes[0]
	r.boxes = r.boxes[1:]
	r.taken++
	return s
}

const sizeText = 16

// text makes an interface with a string.
func (r *mapRun) text(t *token, at int32) any {
	content := r.content(t)
	if len(content) == 0 {
		return ""
	}
	if r.owned {
		s := r.box()
		*s = r.keep(t, content)
		r.saves += sizeText + len(content)
		return boxed(s)
	}
	m := mix(content)
	if s := r.sharedText(at, m, content); s != nil {
		return boxed(s)
	}
	if len(content) > maxCollected {
		return string(content)
	}
	s := r.box()
	r.collected.add(m, content, s)
	return boxed(s)
}

// sharedText returns a shared string with this content, or nil if there is not to be
// one.
func (r *mapRun) sharedText(at int32, m uint64, content []byte) *string {
	s := &r.places.all[at].texts
	if s.resting() && !r.sample() || len(content) > maxText {
		return nil
	}
	slot := &r.recent.texts[m>>r.recent.shift]
	if *slot != nil && **slot == string(content) {
		r.hits++
		s.hit(sizeText + len(content))
		return *slot
	}
	if r.collected.has(m, content) {
		return nil // as in run.sharedText
	}
	t := r.table
	h := t.hash(textShape, content)
	text, own := t.texts.box(h, content, r.owner)
	if text != nil {
		r.hits++
		s.foundText(sizeText+len(content), own)
	} else {
		r.misses++
		if !s.miss(costText+len(content), sizeText+len(content), t.textAgain(h, r.owner)) || t.full.Load() {
			return nil
		}
		text = new(string(content))
		t.keepBox(h, text, r.owner)
	}
	if len(content) <= mostRecentText {
		*slot = text
	}
	return text
}

// sample is as that of a run.
func (r *mapRun) sample() bool {
	r.random = r.random*0x5851f42d4c957f2d + 0x14057b7ef767814f
	return r.random>>32%sampleRate == 0
}

// number makes an interface with a number: a whole one that an int64 can hold is an
// int64, everything else a float64. The tokenizer has seen to it that there is one.
func (r *mapRun) number(t *token) any {
	digits := r.bytes(t)
	r.saves += sizeNumber
	if t.kind == tokenInteger {
		if v, ok := integer(digits); ok {
			slot := &r.ints[uint64(v)%uint64(len(r.ints))]
			if have, ok := (*slot).(int64); !ok || have != v {
				*slot = v
			}
			return *slot
		}
	}
	v, _ := strconv.ParseFloat(string(digits), 64)
	same := math.Float64bits(v)
	slot := &r.floats[same*0x9e3779b97f4a7c15>>58]
	if have, ok := (*slot).(float64); !ok || math.Float64bits(have) != same {
		*slot = v
	}
	return *slot
}

// integer returns a whole number if an int64 can hold it.
func integer(digits []byte) (int64, bool) {
	if len(digits) > 18 {
		v, err := strconv.ParseInt(string(digits), 10, 64)
		return v, err == nil
	}
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	v := int64(0)
	for _, c := range digits {
		v = v*10 + int64(c-'0')
	}
	if negative {
		v = -v
	}
	return v, true
}
