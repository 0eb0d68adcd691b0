package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/wire"
)

// errUnusual is a list in protobuf that does not begin as encoders write it.
var errUnusual = errors.New("the list does not begin with its kind, followed by its content")

// protobufList splits the body of a list into the encoded items, as it arrives. The body
// must begin as Go's encoders write it, the kind first and the list right after that: then
// the kind is known before an item is decoded. For any other beginning, it returns
// errUnusual and takes nothing. A list that comes twice is malformed.
type protobufList struct {
	check func(*envelope) error // refuses a kind
	begun bool
	left  uint64 // bytes of the list that were not taken yet
	meta  metav1.ListMeta
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
	const kind, list = unknownTypeMeta<<3 | wire.BytesType, unknownRaw<<3 | wire.BytesType
	at := len(protobufMagic)
	if len(buf) <= at {
		return 0, nil
	}
	if !bytes.HasPrefix(buf, protobufMagic) || buf[at] != kind {
		return 0, errUnusual
	}
	_, end := wire.Span(buf, at+1)
	if end >= 0 && end < len(buf) && buf[end] != list {
		return 0, errUnusual
	}
	size, next := uint64(0), -1
	if end >= 0 {
		size, next = wire.Varint(buf, end+1)
	}
	switch {
	case next < 0 && len(buf) > maxTypeMeta:
		return 0, errUnusual
	case next < 0:
		return 0, nil
	}
	e, err := openEnvelope(buf[:end])
	if err == nil {
		err = l.check(&e)
	}
	if err != nil || size > math.MaxInt {
		return 0, errUnusual
	}
	l.begun, l.left = true, size
	return next, nil
}

// field takes a field of the list: an item, or another field, for which item is nil. It
// takes 0 bytes if the field has not arrived; want is then its size, if that is known.
func (l *protobufList) field(buf []byte) (item []byte, taken int, want int64, err error) {
	whole := uint64(len(buf)) >= l.left
	if whole {
		buf = buf[:l.left]
	}
	f := fields{rest: buf, known: listItems}
	if !f.next() {
		if whole || !f.cut {
			return nil, 0, 0, f.err
		}
		return nil, 0, announced(buf), nil
	}
	switch f.field {
	case listMetadata:
		err = readListMeta(f.content, &l.meta)
	case listItems:
		item = f.content
	}
	return item, len(buf) - len(f.rest), 0, err
}

// announced returns the size of a field that has not all arrived, 0 if it is not known or
// not to be trusted.
func announced(buf []byte) int64 {
	tag, i := wire.Varint(buf, 0)
	if i < 0 || tag&7 != wire.BytesType {
		return 0
	}
	size, i := wire.Varint(buf, i)
	if i < 0 || size > preallocated {
		return 0
	}
	return int64(i) + int64(size)
}

// trailer takes a field that follows the list in its envelope.
func (l *protobufList) trailer(buf []byte) (taken int, err error) {
	f := fields{rest: buf, known: unknownFields}
	if !f.next() {
		if f.cut {
			return 0, nil
		}
		return 0, f.err
	}
	if f.field == unknownTypeMeta || f.field == unknownRaw {
		return 0, fmt.Errorf("%w list in protobuf: its kind or its content comes twice",
			ErrMalformed)
	}
	return len(buf) - len(f.rest), nil
}

// readProtobufPage reads a list in protobuf from a body and decodes its items as they
// arrive. The body is in memory as a whole only if it begins in an unusual way.
func (s *REST[T]) readProtobufPage(body *pageReader, filter *filter) (Page[T], error) {
	list := &protobufList{check: s.checkListKind}
	frames := newFrames(body, list, body.limit)
	if buf := s.buffer.Swap(nil); buf != nil {
		frames.buf = *buf
	}
	page, err := s.readItems(body, frames, list, filter)
	switch {
	case !list.begun && err != nil:
		return s.readUnusualPage(body, frames.rest())
	case err == nil && page.Continue != "" && len(frames.buf) <= retainedBuffer:
		buf := frames.buf // a pointer into frames would keep the answer
		s.buffer.Store(&buf)
	}
	return page, err
}

// readItems decodes the items of a list, except those that are dropped.
func (s *REST[T]) readItems(body *pageReader, frames *frames, list *protobufList,
	filter *filter) (page Page[T], err error) {
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
			if !filter.drops(item) {
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
			return page, ended
		case ended == io.EOF && list.left == 0:
			page.setMeta(&list.meta)
			return page, nil
		case ended == io.EOF || errors.Is(ended, ErrCutFrame):
			return page, fmt.Errorf("%w list in protobuf: %w after %d bytes",
				ErrMalformed, ErrCutFrame, body.read)
		case errors.Is(ended, io.ErrUnexpectedEOF):
			return page, fmt.Errorf("%w after %d bytes: %w", ErrCutFrame, body.read, ended)
		default:
			return page, ended
		}
	}
}

// readUnusualPage reads a list in protobuf with an unusual beginning, after what has
// arrived of it.
func (s *REST[T]) readUnusualPage(body *pageReader, arrived []byte) (Page[T], error) {
	whole, err := readBody(io.MultiReader(bytes.NewReader(arrived), body))
	if err != nil {
		return Page[T]{}, err
	}
	e, err := openEnvelope(whole)
	if err == nil {
		err = s.checkListKind(&e)
	}
	if err != nil {
		return Page[T]{}, err
	}
	list := &protobufList{begun: true, left: uint64(len(e.raw))}
	return s.readItems(body, newFrames(bytes.NewReader(e.raw), list, body.limit), list, nil)
}
