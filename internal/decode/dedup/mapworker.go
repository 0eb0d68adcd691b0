package dedup

import (
	"math"
	"strconv"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// A mapWorker is the state of one goroutine that decodes JSON into maps.
type mapWorker struct {
	builder
	tokens  wire.Tokens
	paths   pathTree
	scratch []byte
	source
	boxes

	// Empty objects and arrays are shared everywhere.
	emptyObject, emptyArray any
}

// boxes make room for strings, because an interface with a string is a pointer to it.
type boxes struct {
	room   []string
	atOnce int // how much room to make next
	used   int
}

// A source is the text that tokens are read from: data[0] is the byte that they know as number
// base.
type source struct {
	data []byte
	base uint32
}

func newMapWorker(t *Table, sharing Sharing) *mapWorker {
	w := &mapWorker{
		builder:     newBuilder(t, sharing),
		emptyObject: map[string]any{}, emptyArray: []any{},
	}
	w.paths.init()
	return w
}

// maxBoxes bounds the strings of an object, and maxSharedBoxes those of a shared value, for
// which room is made at once.
const maxBoxes, maxSharedBoxes = 256, 8

// decode decodes an object. It returns false for one that is left to the API machinery.
func (w *mapWorker) decode(d *MapDecoder, data []byte) (map[string]any, bool) {
	defer w.close()
	if !w.open(data) {
		return nil, false
	}
	strings := int(w.tokens.All[0].Strings)
	w.boxes = boxes{atOnce: max(1, min(int(d.strings.Load()), strings))}
	object := w.makeObject(0, w.paths.root(d.kind), d.omitted)
	d.strings.Store(int32(min(w.boxes.used, maxBoxes)))
	w.endObject(true)
	return object, true
}

// open cuts an object into tokens and begins it. It returns false for one that is left to the
// API machinery.
func (w *mapWorker) open(data []byte) bool {
	if !w.tokens.Read(data) || w.tokens.All[0].Kind != wire.Object {
		return false
	}
	w.source = source{data: data}
	if w.isSecret() {
		return false
	}
	tag := noTag
	uid := &w.tokens.All[w.member(w.member(0, "metadata"), "uid")]
	if uid.Kind == wire.String {
		tag = tagOf(w.content(uid))
	}
	w.begin(tag)
	w.paths.tidy()
	return true
}

func (w *mapWorker) close() {
	w.tokens.Forget()
	w.source, w.boxes = source{}, boxes{}
	if cap(w.scratch) > retainedBytes {
		w.scratch = nil
	}
}

// isSecret reports whether the object says that it is a Secret, or several. Both its kind and
// its API version may come twice: any of the kinds counts, whatever the version.
func (w *mapWorker) isSecret() bool {
	all := w.tokens.All
	for i := uint32(1); i < all[0].Next; i = all[i+1].Next {
		value := &all[i+1]
		if value.IsText() && string(w.content(&all[i])) == "kind" &&
			IsSecret("", "", string(w.content(value))) {
			return true
		}
	}
	return false
}

// member returns the token of a field of the object at a token, or 0.
func (w *mapWorker) member(object uint32, name string) uint32 {
	object = w.tokens.Open(object)
	all := w.tokens.All
	if all[object].Kind != wire.Object {
		return 0
	}
	for i := object + 1; i < all[object].Next; i = all[i+1].Next {
		if string(w.content(&all[i])) == name {
			return i + 1
		}
	}
	return 0
}

// content returns the content of a string. It is valid until the next call.
func (w *mapWorker) content(t *wire.Token) []byte {
	s := w.bytes(t)
	if t.Kind == wire.Escaped {
		w.scratch = wire.Unescape(w.scratch[:0], s)
		return w.scratch
	}
	return s
}

func (w *mapWorker) bytes(t *wire.Token) []byte {
	return w.data[t.Begin-w.base : t.End-w.base : t.End-w.base]
}

func (w *mapWorker) value(i uint32, path int32, omit *omitted) any {
	t := &w.tokens.All[i]
	switch t.Kind {
	case wire.False:
		return false
	case wire.True:
		return true
	case wire.Integer, wire.Float:
		return w.number(t)
	case wire.String, wire.Escaped:
		return w.text(t, path)
	case wire.Array, wire.Object:
		return w.nested(i, path, omit)
	}
	return nil
}

// The memory of objects and arrays without their elements: a map has a header, and groups of
// eight entries.
const (
	sizeMap    = 48
	sizeGroup  = 8*(16+16) + 32
	sizeArray  = 24
	sizeAny    = 16
	sizeString = 16
	sizeNumber = 8
)

func (w *mapWorker) makeObject(i uint32, path int32, omit *omitted) map[string]any {
	t := w.tokens.All[i]
	m := make(map[string]any, t.N)
	w.size += sizeMap + int(t.N+7)/8*sizeGroup
	last := int32(0)
	for k := i + 1; k < t.Next; k = w.tokens.All[k+1].Next {
		name, at := w.name(&w.tokens.All[k], path, last)
		var rest *omitted
		if omit != nil {
			known := false
			if rest, known = omit.fields[name]; known && rest == nil {
				continue
			}
		}
		m[name] = w.value(k+1, at, rest)
		if at != unknownPath {
			last = at
		}
	}
	return m
}

// makeArray makes a slice of the elements of an array. It has no room behind them.
func (w *mapWorker) makeArray(i uint32, path int32, omit *omitted) []any {
	t := w.tokens.All[i]
	a := make([]any, 0, t.N)
	w.size += sizeArray + int(t.N)*sizeAny
	elements := w.paths.elementsOf(path)
	for k := i + 1; k < t.Next; k = w.tokens.All[k].Next {
		a = append(a, w.value(k, elements, omit))
	}
	return a[:len(a):len(a)]
}

func (w *mapWorker) build(i uint32, path int32, omit *omitted) any {
	if w.tokens.All[i].Kind == wire.Object {
		return w.makeObject(i, path, omit)
	}
	return w.makeArray(i, path, omit)
}

// nested makes an object or array, or finds one that was decoded before from the same bytes,
// if it is still in use.
func (w *mapWorker) nested(i uint32, path int32, omit *omitted) any {
	i = w.tokens.Open(i)
	t := w.tokens.All[i]
	if w.sharing != ShareAll {
		return w.build(i, path, omit)
	}
	if t.N == 0 {
		if t.Kind == wire.Object {
			return w.emptyObject
		}
		return w.emptyArray
	}
	data := w.bytes(&t)
	if len(data) > maxShared {
		return w.build(i, path, omit)
	}
	s := &w.paths.nodes[path].nested
	if !w.tries(s) {
		return w.build(i, path, omit)
	}
	space := wholeSpace
	if omit != nil {
		space = omit.space
	}
	v, h, kept := w.decoded(s, space, data)
	switch {
	case v.at == nil && !kept:
		return w.build(i, path, omit)
	case v.at == nil:
		return w.buildShared(i, path, omit, h, space)
	case t.Kind == wire.Object:
		return eface{objectType, v.at}.any()
	default:
		return eface{arrayType, v.at}.any()
	}
}

// buildShared makes a value and puts it into the table. Its strings are parts of the key.
func (w *mapWorker) buildShared(i uint32, path int32, omit *omitted, h uint64,
	space *keySpace) any {
	t := w.tokens.All[i]
	key := string(w.bytes(&t))
	outer := w.enter(source{bytesOf(key), t.Begin}, t.Strings)
	made := w.build(i, path, omit)
	w.keep(h, space, key, value{efaceOf(made).data, 1}, w.size)
	w.leave(outer)
	return made
}

// A surrounding is the state that a worker comes back to after a shared part.
type surrounding struct {
	source
	part
	boxes
}

// enter begins a part that is to be shared and has so many strings, with a copy of its text.
func (w *mapWorker) enter(own source, strings uint32) surrounding {
	outer := surrounding{w.source, w.beginPart(), w.boxes}
	w.source, w.boxes = own, boxes{atOnce: max(1, min(int(strings), maxSharedBoxes))}
	return outer
}

func (w *mapWorker) leave(outer surrounding) {
	w.endPart(outer.part)
	w.source, w.boxes = outer.source, outer.boxes
}

// text makes an interface with a string.
func (w *mapWorker) text(t *wire.Token, path int32) any {
	content := w.content(t)
	if len(content) == 0 {
		return ""
	}
	if w.owned {
		s := w.box()
		*s = w.keepText(t, content)
		w.size += sizeString + len(content)
		return boxed(s)
	}
	m := mix(content)
	if s := &w.paths.nodes[path].strings; w.tries(s) && len(content) <= maxText {
		if shared := w.finder.text(s, m, content, sizeString+len(content), &w.own); shared != nil {
			return boxed(shared)
		}
	}
	if len(content) > maxOwn {
		return string(content)
	}
	s := w.box()
	w.own.add(m, content, s)
	return boxed(s)
}

// box returns room for a string.
func (b *boxes) box() *string {
	if len(b.room) == 0 {
		b.room = make([]string, b.atOnce)
		b.atOnce = min(b.atOnce, 4)
	}
	s := &b.room[0]
	b.room = b.room[1:]
	b.used++
	return s
}

// keepText returns the content of a token as a string.
func (w *mapWorker) keepText(t *wire.Token, content []byte) string {
	if t.Kind == wire.Escaped {
		return string(content)
	}
	return w.keepString(content)
}

// number makes an interface with a number: an int64 if it is a whole number that fits, and
// otherwise a float64, which the limits of wire.Tokens make sure of.
func (w *mapWorker) number(t *wire.Token) any {
	digits := w.bytes(t)
	w.size += sizeNumber
	if t.Kind == wire.Integer {
		if v, ok := integer(digits); ok {
			return eface{int64Type, w.finder.number(8, uint64(v), true)}.any()
		}
	}
	v, _ := strconv.ParseFloat(string(digits), 64)
	return eface{float64Type, w.finder.number(8, math.Float64bits(v), true)}.any()
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
