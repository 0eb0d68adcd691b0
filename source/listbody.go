package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
)

// errUnusual is a list in protobuf that does not begin as encoders have it begin.
var errUnusual = errors.New("the list does not begin with its kind, followed by its content")

// protobufList splits the body of a list into the encoded items, as it arrives. It has a
// body begin as Go's encoders write it, the kind first and the list right after that: then
// no item is decoded before it is known what it is. Any other beginning is refused with
// errUnusual, before anything was taken. What follows is read as openEnvelope and openList
// read it, except that a list which comes twice is malformed: the first one is gone.
type protobufList struct {
	check func(*envelope) error // refuses a kind
	begun bool
	left  uint64 // bytes of the list that were not taken yet
	head  listHead
}

// maxTypeMeta bounds the kind at the beginning, which has some 20 bytes.
const maxTypeMeta = 1 << 10

// preallocated bounds the room that is made for an item because of the length that it
// announces. A longer one gets room as it arrives.
const preallocated = 1 << 20

func (l *protobufList) split(buf []byte) (item []byte, taken int, want int64, err error) {
	if !l.begun {
		if taken, err = l.begin(buf); taken == 0 || err != nil {
			return nil, 0, 0, err
		}
	}
	for taken < len(buf) {
		n := 0
		if l.left > 0 {
			item, n, want, err = l.field(buf[taken:])
			l.left -= uint64(n)
		} else {
			n, err = l.trailer(buf[taken:])
		}
		taken += n
		if item != nil || n == 0 || err != nil {
			return item, taken, want, err
		}
	}
	return nil, taken, 0, nil
}

// begin takes everything before the first field of the list, 0 bytes if it has not arrived.
func (l *protobufList) begin(buf []byte) (taken int, err error) {
	const kind, list = unknownTypeMeta<<3 | bytesType, unknownRaw<<3 | bytesType
	at := len(protobufMagic)
	if len(buf) <= at {
		return 0, nil
	}
	if !bytes.HasPrefix(buf, protobufMagic) || buf[at] != kind {
		return 0, errUnusual
	}
	_, end := span(buf, at+1)
	if end >= 0 && end < len(buf) && buf[end] != list {
		return 0, errUnusual
	}
	if end < 0 || end+1 >= len(buf) {
		return 0, unlessLong(buf)
	}
	size, width := varint(buf[end+1:])
	if width < 0 {
		return 0, unlessLong(buf)
	}
	e, err := openEnvelope(buf[:end])
	if err == nil {
		err = l.check(&e)
	}
	if err != nil || size > math.MaxInt {
		return 0, errUnusual
	}
	l.begun, l.left = true, size
	return end + 1 + width, nil
}

// unlessLong returns errUnusual if buf is longer than a beginning that is not complete may be.
func unlessLong(buf []byte) error {
	if len(buf) > maxTypeMeta {
		return errUnusual
	}
	return nil
}

// field takes a field of the list: an item, or something else that is nil. It takes 0 bytes
// if the field has not arrived; want is then how many it has, if that is known.
func (l *protobufList) field(buf []byte) (item []byte, taken int, want int64, err error) {
	whole := uint64(len(buf)) >= l.left
	if whole {
		buf = buf[:l.left]
	}
	f := fields{rest: buf, kinds: listKinds}
	if !f.next() {
		if whole || !f.cut {
			return nil, 0, 0, f.err
		}
		return nil, 0, l.wanted(buf), nil
	}
	switch f.field {
	case listMetadata:
		err = l.head.read(f.content)
	case listItems:
		item = f.content
	}
	return item, len(buf) - len(f.rest), 0, err
}

// wanted returns the size of a field that has not all arrived, 0 if it is not known or
// not to be trusted.
func (l *protobufList) wanted(buf []byte) int64 {
	tag, width := varint(buf)
	if width < 0 || tag&7 != bytesType {
		return 0
	}
	size, more := varint(buf[width:])
	if more < 0 || size > preallocated {
		return 0
	}
	return int64(width) + int64(more) + int64(size)
}

// trailer takes a field that follows the list in its envelope.
func (l *protobufList) trailer(buf []byte) (taken int, err error) {
	f := fields{rest: buf, kinds: unknownKinds}
	if !f.next() {
		if f.cut {
			return 0, nil
		}
		return 0, f.err
	}
	if f.field == unknownTypeMeta || f.field == unknownRaw {
		return 0, fmt.Errorf("%w list in protobuf: its kind or its content comes twice", ErrMalformed)
	}
	return len(buf) - len(f.rest), nil
}

// readProtobufPage reads a list in protobuf from a body and decodes its items as they
// arrive. The body is never in memory as a whole, unless it begins in an unusual way.
func (s *REST[T]) readProtobufPage(body *reading, held Held) (Page[T], error) {
	list := &protobufList{check: s.checkListKind}
	frames := newFrames(body, list, body.limit)
	if buf := s.buffer.Swap(nil); buf != nil {
		frames.buf = *buf
	}
	asker := s.askerFor(held, true)
	var page Page[T]
	var items [][]byte
	for {
		clear(items)
		items = items[:0]
		var ended error
		size := 0
		for len(items) < maxBatch && ended == nil {
			var item []byte
			item, ended = frames.next(len(items) == 0)
			if item == nil {
				break
			}
			if !asker.holds(item) {
				if err := body.object(len(item)); err != nil {
					return page, err
				}
				items = append(items, item)
				size += len(item)
			}
		}
		if err := s.decodeItems(&page, items, size, s.decoder.protobuf); err != nil {
			return page, err
		}
		switch {
		case ended == nil:
		case !list.begun:
			return s.readWholePage(body, frames.rest())
		case ended == io.EOF && list.left == 0:
			page.Version, page.Continue, page.Remaining = list.head.version, list.head.token, list.head.remaining
			if page.Continue != "" && len(frames.buf) <= retainedBuffer {
				buf := frames.buf // a pointer into frames would keep the answer
				s.buffer.Store(&buf)
			}
			return page, nil
		case ended == io.EOF || errors.Is(ended, ErrCutFrame):
			return page, fmt.Errorf("%w list in protobuf: %w after %d bytes", ErrMalformed, ErrCutFrame, body.read)
		case errors.Is(ended, io.ErrUnexpectedEOF):
			return page, fmt.Errorf("%w after %d bytes: %w", ErrCutFrame, body.read, ended)
		default:
			return page, ended
		}
	}
}

// readWholePage reads a list in protobuf that was not understood as it arrived, after what
// has arrived.
func (s *REST[T]) readWholePage(body *reading, arrived []byte) (Page[T], error) {
	whole, err := readBody(io.MultiReader(bytes.NewReader(arrived), body))
	if err != nil {
		return Page[T]{}, err
	}
	return s.decodePage(body, protobufType, whole, nil)
}
