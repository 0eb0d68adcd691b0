package apisim

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/watch"
)

// frameData is a frame on its way to the client.
type frameData struct {
	n     int             // 0 is the head of the answer
	event watch.EventType // "" in an answer to another request than a watch
	key   string          // of the object
	data  []byte          // shared, not to be changed
	code  int             // of the head
}

// lastFrame is the number of an empty frame that follows the last one of each answer.
const lastFrame = -2

func (f frameData) half() frameData {
	f.data = f.data[:len(f.data)/2]
	return f
}

// sink passes a frame to the next stage.
type sink func(f frameData) error

// stage is a stage that frames pass, at which a fault may happen.
type stage func(f frameData, next sink) error

// WriteHeader sends the head.
func (c *inflight) WriteHeader(code int) {
	if c.headed {
		return
	}
	c.headed = true
	if c.through(0, frameData{code: code}) != nil {
		c.answered = true // the rest is discarded
	}
}

// Write sends a frame.
func (c *inflight) Write(data []byte) (int, error) {
	c.WriteHeader(http.StatusOK)
	if c.answered {
		return 0, errTruncated
	}
	c.frames++
	f := c.upcoming
	f.n, f.data = c.frames, data
	c.upcoming = frameData{}
	if err := c.through(0, f); err != nil {
		c.answered = true
		return 0, err
	}
	return len(data), nil
}

// Unwrap lets http.ResponseController reach the writer below.
func (c *inflight) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// through passes a frame through the stages from one on, and then to the client.
func (c *inflight) through(at int, f frameData) error {
	if at < len(c.stages) {
		return c.stages[at](f, func(f frameData) error { return c.through(at+1, f) })
	}
	switch f.n {
	case 0:
		c.code = f.code
		c.ResponseWriter.WriteHeader(f.code)
		return nil
	case lastFrame:
		return nil
	}
	_, err := c.ResponseWriter.Write(f.data)
	return err
}

// form returns the encoding of the frames.
func (c *inflight) form() form {
	mediaType, stream := strings.CutSuffix(c.Header().Get("Content-Type"), streamSuffix)
	if mediaType != mediaProtobuf {
		mediaType = mediaJSON
	}
	return form{mediaType: mediaType, stream: stream}
}

func (c *inflight) flush() error { return http.NewResponseController(c.ResponseWriter).Flush() }

// cut closes the connection. It flushes the bytes that were written, of which there are none before
// the head.
func (c *inflight) cut(headed bool) error {
	if headed {
		c.flush() //nolint:errcheck // the connection ends in any case
	}
	panic(http.ErrAbortHandler)
}

// replace sends an error in the place of the answer.
func (c *inflight) replace(err error) error {
	c.code = int(statusFor(err).Code)
	writeError(c.ResponseWriter, c.request, err)
	return errTruncated
}

// fail ends a watch with an ERROR event.
func (c *inflight) fail(code int, next sink) error {
	frame, err := encodeFrame(c.form(), watch.Error, statusFor(errInjected(code, c, 0)))
	if err == nil {
		err = next(frameData{n: c.frames + 1, event: watch.Error, data: frame})
	}
	if err == nil {
		err = c.flush()
	}
	return cmp.Or(err, errTruncated)
}

// noise returns a frame of the same length that a decoder refuses. A JSON frame keeps its newline,
// a protobuf event the length before it.
func noise(frame []byte, f form) []byte {
	noise := bytes.Clone(frame)
	body, filler := bytes.TrimSuffix(noise, []byte("\n")), byte('!') // no JSON value begins with it
	if f.mediaType == mediaProtobuf && len(noise) > 0 {              // the head of an answer has none
		body, filler = noise[f.prefix():], 7 // a tag that does not exist
	}
	for i := range body {
		body[i] = filler
	}
	return noise
}

// prefix returns the number of bytes of a frame in protobuf that are its length.
func (f form) prefix() int {
	if f.stream {
		return 4
	}
	return 0
}

// paddingField is the number of a field that no message of the API has.
const paddingField = 1000

// inflated returns a frame with at least size more bytes, which a decoder skips.
func inflated(frame []byte, f form, size int) []byte {
	if f.mediaType != mediaProtobuf {
		body := bytes.TrimSuffix(frame, []byte("\n"))
		return slices.Concat(body, bytes.Repeat([]byte(" "), size), frame[len(body):])
	}
	padded := protowire.AppendTag(bytes.Clone(frame), paddingField, protowire.BytesType)
	padded = protowire.AppendBytes(padded, make([]byte, size))
	if n := f.prefix(); n > 0 {
		binary.BigEndian.PutUint32(padded, uint32(len(padded)-n))
	}
	return padded
}

// reordering sends an event after the next one of another object.
type reordering struct {
	frame int
	late  *frameData
}

func (r *reordering) pass(f frameData, next sink) error {
	isEvent := f.key != "" && f.event != watch.Bookmark && f.event != watch.Error
	switch {
	case r.late == nil && isEvent && (f.n == r.frame || r.frame == EachFrame):
		r.late = &f
		return nil
	case r.late == nil:
		return next(f)
	}
	late := *r.late
	r.late = nil
	if !isEvent || f.key == late.key {
		if err := next(late); err != nil {
			return err
		}
		return r.pass(f, next)
	}
	if err := next(f); err != nil {
		return err
	}
	return next(late)
}
