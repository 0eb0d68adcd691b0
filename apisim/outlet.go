package apisim

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// frameData is a frame on its way to the client.
type frameData struct {
	n    int    // 0 is the head of the answer
	kind string // of a watch event, "" for what is none
	key  string // of its object
	data []byte // it may be shared, and is not changed
	code int    // of the head
}

// sink takes a frame further.
type sink func(f frameData) error

// stage is a place on the way of frames where a fault may happen. finish, which may be
// nil, sends what the stage has kept when there are no more frames.
type stage struct {
	pass   func(f frameData, next sink) error
	finish func(next sink) error
}

// outlet takes what a handler writes through the stages of its call. Every call of
// Write is a frame.
type outlet struct {
	http.ResponseWriter
	call   *call
	form   form      // of the answer, once it is known
	next   frameData // what the next frame is about, if it is an event
	frames int
	headed bool
}

// WriteHeader sends the head.
func (o *outlet) WriteHeader(code int) {
	if o.headed {
		return
	}
	o.headed = true
	if err := o.through(0, frameData{code: code}); err != nil {
		o.call.answered = true // what a handler writes after that goes nowhere
	}
}

// Write sends a frame.
func (o *outlet) Write(data []byte) (int, error) {
	if !o.headed {
		o.WriteHeader(http.StatusOK)
	}
	if o.call.answered {
		return 0, errTruncated
	}
	o.frames++
	f := o.next
	f.n, f.data = o.frames, data
	o.next = frameData{}
	if err := o.through(0, f); err != nil {
		o.call.answered = true
		return 0, err
	}
	return len(data), nil
}

// Unwrap lets http.ResponseController reach the writer below.
func (o *outlet) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// finish sends what stages have kept.
func (o *outlet) finish() {
	for at, s := range o.call.stages {
		if s.finish != nil && !o.call.answered {
			s.finish(func(f frameData) error { return o.through(at+1, f) }) //nolint:errcheck // the answer ends either way
		}
	}
}

// through takes a frame through the stages from one on, and then to the client.
func (o *outlet) through(at int, f frameData) error {
	if at < len(o.call.stages) {
		return o.call.stages[at].pass(f, func(f frameData) error { return o.through(at+1, f) })
	}
	if f.n == 0 {
		o.ResponseWriter.WriteHeader(f.code)
		return nil
	}
	_, err := o.ResponseWriter.Write(f.data)
	return err
}

func (o *outlet) flush() error { return http.NewResponseController(o.ResponseWriter).Flush() }

// cut closes the connection when all that was written is with the client. Nothing is
// if the head was not sent.
func (c *call) cut(headed bool) error {
	if headed {
		c.out.flush() //nolint:errcheck // the connection ends either way
	}
	panic(http.ErrAbortHandler)
}

// stall keeps the answer from going on for a while, 0 being until the fault is lifted.
func (c *call) stall(d time.Duration, headed bool) error {
	if headed {
		if err := c.out.flush(); err != nil {
			return err
		}
	}
	if d == 0 {
		d = 1<<63 - 1
	}
	c.wait(d)
	return nil
}

// fail ends a watch with an ERROR event.
func (c *call) fail(code int, next sink) error {
	status := statusOfCode(code, c.path, 0)
	raw, err := encode(form{protobuf: c.out.form.protobuf}, &status)
	if err != nil {
		return err
	}
	frame, err := frameOf(c.out.form, watchError, raw)
	if err != nil {
		return err
	}
	if err := next(frameData{n: c.out.frames + 1, kind: watchError, data: frame}); err != nil {
		return err
	}
	if err := c.out.flush(); err != nil {
		return err
	}
	return errTruncated
}

// noise returns bytes that mean nothing, in the place of a frame: JSON keeps its
// newline and begins no value, which a reader would wait for the end of, and an event in
// protobuf keeps the length before it, and begins with a tag that does not exist.
func (c *call) noise(frame []byte) []byte {
	source := rand.NewPCG(c.server.o.Seed, uint64(len(frame)))
	noise := make([]byte, 0, len(frame)+8)
	for len(noise) < len(frame) {
		noise = binary.LittleEndian.AppendUint64(noise, source.Uint64())
	}
	noise = noise[:len(frame)]
	if c.out.form.protobuf {
		if c.out.form.stream && len(frame) > 4 {
			copy(noise, frame[:4])
			noise[4] = 7
		}
		return noise
	}
	for i := range noise {
		noise[i] = '!' + noise[i]%('~'-'!')
	}
	if len(noise) > 0 {
		noise[0] = '!'
	}
	if bytes.HasSuffix(frame, []byte("\n")) {
		noise[len(noise)-1] = '\n'
	}
	return noise
}

// paddingField is a field that no message of the API has.
const paddingField = 1000

// inflated returns a frame with so many bytes more, or some more than that, which a
// decoder skips.
func (c *call) inflated(frame []byte, size int) []byte {
	f := c.out.form
	switch {
	case f.protobuf && f.stream && len(frame) >= 4:
		padded := appendPadding(bytes.Clone(frame), size)
		binary.BigEndian.PutUint32(padded, uint32(len(padded)-4))
		return padded
	case f.protobuf:
		return appendPadding(bytes.Clone(frame), size)
	default:
		body, ended := bytes.CutSuffix(frame, []byte("\n"))
		padded := append(bytes.Clone(body), bytes.Repeat([]byte(" "), size)...)
		if ended {
			padded = append(padded, '\n')
		}
		return padded
	}
}

func appendPadding(message []byte, size int) []byte {
	message = protowire.AppendTag(message, paddingField, protowire.BytesType)
	return protowire.AppendBytes(message, make([]byte, size))
}

// reordering sends an event after the next one of another object.
type reordering struct {
	frame int
	late  *frameData
}

func (r *reordering) pass(f frameData, next sink) error {
	isEvent := f.key != "" && f.kind != "BOOKMARK" && f.kind != watchError
	switch {
	case r.late == nil && isEvent && (f.n == r.frame || r.frame == EachFrame):
		r.late = &f
		return nil
	case r.late == nil:
		return next(f)
	case !isEvent || f.key == r.late.key:
		if err := r.finish(next); err != nil {
			return err
		}
		return r.pass(f, next)
	default:
		if err := next(f); err != nil {
			return err
		}
		return r.finish(next)
	}
}

func (r *reordering) finish(next sink) error {
	if r.late == nil {
		return nil
	}
	late := *r.late
	r.late = nil
	return next(late)
}
