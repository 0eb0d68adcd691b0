package reflector

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/source"
)

// changed adds a new state of an object to the changes.
func (s *watching[T]) changed(item source.Item[T]) {
	if e, ok := s.use(delta.Set, item); ok {
		s.changes = append(s.changes, e)
	} else if item.Err == nil {
		s.gone(item) // a known object has left the collection
	}
}

// use returns the event that hands on a state of an object, and ok false if the object does not
// belong to the collection. A state that cannot be decoded, or that the transform fails on, leaves
// the known one.
func (r *Reflector[T]) use(t delta.EventType, item source.Item[T]) (e delta.Event[T], ok bool) {
	undecodable := r.undecodable(&item)
	if undecodable == nil && r.accept(item, false) != nil {
		return e, false
	}
	if undecodable == nil && r.transform(&item) == nil {
		return event(t, item), true
	}
	var none T
	item.Object = none
	e = event(t, item)
	e.Unusable, e.Err = true, undecodable
	return e, true
}

// undecodable returns why a state cannot be decoded, and counts it, or returns nil. Keys of other
// partitions belong to other reflectors.
func (r *Reflector[T]) undecodable(item *source.Item[T]) error {
	if !item.IsUndecodable() || !strings.HasPrefix(item.Key, r.o.Partition) {
		return nil
	}
	err := source.Bound(fmt.Errorf("object %s: %w", item.Key, item.Err))
	r.recorder.change(func(h *health.Watch) { h.Dropped++ })
	if more, ok := r.recorder.undecodable.Allow(); ok {
		r.recorder.log.Log(context.Background(), r.recorder.level,
			"an object cannot be decoded; its last decoded state stays in the cache",
			append([]any{"key", source.BoundText(item.Key), "error", err}, more...)...)
	}
	return err
}

// deleted adds the delete of an object. If its final state cannot be decoded, or the transform
// fails on it, the last known state takes the place of that.
func (s *watching[T]) deleted(item source.Item[T]) {
	switch {
	case item.IsUndecodable():
		s.gone(item)
	case s.accept(item, true) != nil:
	case s.transform(&item) != nil:
		s.gone(item)
	default:
		s.add(delta.Delete, item)
	}
}

// gone adds the delete of an object whose final state cannot be used. The queue finds its last
// known state: its add may be pending. Keys of other partitions belong to other reflectors.
func (s *watching[T]) gone(item source.Item[T]) {
	if strings.HasPrefix(item.Key, s.o.Partition) {
		var none T
		item.Object = none
		s.add(delta.Gone, item)
	}
}

func (s *watching[T]) add(t delta.EventType, item source.Item[T]) {
	s.changes = append(s.changes, event(t, item))
}

// event returns an event for the queue.
func event[T any](t delta.EventType, item source.Item[T]) delta.Event[T] {
	return delta.Event[T]{
		Type: t,
		Item: delta.Item[T]{Key: item.Key, Version: item.Version, UID: item.UID, Object: item.Object},
	}
}

// accept returns why an object does not belong to the collection, and counts it, or returns
// nil.
func (r *Reflector[T]) accept(item source.Item[T], deleted bool) error {
	err := item.Err
	if err == nil {
		err = r.o.Accept(item, deleted)
	}
	if err == nil {
		return nil
	}
	if item.Key != "" {
		err = source.Bound(fmt.Errorf("object %s: %w", item.Key, err))
	}
	r.recorder.change(func(h *health.Watch) {
		h.Dropped++
		h.LastDropped, h.LastDroppedAt = err, time.Now()
	})
	r.recorder.log.Debug("an object was dropped, because it does not belong to the collection", "error", err)
	return err
}

// transform replaces item.Object by the result of the transforms.
func (r *Reflector[T]) transform(item *source.Item[T]) error {
	obj, err := r.callTransform(item)
	if err == nil {
		item.Object = obj
		return nil
	}
	key := source.BoundText(item.Key)
	err = fmt.Errorf("transform of %s: %w", key, err)
	r.recorder.change(func(h *health.Watch) {
		h.TransformErrors++
		h.LastTransformError, h.LastTransformErrorAt = err, time.Now()
	})
	if more, ok := r.recorder.transforms.Allow(); ok {
		r.recorder.log.Warn("the transform failed; the object's previous state stays in the cache",
			append([]any{"key", key, "error", err}, more...)...)
	}
	return err
}

// errNilResult is a transform that returned nothing and no error.
var errNilResult = errors.New("it returned nil: return the object, or an error " +
	"to leave the cached state as it is")

// callTransform calls the transforms and makes an error of a panic and of a nil result: a
// failure on one object must not end the watch of all others.
func (r *Reflector[T]) callTransform(item *source.Item[T]) (result T, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	result = item.Object
	if r.o.Transform != nil {
		if result, err = r.o.Transform(result); err == nil && isNil(result) {
			err = errNilResult
		}
	}
	if err == nil && r.o.AfterTransform != nil {
		result, err = r.o.AfterTransform(*item, result)
	}
	return result, err
}

// isNil reports whether a value is nil or a nil pointer.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
