package dedup

import (
	"unsafe"
)

// A mapRun is the state of one goroutine that decodes JSON into maps.
type mapRun struct {
	table   *Table
	sharing Sharing
	cut     tokenizer
	places  places

	// data[0] is the byte of the text that tokens know as number base. owned says
	// that data is a copy that belongs to the value that is being made, so that
	// its strings may point into it.
	data  []byte
	base  uint32
	owned bool
	// saves counts the bytes that sharing what was decoded would have saved.
	saves int

	// boxes is room for strings: an interface with a string in it is a pointer to
	// one. more is how much room to make when it is used up, taken what was used.
	boxes       []string
	more, taken int

	owner     owner // of the object
	decoded   int
	random    uint64
	scratch   []byte
	collected collected
	recent    recentBoxes
	ints      [256]any
	floats    [64]any

	// What has nothing in it is the same everywhere.
	emptyObject, emptyArray any

	hits, misses int
}

func newMapRun(t *Table, sharing Sharing) *mapRun {
	r := &mapRun{table: t, sharing: sharing, emptyObject: map[string]any{}, emptyArray: []any{}}
	r.places.start()
	return r
}

// decode decodes an object. It returns false for what is to be left to the API
// machinery.
func (r *mapRun) decode(d *MapDecoder, data []byte) (map[string]any, bool) {
	defer r.cut.forget()
	if !r.cut.read(data) || r.cut.tokens[0].kind != tokenObject {
		return nil, false
	}
	r.data, r.base = data, 0
	if r.secret() {
		r.data = nil
		return nil, false
	}
	r.recent.enter(r.decoded, r.table.round.Load())
	r.owner = r.ownerOf(r.member(r.member(0, "metadata"), "uid"))
	r.places.tidy()
	r.decoded++
	r.more, r.taken = max(1, min(int(d.own.Load()), int(r.cut.tokens[0].strings))), 0
	object := r.object(0, r.root(d.kind), d.skip)
	d.own.Store(int32(min(r.taken, mostBoxes)))
	r.collected.settle()
	r.data, r.boxes, r.saves = nil, nil, 0
	if cap(r.scratch) > mostBytes {
		r.scratch = nil
	}
	if r.decoded%tendEvery == 0 {
		r.table.counts.hits.Add(int64(r.hits))
		r.table.counts.misses.Add(int64(r.misses))
		r.hits, r.misses = 0, 0
		r.table.tend(tendEvery)
	}
	return object, true
}

// mostBoxes bounds the strings for which room is made before it is needed.
const mostBoxes = 256

// root returns the place of the objects of a kind.
func (r *mapRun) root(kind string) int32 {
	name := []byte(kind)
	if at := r.places.find(0, mix(name), name); at != 0 {
		return at
	}
	if at := r.places.add(0, kind); at != 0 {
		return at
	}
	return noPlace
}

// secret reports whether the object says that it is a Secret, or several. Both its kind and
// its API version may come twice: any of the kinds counts, whatever the version.
func (r *mapRun) secret() bool {
	tokens := r.cut.tokens
	for i := uint32(1); i < tokens[0].next; i = tokens[i+1].next {
		value := &tokens[i+1]
		if value.kind < tokenString || value.kind > tokenEscaped || string(r.content(&tokens[i])) != "kind" {
			continue
		}
		if IsSecret("", "", string(r.content(value))) {
			return true
		}
	}
	return false
}

// member returns the token of a field of the object at a token, or 0.
func (r *mapRun) member(object uint32, name string) uint32 {
	tokens := r.cut.tokens
	if tokens[object].kind != tokenObject {
		return 0
	}
	for i := object + 1; i < tokens[object].next; i = tokens[i+1].next {
		if string(r.content(&tokens[i])) == name {
			return i + 1
		}
	}
	return 0
}

// ownerOf returns the owner whose UID is at a token, or anyone.
func (r *mapRun) ownerOf(uid uint32) owner {
	if t := &r.cut.tokens[uid]; t.kind == tokenString {
		return ownerOf(r.content(t))
	}
	return anyone
}

// content returns the content of a string. It is valid until the next call.
func (r *mapRun) content(t *token) []byte {
	s := r.bytes(t)
	if t.kind == tokenEscaped {
		r.scratch = unescape(r.scratch[:0], s)
		return r.scratch
	}
	return s
}

func (r *mapRun) bytes(t *token) []byte {
	return r.data[t.begin-r.base : t.end-r.base : t.end-r.base]
}

// value makes the value of a token, which stands at a place.
func (r *mapRun) value(i uint32, at int32, skip *omitted) any {
	t := &r.cut.tokens[i]
	switch t.kind {
	case tokenFalse:
		return false
	case tokenTrue:
		return true
	case tokenInteger, tokenFloat:
		return r.number(t)
	case tokenString, tokenEscaped:
		return r.text(t, at)
	case tokenArray, tokenObject:
		return r.subtree(i, at, skip)
	}
	return nil
}

// What objects and arrays take beside what is in them: a map has a header, and groups
// of eight entries.
const (
	sizeMap    = 48
	sizeGroup  = 8*(16+16) + 32
	sizeArray  = 24
	sizeValue  = 16
	sizeNumber = 8
)

// object makes a map of the fields of an object.
func (r *mapRun) object(i uint32, at int32, skip *omitted) map[string]any {
	t := r.cut.tokens[i]
	m := make(map[string]any, t.n)
	r.saves += sizeMap + int(t.n+7)/8*sizeGroup
	last := int32(0)
	for k := i + 1; k < t.next; k = r.cut.tokens[k+1].next {
		name, place := r.name(&r.cut.tokens[k], at, last)
		var rest *omitted
		if skip != nil {
			known := false
			if rest, known = skip.fields[name]; known && rest == nil {
				continue
			}
		}
		m[name] = r.value(k+1, place, rest)
		if place != noPlace {
			last = place
		}
	}
	return m
}

// array makes a slice of the elements of an array. It ends where its memory does.
func (r *mapRun) array(i uint32, at int32, skip *omitted) []any {
	t := r.cut.tokens[i]
	a := make([]any, 0, t.n)
	r.saves += sizeArray + int(t.n)*sizeValue
	elements := r.places.elementsOf(at)
	for k := i + 1; k < t.next; k = r.cut.tokens[k].next {
		a = append(a, r.value(k, elements, skip))
	}
	return a[:len(a):len(a)]
}

// name returns the name of a field in the object at a place, after the one at last, and
// the place of its value.
func (r *mapRun) name(t *token, at, last int32) (string, int32) {
	content := r.content(t)
	if at == noPlace {
		return r.keep(t, content), noPlace
	}
	guess := &r.places.all[at].first
	if last > noPlace {
		guess = &r.places.all[last].next
	}
	if have := &r.places.all[*guess]; *guess != 0 && have.name == string(content) {
		return have.name, *guess
	}
	place := r.places.find(at, mix(content), content)
	if place == 0 {
		if len(content) > mostName || len(content) == 0 || !r.table.sightings.again(r.table.hash(nameShape, content), anyone, false) {
			return r.keep(t, content), noPlace
		}
		if place = r.places.add(at, string(content)); place == 0 {
			return r.keep(t, content), noPlace
		}
		if last > noPlace { // places have moved
			guess = &r.places.all[last].next
		} else {
			guess = &r.places.all[at].first
		}
	}
	*guess = place
	return r.places.all[place].name, place
}

// keep returns the content of a token as a string.
func (r *mapRun) keep(t *token, content []byte) string {
	if r.owned && t.kind == tokenString && len(content) > 0 {
		return unsafe.String(&content[0], len(content))
	}
	return string(content)
}
