package source

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

const (
	initialBuffer = 16 << 10
	// burstBuffer is what the buffer grows to while reads fill it: what is read at once
	// is decoded at once, on more than one core.
	burstBuffer    = 512 << 10
	retainedBuffer = 1 << 20
	// calmReads is how many reads in a row must leave room in the buffer for it to
	// become small again.
	calmReads = 8
)

// splitter finds the first frame in buf. It returns the frame, or nil when buf
// does not hold a whole one yet, and how many bytes of buf are done with; want is
// the size of the frame that is not whole, if it is known. The next call gets what
// is not done with, and more.
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
	calm       int // reads in a row that did not fill the buffer
}

func newFrames(r io.Reader, s splitter, limit int64) *frames {
	return &frames{r: r, splitter: s, limit: limit}
}

// next returns the next frame, valid until the next call. Without wait, it
// returns nil when no whole frame has been read. The end of the stream between
// two frames is io.EOF, within one ErrCutFrame.
func (f *frames) next(wait bool) ([]byte, error) {
	for {
		frame, taken, want, err := f.splitter.split(f.buf[f.start:f.end])
		if err != nil {
			return nil, err
		}
		size, pending := max(want, int64(len(frame))), int64(f.end-f.start)
		if size > f.limit || (frame == nil && pending > f.limit) {
			return nil, fmt.Errorf("a frame of %d bytes, %w of %d", max(size, pending), ErrFrameTooLarge, f.limit)
		}
		f.start += taken
		if frame != nil {
			return frame, nil
		}
		if !wait {
			return nil, nil
		}
		if err := f.fill(want); err != nil {
			return nil, err
		}
	}
}

// fill makes room for at least one more byte, or for a frame of want bytes, and
// reads.
func (f *frames) fill(want int64) error {
	f.makeRoom(want)
	n, err := f.r.Read(f.buf[f.end:])
	f.end += n
	f.calm++
	if f.end == len(f.buf) {
		f.calm = 0
	}
	switch {
	case n > 0:
		return nil
	case err == io.EOF && f.end > f.start:
		return fmt.Errorf("%w, after %s", ErrCutFrame, shown(f.buf[f.start:f.end]))
	case err == nil:
		return io.ErrNoProgress
	default:
		return err
	}
}

// makeRoom makes the buffer smaller or larger, by what the last reads have brought and
// by what is wanted, or moves what is pending to its beginning. Of what is wanted, it
// makes room for a part that is not too large for an announcement; the rest gets room as it
// arrives.
func (f *frames) makeRoom(want int64) {
	want = min(want, mostAnnounced)
	pending, size := f.end-f.start, max(int64(len(f.buf)), initialBuffer)
	most := max(min(f.limit, math.MaxInt-frameOverhead)+frameOverhead, initialBuffer)
	switch {
	case pending == 0 && want < retainedBuffer && (size > retainedBuffer || f.calm >= calmReads):
		size = initialBuffer
	case f.calm == 0 && f.end > 0 && size < burstBuffer:
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

// settle has the buffer be small again when what it holds was taken: no more of a burst
// is expected.
func (f *frames) settle() { f.calm = calmReads }

// rest returns what was read and not taken.
func (f *frames) rest() []byte { return f.buf[f.start:f.end] }

// mostAnnounced bounds the room that is made for a frame because of the length that it
// announces.
const mostAnnounced = defaultMaxFrameBytes

// frameOverhead is room for what surrounds the largest frame: its length, or
// the white space before it.
const frameOverhead = 1 << 10

// lengthDelimited finds a frame that its length precedes, in four bytes, the
// highest first: the framing of application/vnd.kubernetes.protobuf;stream=watch.
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

// jsonObjects finds one JSON object by its braces, whatever the white space around
// and within it: the framing of application/json;stream=watch. It remembers how far
// it has looked, so that a large frame that arrives in pieces is looked at once.
// The syntax of an unfinished object is checked whenever it has doubled in size. Otherwise
// an object without its closing brace would take in all events behind it.
type jsonObjects struct {
	scanned  int // bytes of the unfinished object that were looked at
	checked  int // bytes of it that begin a JSON object
	depth    int
	inString bool
	escaped  bool
}

func (j *jsonObjects) split(buf []byte) (frame []byte, taken int, want int64, err error) {
	begin := 0
	if j.scanned == 0 {
		for begin < len(buf) && isSpace(buf[begin]) {
			begin++
		}
		if begin == len(buf) {
			return nil, begin, 0, nil
		}
		if buf[begin] != '{' {
			return nil, 0, 0, fmt.Errorf("%w: a watch frame must be a JSON object, received %s", ErrMalformed, shown(buf[begin:]))
		}
	}
	for i := begin + j.scanned; i < len(buf); i++ {
		if j.inString && !j.escaped {
			if i = j.leaveString(buf, i); i == len(buf) {
				break
			}
		}
		if j.closes(buf[i]) {
			*j = jsonObjects{}
			return buf[begin : i+1], i + 1, 0, nil
		}
	}
	j.scanned = len(buf) - begin
	if j.scanned >= 2*j.checked {
		if !beginsJSON(buf[begin:]) {
			return nil, 0, 0, fmt.Errorf("%w: a watch frame is not JSON, received %s", ErrMalformed, shown(buf[begin:]))
		}
		j.checked = j.scanned
	}
	return nil, begin, 0, nil
}

// beginsJSON reports whether a JSON value begins with b. An error in the last byte is not
// noticed.
func beginsJSON(b []byte) bool {
	var value json.RawMessage
	syntax, wrong := errors.AsType[*json.SyntaxError](json.Unmarshal(b, &value))
	return !wrong || syntax.Offset == int64(len(b))
}

// leaveString returns the index of the quote that ends the string in which i is, or the
// length of buf. Most of an object is in strings, and a quote is found faster than all
// bytes before it are looked at.
func (j *jsonObjects) leaveString(buf []byte, i int) int {
	for {
		n := bytes.IndexByte(buf[i:], '"')
		end := i + n
		if n < 0 {
			end = len(buf)
		}
		escapes := 0
		for end-1-escapes >= i && buf[end-1-escapes] == '\\' {
			escapes++
		}
		if n < 0 {
			j.escaped = escapes%2 == 1
			return end
		}
		if escapes%2 == 0 {
			return end
		}
		i = end + 1
	}
}

// closes takes one more byte and reports whether it ends the object.
func (j *jsonObjects) closes(c byte) bool {
	switch {
	case j.escaped:
		j.escaped = false
	case j.inString && c == '\\':
		j.escaped = true
	case c == '"':
		j.inString = !j.inString
	case j.inString:
	case c == '{' || c == '[':
		j.depth++
	case c == '}' || c == ']':
		j.depth--
		return j.depth == 0
	}
	return false
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
