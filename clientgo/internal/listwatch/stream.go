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

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/source"
)

// maxBatch bounds the events of one Next, so that a long burst reaches the cache while it
// lasts.
const maxBatch = 256

// stream is a running watch.watch.
type stream struct {
	ctx     context.Context
	source  *Source
	watch   watch.Interface
	version string // the version of the last event; before the first event, that of the watch
	initial bool   // reports whether events of the initial state may follow
	// onlyDeletes reports whether all events of the version were deletes.
	onlyDeletes bool
	batch       []source.Event[any]
	pending     error // the error that Next returns after batch; nil while the stream is open
}

// Close ends the watch.
func (s *stream) Close() error {
	s.watch.Stop()
	return nil
}

// Next waits for one event and adds the events that are ready after it.
func (s *stream) Next() ([]source.Event[any], error) {
	clear(s.batch)
	s.batch = s.batch[:0]
	for s.pending == nil && len(s.batch) < maxBatch {
		event, ok := s.receive()
		if s.pending == nil && !ok {
			break
		}
		if ok {
			s.add(event)
		}
	}
	if len(s.batch) > 0 {
		return s.batch, nil
	}
	return nil, s.pending
}

// receive returns an event. It waits for the first event of a batch. If ok is false, the batch
// is complete, or the stream has ended with the error pending.
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

var eventTypes = map[watch.EventType]source.EventType{
	watch.Added: source.Added, watch.Modified: source.Modified, watch.Deleted: source.Deleted,
}

// add appends an event to the batch. An event that is an error ends the stream.
func (s *stream) add(event watch.Event) {
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
		e := source.Event[any]{Type: eventTypes[event.Type], Item: s.source.item(s.ctx, event.Object)}
		if e.Err == nil {
			s.check(&e)
		}
		s.batch = append(s.batch, e)
	case watch.Bookmark:
		s.addBookmark(event)
	case watch.Error:
		s.pending = errorOf(event.Object)
	default:
		s.pending = source.UnknownEvent(string(event.Type))
	}
}

// clientDecoding is the cause of the ERROR events that client-go's clients make in place of an
// event that they cannot decode.
const clientDecoding metav1.CauseType = "ClientWatchDecoding"

// check checks and keeps the version of an event. The additions of an initial state have no
// order. Any other event ends the initial state.
func (s *stream) check(e *source.Event[any]) {
	versions := s.source.versions
	if s.initial {
		versions.history.addEvent(e)
		if e.Type == source.Added {
			return
		}
		s.initial, s.version = false, ""
	} else {
		versions.checkEvent(e, s.version, s.onlyDeletes)
	}
	switch order, ok := delta.CompareDecimal(e.Version, s.version); {
	case !ok || order > 0:
		s.version, s.onlyDeletes = e.Version, e.Type == source.Deleted
	case order == 0:
		s.onlyDeletes = s.onlyDeletes && e.Type == source.Deleted
	}
}

// errorOf returns the error of an event. The error does not contain an object that is not a
// Status, as this may be one of the collection.
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

// addBookmark appends a bookmark to the batch and keeps its version.
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
	order, _ := delta.CompareDecimal(version, s.version)
	if order > 0 || s.initial && isVersion(version) {
		s.initial, s.version, s.onlyDeletes = false, version, true
	}
	s.batch = append(s.batch, source.Event[any]{Type: t, Item: source.Item[any]{Version: version}})
}

// isVersion reports whether a version is a number.
func isVersion(version string) bool {
	_, ok := delta.CompareDecimal(version, version)
	return ok
}
