package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/engine/tape"
)

// restStream is a running watch.
type restStream[T Object] struct {
	decoder   decoder[T]
	bookmarks decoder[*metav1.PartialObjectMetadata]
	request   request
	form      tape.Form // of the frames
	// apiVersion and kind are those that the decoder wants, in their form on the wire.
	apiVersion, kind string
	frames           *frames
	body             io.Closer
	cancel           context.CancelFunc
	filter           *filter // of the objects of a streamed list; nil afterwards
	selection        *filter // of the objects of events
	encoded          [][]byte
	batch            []Event[T]
	decodeAt         func(i int) error // makes batch[i] of encoded[i]
	pending          error             // what ended the stream after the events of batch
	// onWrongKind is called for an object of another kind, and reports whether it ends the stream.
	onWrongKind func() bool
}

func newRESTStream[T Object](s *REST[T], r request, resp *http.Response,
	cancel context.CancelFunc) (*restStream[T], error) {
	form, framing := tape.JSON, splitter(&jsonObjects{})
	switch mediaType := mediaTypeOf(resp); mediaType {
	case protobufType:
		form, framing = tape.Protobuf, lengthDelimited{}
	case jsonType:
	default:
		return nil, fmt.Errorf("%w: the watch came as %q", errForeign, mediaType)
	}
	stream := s.streamOf(form)
	stream.request, stream.body, stream.cancel = r, resp.Body, cancel
	stream.frames = newFrames(resp.Body, framing, int64(s.options.MaxFrameBytes))
	return stream, nil
}

// streamOf returns a stream that decodes frames and reads none.
func (s *REST[T]) streamOf(form tape.Form) *restStream[T] {
	stream := &restStream[T]{decoder: s.decoder, bookmarks: s.bookmarks, form: form}
	stream.apiVersion, stream.kind = s.decoder.wants().ToAPIVersionAndKind()
	return stream
}

// Close ends the request.
func (s *restStream[T]) Close() error {
	s.cancel()
	return s.body.Close()
}

// Next waits for one frame, cuts off every whole frame that follows it, and decodes them,
// except those with cached objects.
func (s *restStream[T]) Next() ([]Event[T], error) {
	if s.pending != nil {
		return nil, s.pending
	}
	size, ended := s.cut()
	if n := len(s.encoded); cap(s.batch) < n {
		s.batch = make([]Event[T], n, min(2*n, maxBatch))
	} else {
		clear(s.batch)
		s.batch = s.batch[:n]
	}
	if s.decodeAt == nil { // once, so that a lone event costs no allocation here
		s.decodeAt = func(i int) (err error) {
			s.batch[i], err = s.decode(s.encoded[i])
			return err
		}
	}
	done, err := inOrder(len(s.encoded), size, s.decodeAt)
	clear(s.batch[done:])
	s.batch = s.batch[:done]
	s.endList()
	if err == nil {
		err = ended
	}
	if wrong := s.wrongKind(err); wrong != nil && s.onWrongKind != nil && s.onWrongKind() {
		err = apierrors.NewResourceExpired(wrong.Error() + ": its definition may have come back otherwise")
	}
	if err != nil {
		s.pending = s.describe(err)
		if done == 0 {
			return nil, s.pending
		}
	}
	return s.batch, nil
}

// wrongKind returns the first error about an object of another kind in the batch, or in the error
// that ended it.
func (s *restStream[T]) wrongKind(ended error) *WrongObjectError {
	for i := range s.batch {
		if wrong, ok := errors.AsType[*WrongObjectError](s.batch[i].Err); ok {
			return wrong
		}
	}
	wrong, _ := errors.AsType[*WrongObjectError](ended)
	return wrong
}

// endList notes the end of a streamed list, if it is in the batch.
func (s *restStream[T]) endList() {
	for i := range s.batch {
		if s.batch[i].Type == InitialEventsEnd {
			s.filter = nil
			s.frames.shrink()
		}
	}
}

// cut waits for a frame whose object is not cached and puts it, and the frames that have
// arrived after it, into encoded. They are valid until the next call. It returns the number of
// their bytes, and the error that ended the stream after them.
func (s *restStream[T]) cut() (size int, ended error) {
	clear(s.encoded)
	s.encoded = s.encoded[:0]
	for len(s.encoded) < maxBatch {
		frame, err := s.frames.next(len(s.encoded) == 0)
		if err != nil || frame == nil {
			return size, err
		}
		if !s.drops(frame) {
			s.encoded = append(s.encoded, frame)
			size += len(frame)
		}
	}
	return size, nil
}

