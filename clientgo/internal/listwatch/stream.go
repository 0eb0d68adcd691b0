package listwatch

import (
	"context"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

// maxBatch bounds how many events one Next takes, so that a long burst reaches the
// cache while it lasts.
const maxBatch = 256

// stream is a running watch.watch.
type stream struct {
	ctx     context.Context
	source  *Source
	watch   watch.Interface
	version string // of the last event, or that at which the watch began
	initial bool   // the events are still those of the initial state
	deletes bool   // of the events, only deletes had the version
	batch   []source.Event[any]
	pending error // what ended the stream after the events of batch
}

// Close ends the watch.
func (s *stream) Close() error {
	s.watch.Stop()
	return nil
}

// Next waits for one event and takes every one that is ready after it.
func (s *stream) Next() ([]source.Event[any], error) {
	if s.pending != nil {
		return nil, s.pending
	}
	clear(s.batch)
	s.batch = s.batch[:0]
	for len(s.batch) < maxBatch {
		event, ok := s.receive()
		if !ok && s.pending == nil {
			return s.batch, nil
		}
		if s.pending == nil {
			s.add(event)
		}
		if s.pending != nil {
			if len(s.batch) > 0 {
				return s.batch, nil
			}
			return nil, s.pending
		}
	}
	return s.batch, nil
}

// receive takes an event, waiting for the first one of a batch. Without one, the batch
// is complete, or the stream has ended and pending says how.
func (s *stream) receive() (event watch.Event, ok bool) {
	if len(s.batch) > 0 {
		select {
		case event, ok = <-s.watch.ResultChan():
		default:
			return event, false
		}
	} else {
		select {
		case event, ok = <-s.watch.ResultChan():
		case <-s.ctx.Done():
			s.pending = context.Cause(s.ctx)
			return event, false
		}
	}
	if !ok {
		s.pending = io.EOF
	}
	return event, ok
}

// add appends an event to the batch. An event that is an error ends the stream.
func (s *stream) add(event watch.Event) {
	switch event.Type {
	case watch.Added:
		s.addObject(source.Added, event)
	case watch.Modified:
		s.addObject(source.Modified, event)
	case watch.Deleted:
		s.addObject(source.Deleted, event)
	case watch.Bookmark:
		s.addBookmark(event)
	case watch.Error:
		s.pending = errorOf(event.Object)
	default:
		s.pending = source.UnknownEvent(string(event.Type))
	}
}

// clientDecoding is the cause with which client-go's clients mark an ERROR event that they have
// made themselves, of an event that they could not read.
const clientDecoding metav1.CauseType = "ClientWatchDecoding"

func (s *stream) addObject(t source.EventType, event watch.Event) {
	e := source.Event[any]{Type: t, Item: s.source.item(s.ctx, event.Object)}
	if e.Err == nil {
		s.saw(&e)
	}
	s.batch = append(s.batch, e)
}

// saw takes note of the version of an event. The events of an initial state come in no
// order; the first that is no addition ends it.
func (s *stream) saw(e *source.Event[any]) {
	versions := s.source.versions
	if s.initial {
		versions.recent.addEvent(e)
		if e.Type == source.Added {
			return
		}
		s.initial, s.version = false, ""
	} else {
		versions.sawEvent(e, s.version, s.deletes)
	}
	switch order, ok := delta.CompareDecimal(e.Version, s.version); {
	case !ok || order > 0:
		s.version, s.deletes = e.Version, e.Type == source.Deleted
	case order == 0:
		s.deletes = s.deletes && e.Type == source.Deleted
	}
}

// errorOf returns the error of an event. An object that is no Status is not shown: it may be
// one of the collection.
func errorOf(obj runtime.Object) error {
	err := apierrors.FromObject(obj)
	if apierrors.IsUnexpectedObjectError(err) {
		return fmt.Errorf("%w: an ERROR event with a %T", source.ErrMalformed, obj)
	}
	if apierrors.HasStatusCause(err, clientDecoding) {
		return fmt.Errorf("%w event: %w", source.ErrMalformed, source.Bound(err))
	}
	return source.Bound(err)
}

// addBookmark takes the version of a bookmark.
func (s *stream) addBookmark(event watch.Event) {
	m, err := meta.Accessor(event.Object)
	if err != nil {
		s.pending = fmt.Errorf("%w bookmark of type %T: %w", source.ErrMalformed, event.Object, err)
		return
	}
	t := source.Bookmark
	if m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		t = source.InitialEventsEnd
	}
	version := m.GetResourceVersion()
	if order, _ := delta.CompareDecimal(version, s.version); order > 0 || s.initial && isVersion(version) {
		s.initial, s.version, s.deletes = false, version, true
	}
	s.batch = append(s.batch, source.Event[any]{Type: t, Item: source.Item[any]{Version: version}})
}

// isVersion reports whether a version is one that a server gives.
func isVersion(version string) bool {
	_, ok := delta.CompareDecimal(version, version)
	return ok
}
