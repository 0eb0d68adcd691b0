package tape

import (
	"iter"
	"time"
)

// segment has the records of a while.
type segment struct {
	number int     // of Ring.begun
	heads  []head  // of the records
	buf    []byte  // their texts and data; it never grows
	extras []extra // those that the heads say, in their order
	parts  []part  // by the number that a record has of its writer
	bytes  int64
	first  time.Duration // when its first record was written
	last   time.Duration // and its last one
	copied bool          // a recording refers to it
}

// part has the writer of some records of a segment, and its base.
type part struct {
	by   *Writer // nil if it has ended
	base Base
}

// head describes a record of a segment. It has no pointers, which a garbage collector would follow:
// key, version and data are in the buffer of the segment, one after the other, and the fields with
// pointers are an extra.
type head struct {
	at                       time.Duration
	part, key, version, data uint32 // the part of its writer, and sizes
	kind                     Kind
	eventType                uint8
	form                     Form
	leftOut                  bool
	hasExtra                 bool // the next of segment.extras is its own
}

// headBytes is the memory of a head.
const headBytes = 32

// extra has the fields of a record that have pointers.
type extra struct {
	part   int
	more   *More
	object any
}

// size returns the number of bytes that the record takes in the buffer of a segment.
func (r *Record) size() int { return len(r.Key) + len(r.Version) + len(r.Data) }

func (s *segment) add(r *Record, part int) {
	hasExtra := r.More != nil || r.Object != nil
	s.heads = append(s.heads, head{
		at: r.At, part: uint32(part), key: uint32(len(r.Key)), version: uint32(len(r.Version)),
		data: uint32(len(r.Data)), kind: r.Kind, eventType: r.Type, form: r.Form, leftOut: r.LeftOut,
		hasExtra: hasExtra,
	})
	s.buf = append(append(append(s.buf, r.Key...), r.Version...), r.Data...)
	if hasExtra {
		s.extras = append(s.extras, extra{part: part, more: r.More, object: r.Object})
	}
}

// records yields the records of a segment, with the part of their writer. Their Data is that of
// the segment.
func (s *segment) records() iter.Seq2[int, Record] {
	return func(yield func(int, Record) bool) {
		rest, extras := s.buf, s.extras
		take := func(n uint32) (taken []byte) {
			taken, rest = rest[:n:n], rest[n:]
			return taken
		}
		for _, h := range s.heads {
			r := Record{At: h.at, Kind: h.kind, Type: h.eventType, Form: h.form, LeftOut: h.leftOut}
			r.Key, r.Version = string(take(h.key)), string(take(h.version))
			if h.data > 0 {
				r.Data = take(h.data)
			}
			if h.hasExtra {
				r.More, r.Object = extras[0].more, extras[0].object
				extras = extras[1:]
			}
			if !yield(int(h.part), r) {
				return
			}
		}
	}
}
