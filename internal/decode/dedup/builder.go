package dedup

import "unsafe"

// A builder makes objects for the workers of all decoders: it finds shared parts, and has the state
// of the part that is being made.
type builder struct {
	finder
	own ownStrings
	part

	refused error // see objectWorker
}

// A part is an object or a value in it that is being made.
type part struct {
	// owned reports whether the data being decoded is a copy that belongs to the value that is
	// being made, so that its strings may point into it.
	owned bool
	// unshared reports whether the value holds a part that must not be shared: a Quantity with
	// an address, or one with a number behind a pointer.
	unshared bool
	// size counts the bytes that sharing the value would save.
	size int
}

func newBuilder(t *Table, sharing Sharing) builder {
	return builder{finder: finder{table: t, sharing: sharing}}
}

// endObject ends an object, which is complete if ok is set, and returns why others must not see
// its data.
func (b *builder) endObject(ok bool) (refused error) {
	if ok {
		b.own.assign()
	} else {
		b.own.forget()
	}
	b.part = part{}
	b.end()
	refused, b.refused = b.refused, nil
	return refused
}

// beginPart begins a value that is to be shared, whose data belong to it. It returns the part
// around it, for endPart.
func (b *builder) beginPart() (outer part) {
	outer = b.part
	b.part = part{owned: true}
	return outer
}

func (b *builder) endPart(outer part) {
	outer.unshared = outer.unshared || b.unshared
	outer.size += b.size
	b.part = outer
}

// text sets *to to the string content, now or when the object is complete.
func (b *builder) text(s *fieldStats, content []byte, to *string) {
	if len(content) == 0 {
		*to = ""
		return
	}
	if b.owned {
		b.size += len(content)
		*to = stringOf(content)
		return
	}
	m := mix(content)
	if b.tries(s) && len(content) <= maxText {
		if shared := b.finder.text(s, m, content, len(content), &b.own); shared != nil {
			*to = *shared
			return
		}
	}
	b.own.add(m, content, to)
}

// keepString returns content as a string that need not be assigned later.
func (b *builder) keepString(content []byte) string {
	if b.owned && len(content) > 0 {
		return stringOf(content)
	}
	return string(content)
}

func (b *builder) numberAt(size uintptr, bits uint64) unsafe.Pointer {
	if b.sharing == ShareAll {
		return b.finder.number(size, bits, true)
	}
	return newNumber(size, bits)
}

// typedValues make the values of the Go types of a plan, and have its fieldStats.
type typedValues struct {
	plan       *plan
	stats      []fieldStats
	allocators []allocator
}

func newTypedValues(p *plan) typedValues {
	return typedValues{p, make([]fieldStats, p.stats), make([]allocator, len(p.types))}
}

func (v *typedValues) make(l *layout, n int) unsafe.Pointer {
	return v.allocators[l.index].make(l.typ, n)
}
