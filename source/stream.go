package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// restStream is a running watch.
type restStream[T Object] struct {
	decoder   decoder[T]
	bookmarks decoder[T] // nil for the one above
	request   request
	protobuf  bool
	// apiVersion and kind are what the decoder wants, as it is on the wire.
	apiVersion, kind string
	frames           *frames
	body             io.Closer
	cancel           context.CancelFunc
	asker            *asker // of the objects of a streamed list; nil afterwards
	encoded          [][]byte
	batch            []Event[T]
	decodeAt         func(i int) error // makes batch[i] of encoded[i]
	pending          error             // what ended the stream after the events of batch
}

func newRESTStream[T Object](s *REST[T], r request, resp *http.Response, cancel context.CancelFunc) (*restStream[T], error) {
	stream := &restStream[T]{decoder: s.decoder, bookmarks: s.bookmarks, request: r, body: resp.Body, cancel: cancel}
	stream.apiVersion, stream.kind = s.decoder.wants().ToAPIVersionAndKind()
	switch mediaType := mediaTypeOf(resp); mediaType {
	case protobufType:
		stream.protobuf = true
		stream.frames = newFrames(resp.Body, lengthDelimited{}, int64(s.options.MaxFrameBytes))
	case jsonType:
		stream.frames = newFrames(resp.Body, &jsonObjects{}, int64(s.options.MaxFrameBytes))
	default:
		return nil, fmt.Errorf("%w: the watch came as %q, which was not asked for", ErrMalformed, mediaType)
	}
	return stream, nil
}

// Close ends the request.
func (s *restStream[T]) Close() error {
	s.cancel()
	return s.body.Close()
}

// Next waits for one frame, cuts off every whole frame that follows it, and decodes them.
// What the caller holds already does not count.
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
	if err != nil {
		s.pending = s.describe(err)
		if done == 0 {
			return nil, s.pending
		}
	}
	return s.batch, nil
}

// endList notes the end of a streamed list, if it is in the batch.
func (s *restStream[T]) endList() {
	for i := range s.batch {
		if s.batch[i].Type == InitialEventsEnd {
			s.asker = nil
			s.frames.settle()
		}
	}
}

// cut waits for a frame that is not held and puts it, and what has arrived after it, into
// encoded. The frames are valid until the next call. It returns their bytes, and what
// ended the stream after them.
func (s *restStream[T]) cut() (size int, ended error) {
	clear(s.encoded)
	s.encoded = s.encoded[:0]
	for len(s.encoded) < maxBatch {
		frame, err := s.frames.next(len(s.encoded) == 0)
		if err != nil || frame == nil {
			return size, err
		}
		if !s.holds(frame) {
			s.encoded = append(s.encoded, frame)
			size += len(frame)
		}
	}
	return size, nil
}

// holds reports whether the caller has the object of a frame. With the first event that
// adds nothing, or cannot be understood, the list that is streamed may be over.
func (s *restStream[T]) holds(frame []byte) bool {
	if s.asker == nil {
		return false
	}
	if !s.protobuf {
		name, object, ok := cutEvent(frame)
		if !ok || string(name) != "ADDED" {
			s.asker = nil
			return false
		}
		return s.asker.holds(object)
	}
	name, object, err := openWatchEvent(frame)
	if err != nil || string(name) != "ADDED" {
		s.asker = nil
		return false
	}
	e, err := openEnvelope(object)
	return err == nil && e.describes(s.apiVersion, s.kind) && s.asker.holds(e.raw)
}

// describe says in which phase the stream failed; its orderly end stays io.EOF.
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

// decode makes an event of a frame. An ERROR event is the error it carries.
func (s *restStream[T]) decode(frame []byte) (Event[T], error) {
	var event Event[T]
	name, object, err := s.open(frame)
	if err != nil {
		return event, err
	}
	decoder := s.decoder
	switch string(name) {
	case "ADDED":
		event.Type = Added
	case "MODIFIED":
		event.Type = Modified
	case "DELETED":
		event.Type = Deleted
	case "BOOKMARK":
		event.Type = Bookmark
		if s.bookmarks != nil {
			decoder = s.bookmarks
		}
	case "ERROR":
		return event, s.decodeError(object)
	default:
		return event, UnknownEvent(string(name))
	}
	obj, err := s.decodeObject(decoder, object)
	if event.Type == Bookmark {
		return bookmark(obj, err)
	}
	event.Item, err = itemOrWrong(obj, err)
	return event, err
}

// open separates the type of an event from its object.
func (s *restStream[T]) open(frame []byte) (name, object []byte, err error) {
	if s.protobuf {
		return openWatchEvent(frame)
	}
	if name, object, ok := cutEvent(frame); ok {
		return name, object, nil
	}
	var event jsonWatchEvent
	if err := unmarshalJSON(frame, &event); err != nil {
		return nil, nil, fmt.Errorf("%w watch event in JSON: %w, received %s", ErrMalformed, err, shown(frame))
	}
	return []byte(event.Type), event.Object, nil
}

func (s *restStream[T]) decodeObject(d decoder[T], data []byte) (T, error) {
	if !s.protobuf {
		return d.json(data, false)
	}
	var none T
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

// decodeError makes an error of the Status in an ERROR event.
func (s *restStream[T]) decodeError(object []byte) error {
	mediaType := jsonType
	if s.protobuf {
		mediaType = protobufType
	}
	var status metav1.Status
	if err := unmarshalStatus(mediaType, object, &status); err != nil {
		return fmt.Errorf("%w: an ERROR event whose status cannot be read: %w, received %s", ErrMalformed, err, shown(object))
	}
	return Bound(&apierrors.StatusError{ErrStatus: status})
}

// bookmark makes an event of the object of a bookmark, or of why it could not be decoded.
func bookmark[T Object](obj T, err error) (Event[T], error) {
	event := Event[T]{Type: Bookmark}
	if _, wrong := errors.AsType[*WrongObjectError](err); wrong {
		return event, fmt.Errorf("%w bookmark: %w", ErrMalformed, err)
	}
	if err != nil {
		return event, err
	}
	event.Version = obj.GetResourceVersion()
	if obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		event.Type = InitialEventsEnd
	}
	return event, nil
}
