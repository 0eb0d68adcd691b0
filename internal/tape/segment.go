package tape

import (
	"encoding/binary"
	"iter"
	"time"
)

// A record is kept as bytes, which a garbage collector does not read:
//
//	kind, type, form, flags    a byte each
//	at, part                   unsigned varints
//	key, version, data         each its size, an unsigned varint, and its bytes
//
// What has pointers is an extra.

// The flags of an encoded record.
const (
	flagLeftOut = 1 << iota
	flagExtra   // the next of segment.extras is its own
)

// extra is what is not encoded of a record.
type extra struct {
	part   int
	more   *More
	object any
}

// maxSize returns the most bytes that an encoded record takes.
func (r *Record) maxSize() int {
	return 4 + 5*binary.MaxVarintLen64 + len(r.Key) + len(r.Version) + len(r.Data)
}

// appendTo appends the encoded record of the writer with that part of a segment.
func (r *Record) appendTo(b []byte, part int) []byte {
	var flags byte
	if r.LeftOut {
		flags |= flagLeftOut
	}
	if r.More != nil || r.Object != nil {
		flags |= flagExtra
	}
	b = append(b, byte(r.Kind), r.Type, byte(r.Form), flags)
	b = binary.AppendUvarint(b, uint64(r.At))
	b = binary.AppendUvarint(b, uint64(part))
	b = binary.AppendUvarint(b, uint64(len(r.Key)))
	b = append(b, r.Key...)
	b = binary.AppendUvarint(b, uint64(len(r.Version)))
	b = append(b, r.Version...)
	b = binary.AppendUvarint(b, uint64(len(r.Data)))
	return append(b, r.Data...)
}

// records yields the records of a segment, with the part of their writer. Their Data is that of
// the segment.
func (s *segment) records() iter.Seq2[int, Record] {
	return func(yield func(int, Record) bool) {
		rest, extras := s.buf, s.extras
		number := func() uint64 {
			value, n := binary.Uvarint(rest)
			rest = rest[n:]
			return value
		}
		data := func() []byte {
			n := number()
			value := rest[:n:n]
			rest = rest[n:]
			return value
		}
		for len(rest) > 0 {
			r := Record{Kind: Kind(rest[0]), Type: rest[1], Form: Form(rest[2])}
			flags := rest[3]
			rest = rest[4:]
			r.At = time.Duration(number())
			part := int(number())
			r.Key, r.Version = string(data()), string(data())
			if d := data(); len(d) > 0 {
				r.Data = d
			}
			r.LeftOut = flags&flagLeftOut != 0
			if flags&flagExtra != 0 {
				r.More, r.Object = extras[0].more, extras[0].object
				extras = extras[1:]
			}
			if !yield(part, r) {
				return
			}
		}
	}
}