// drops reports whether the object of a frame is cached. A streamed list may end with the
// first event that is not ADDED or cannot be understood, and the filter ends there.
func (s *restStream[T]) drops(frame []byte) bool {
	if s.filter == nil {
		return false
	}
	name, object, err := s.open(frame)
	if err != nil || string(name) != "ADDED" {
		s.filter = nil
		return false
	}
	object, ok := s.encodedObject(object)
	return ok && s.filter.drops(object)
}

// encodedObject returns an object of the source's kind without its envelope.
func (s *restStream[T]) encodedObject(data []byte) (object []byte, ok bool) {
	if s.form != tape.Protobuf {
		return data, true
	}
	e, err := openEnvelope(data)
	return e.raw, err == nil && e.describes(s.apiVersion, s.kind)
}

// unselected reports whether the caller does not want an object, and returns its version then.
func (s *restStream[T]) unselected(data []byte) (version string, unselected bool) {
	if s.selection == nil {
		return "", false
	}
	object, ok := s.encodedObject(data)
	if !ok {
		return "", false
	}
	id, ok := s.selection.identify(object)
	if !ok || s.selection.selects(view(id.uid), view(id.namespace)) {
		return "", false
	}
	return string(id.version), true
}

// describe adds the phase in which the stream failed; its orderly end stays io.EOF.
func (s *restStream[T]) describe(err error) error {
	if err == io.EOF {
		return err
	}
	phase := Streaming
	for _, decoding := range []error{ErrMalformed, ErrUnknownEvent, ErrFrameTooLarge} {
		if errors.Is(err, decoding) {
			phase = Decoding
		}
	}
	return s.request.fail(phase, err)
}

// decode makes an event from a frame. An ERROR event becomes the error that it holds.
func (s *restStream[T]) decode(frame []byte) (Event[T], error) {
	var event Event[T]
	name, object, err := s.open(frame)
	if err != nil {
		return event, err
	}
	event.Type = eventTypeOf(name)
	if event.Type == 0 {
		if string(name) == "ERROR" {
			return event, s.decodeError(object)
		}
		return event, UnknownEvent(string(name))
	}
	if event.Type == Bookmark {
		return bookmark[T](decodeObject(s, s.bookmarks, object))
	}
	if event.Version, event.Unselected = s.unselected(object); event.Unselected {
		return event, nil
	}
	obj, err := decodeObject(s, s.decoder, object)
	if err != nil {
		if encoded, ok := s.encodedObject(object); ok {
			object = encoded
		}
	}
	event.Item, err = itemOf(obj, err, object, s.form == tape.Protobuf, s.decoder.wants())
	return event, err
}

func (s *restStream[T]) open(frame []byte) (name, object []byte, err error) {
	if s.form == tape.Protobuf {
		return openWatchEvent(frame)
	}
	if name, object, ok := cutEvent(frame); ok {
		return name, object, nil
	}
	var event jsonWatchEvent
	if err := unmarshalJSON(frame, &event); err != nil {
		return nil, nil, fmt.Errorf("%w watch event in JSON: %w, received %s",
			ErrMalformed, err, summary(frame))
	}
	return []byte(event.Type), event.Object, nil
}

// decodeObject decodes an object of a frame, of which U has what is read.
func decodeObject[T, U Object](s *restStream[T], d decoder[U], data []byte) (U, error) {
	if s.form != tape.Protobuf {
		return d.json(data, schema.GroupVersionKind{})
	}
	var none U
	e, err := openEnvelope(data)
	if err != nil {
		return none, err
	}
	if !e.describes(s.apiVersion, s.kind) {
		if got := e.groupVersionKind(); got != d.wants() {
			return none, WrongKind(got, d.wants())
		}
	}
	return d.protobuf(e.raw)
}

func (s *restStream[T]) decodeError(object []byte) error {
	var status metav1.Status
	if err := unmarshalStatus(s.form == tape.Protobuf, object, &status); err != nil {
		return fmt.Errorf("%w: an ERROR event whose status cannot be read: %w, received %s",
			ErrMalformed, err, summary(object))
	}
	return Bound(&apierrors.StatusError{ErrStatus: status})
}

// bookmark makes an event from the metadata of a bookmark, or from the error of its decoder.
func bookmark[T Object](obj *metav1.PartialObjectMetadata, err error) (Event[T], error) {
	event := Event[T]{Type: Bookmark}
	if _, wrong := errors.AsType[*WrongObjectError](err); wrong {
		return event, fmt.Errorf("%w bookmark: %w", ErrMalformed, err)
	}
	if err != nil {
		return event, err
	}
	event.Version = obj.GetResourceVersion()
	if obj.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		event.Type = InitialEventsEnd
	}
	return event, nil
}
