package source

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

const (
	initialBuffer = 16 << 10
	// burstBuffer is the size to which the buffer grows while reads fill it: frames that are read
	// at once are decoded at once, on more than one core.
	burstBuffer    = 512 << 10
	retainedBuffer = 1 << 20
	// shrinkAfter is the number of reads in a row that must leave room in the buffer before it
	// shrinks.
	shrinkAfter = 8
)

// splitter finds the first frame in buf. It returns the frame, or nil when buf does not hold
// a whole one yet, and how many bytes of buf it has taken; want is the size of an incomplete
// frame, if it is known. The next call gets the rest, and more.
type splitter interface {
	split(buf []byte) (frame []byte, taken int, want int64, err error)
}

// frames cuts a stream into frames, reading as much at a time as has arrived.
type frames struct {
	r          io.Reader
	splitter   splitter
	limit      int64
	buf        []byte // buf[start:end] was read and not yet taken
	start, end int
	shortReads int // in a row; they did not fill the buffer
}

func newFrames(r io.Reader, s splitter, limit int64) *frames {
	return &frames{r: r, splitter: s, limit: limit}
}

// next returns the next frame, valid until the next call. Without wait, it returns nil when
// no whole frame was read. The end of the stream between two frames is io.EOF, within one
// ErrCutFrame.
func (f *frames) next(wait bool) ([]byte, error) {
	for {
		frame, taken, want, err := f.splitter.split(f.buf[f.start:f.end])
		if err != nil {
			return nil, err
		}
		size, pending := max(want, int64(len(frame))), int64(f.end-f.start)
		if size > f.limit || (frame == nil && pending > f.limit) {
			return nil, fmt.Errorf("a frame of %d bytes, %w of %d",
				max(size, pending), ErrFrameTooLarge, f.limit)
		}
		f.start += taken
		if frame != nil || !wait {
			return frame, nil
		}
		if err := f.fill(want); err != nil {
			return nil, err
		}
	}
}

// fill makes room for at least one more byte, or for a frame of want bytes, and reads.
func (f *frames) fill(want int64) error {
	f.makeRoom(want)
	n, err := f.r.Read(f.buf[f.end:])
	f.end += n
	f.shortReads++
	if f.end == len(f.buf) {
		f.shortReads = 0
	}
	switch {
	case n > 0:
		return nil
	case err == io.EOF && f.end > f.start:
		return fmt.Errorf("%w, after %s", ErrCutFrame, summary(f.buf[f.start:f.end]))
	case err == nil:
		return io.ErrNoProgress
	default:
		return err
	}
}

// makeRoom resizes the buffer, by the last reads and the wanted size, or moves the pending
// bytes to its beginning. It makes room for an announced size up to maxAnnounced; the rest
// gets room as it arrives.
func (f *frames) makeRoom(want int64) {
	want = min(want, maxAnnounced)
	pending, size := f.end-f.start, max(int64(len(f.buf)), initialBuffer)
	most := max(min(f.limit, math.MaxInt-frameOverhead)+frameOverhead, initialBuffer)
	calm := size > retainedBuffer || f.shortReads >= shrinkAfter
	switch {
	case pending == 0 && want < retainedBuffer && calm:
		size = initialBuffer
	case f.shortReads == 0 && f.end > 0 && size < burstBuffer:
		size = min(2*size, most)
	}
	if want > size || int64(pending) == size {
		size = min(max(2*size, want), most)
	}
	switch {
	case size != int64(len(f.buf)):
		resized := make([]byte, size)
		f.end = copy(resized, f.buf[f.start:f.end])
		f.start, f.buf = 0, resized
	case f.start > 0 && (int64(f.end) == size || int64(f.start)+want > size):
		copy(f.buf, f.buf[f.start:f.end])
		f.start, f.end = 0, pending
	}
}

// shrink lets the buffer shrink when its content was taken: a burst is over.
func (f *frames) shrink() { f.shortReads = shrinkAfter }

// maxAnnounced bounds the room that is made for a frame because of the length that it announces.
const maxAnnounced = defaultMaxFrameBytes

// frameOverhead is room around the largest frame: for its length, or the white space before it.
const frameOverhead = 1 << 10

// lengthDelimited finds a frame after its length in four bytes, the highest first: the
// framing of application/vnd.kubernetes.protobuf;stream=watch.
type lengthDelimited struct{}

func (lengthDelimited) split(buf []byte) (frame []byte, taken int, want int64, err error) {
	if len(buf) < 4 {
		return nil, 0, 0, nil
	}
	end := 4 + int64(binary.BigEndian.Uint32(buf))
	if int64(len(buf)) < end {
		return nil, 0, end, nil
	}
	return buf[4:end], int(end), 0, nil
}

// jsonObjects finds one JSON object by its braces, whatever the white space around and
// within it: the framing of application/json;stream=watch. It remembers how far it has
// looked, so that a large frame that arrives in pieces is looked at once. The syntax of an
// incomplete object is checked whenever it has doubled in size. Otherwise an object without
// its closing brace would take in all events behind it.
type jsonObjects struct {
	brackets wire.Brackets
	scanned  int // bytes of the incomplete object that were looked at
	checked  int // bytes of it that begin a JSON object
}

func (j *jsonObjects) split(buf []byte) (frame []byte, taken int, want int64, err error) {
	begin := 0
	if j.scanned == 0 {
		begin = wire.Space(buf, 0)
		if begin == len(buf) {
			return nil, begin, 0, nil
		}
		if buf[begin] != '{' {
			return nil, 0, 0, fmt.Errorf("%w: a watch frame must be a JSON object, received %s",
				ErrMalformed, summary(buf[begin:]))
		}
	}
	if end := j.brackets.End(buf, begin+j.scanned); end >= 0 {
		*j = jsonObjects{}
		return buf[begin:end], end, 0, nil
	}
	j.scanned = len(buf) - begin
	if j.scanned >= 2*j.checked {
		if !beginsJSON(buf[begin:]) {
			return nil, 0, 0, fmt.Errorf("%w: a watch frame is not JSON, received %s",
				ErrMalformed, summary(buf[begin:]))
		}
		j.checked = j.scanned
	}
	return nil, begin, 0, nil
}

// beginsJSON reports whether a JSON value begins with b. It does not notice an error in the
// last byte. A value that is cut off is an error at the end of b, or, with GOEXPERIMENT=jsonv2,
// at the beginning of the number, escape or character that is cut off: the text tells it.
func beginsJSON(b []byte) bool {
	var value json.RawMessage
	syntax, wrong := errors.AsType[*json.SyntaxError](json.Unmarshal(b, &value))
	return !wrong || syntax.Offset == int64(len(b)) ||
		syntax.Error() == "unexpected end of JSON input"
}
