package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// protobufList splits the body of a list into the encoded items, as it arrives. Encoders write the
// kind before the list: then it is checked before an item is decoded. After the list, another list
// is malformed, and so is a kind if there was one before.
type protobufList struct {
	check   func(*envelope) error // refuses a kind
	opened  bool                  // the magic was taken
	kind    envelope              // without its content
	hasKind bool
	listed  bool   // the list has begun
	left    uint64 // bytes of the list that were not taken yet
	meta    metav1.ListMeta
}

// preallocated bounds the room that is made for an item because of the length that it
// announces. A longer one gets room as it arrives.
const preallocated = 1 << 20

func (l *protobufList) split(buf []byte) (item []byte, taken int, want int64, err error) {
	if !l.opened {
		n := min(len(buf), len(protobufMagic))
		if !bytes.HasPrefix(protobufMagic, buf[:n]) {
			return nil, 0, 0, noMagic(buf)
		}
		if n < len(protobufMagic) {
			return nil, 0, 0, nil
		}
		l.opened, taken = true, n
	}
	for taken < len(buf) {
		n := 0
		if l.left > 0 {
			item, n, want, err = l.field(buf[taken:])
			l.left -= uint64(n)
		} else {
			n, err = l.around(buf[taken:])
		}
		taken += n
		if item != nil || n == 0 || err != nil {
			return item, taken, want, err
		}
	}
	return nil, taken, 0, nil
}

// errTwice is a list in protobuf with more than a list has.
var errTwice = fmt.Errorf("%w list in protobuf: its kind or its content comes twice", ErrMalformed)

// around takes a field of the envelope; of the list, it takes the tag and the size. It takes 0
// bytes if these have not arrived.
func (l *protobufList) around(buf []byte) (taken int, err error) {
	if tag, i := wire.Varint(buf, 0); i > 0 && tag == unknownRaw<<3|wire.BytesType {
		if size, i := wire.Varint(buf, i); i > 0 && size <= math.MaxInt {
			if l.listed {
				return 0, errTwice
			}
			if l.hasKind {
				err = l.check(&l.kind)
			}
			l.listed, l.left = true, size
			return i, err
		}
	}
	f := fields{rest: buf, known: unknownFields}
	if !f.next() {
		if f.cut {
			return 0, nil
		}
		return 0, f.err
	}
	if f.field == unknownTypeMeta {
		if l.listed && l.hasKind {
			return 0, errTwice
		}
		err = l.kind.readKind(bytes.Clone(f.content))
		l.hasKind = true
	}
	return len(buf) - len(f.rest), err
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

// readProtobufPage reads a list in protobuf from a body and decodes its items as they arrive.
func (s *REST[T]) readProtobufPage(body *pageReader, filter *filter) (Page[T], error) {
	list := &protobufList{check: s.checkListKind}
	frames := newFrames(body, list, body.limit)
	if buf := s.buffer.Swap(nil); buf != nil {
		frames.buf = *buf
	}
	page, err := s.readItems(body, frames, list, filter)
	if err == nil && page.Continue != "" && len(frames.buf) <= retainedBuffer {
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
		if err := s.decodeItems(&page, items, size, true, s.decoder.protobuf); err != nil {
			return page, err
		}
		switch {
		case ended == nil:
		case ended == io.EOF && list.opened && list.left == 0:
			page.setMeta(&list.meta)
			return page, list.check(&list.kind)
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
