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

// objects decides what the queue receives of an object. It has no state of its own: any goroutine
// may use it.
type objects[T any] struct{ *shared[T] }

// ignores reports whether an object is in a slot that is not held.
func (j *objects[T]) ignores(item *source.Item[T]) bool {
	return (item.Err == nil || item.IsUndecodable()) && !j.slots.has(item.Key, item.UID)
}

// changed returns the event of a new state of an object; ok is false if there is none.
func (j *objects[T]) changed(item source.Item[T]) (e delta.Event[T], ok bool) {
	if e, ok = j.use(delta.Set, item); !ok && item.Err == nil {
		return j.gone(item) // a known object has left the collection
	}
	return e, ok
}

// use returns the event that hands on a state of an object, and ok false if the object does not
// belong to the collection. A state that cannot be decoded, or that the transform fails on, leaves
// the known one.
func (j *objects[T]) use(t delta.EventType, item source.Item[T]) (e delta.Event[T], ok bool) {
	undecodable := j.undecodable(&item)
	if undecodable == nil && j.accept(item, false) != nil {
		return e, false
	}
	if undecodable == nil && j.transform(&item) == nil {
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
func (j *objects[T]) undecodable(item *source.Item[T]) error {
	if !item.IsUndecodable() || !strings.HasPrefix(item.Key, j.o.Partition) {
		return nil
	}
	err := source.Bound(fmt.Errorf("object %s: %w", item.Key, item.Err))
	j.recorder.change(func(h *health.Watch) { h.Dropped++ })
	if more, ok := j.recorder.undecodable.Allow(); ok {
		j.recorder.log.Log(context.Background(), j.recorder.level,
			"an object cannot be decoded; its last decoded state stays in the cache",
			append([]any{"key", source.BoundText(item.Key), "error", err}, more...)...)
	}
	return err
}

// deleted returns the event of the end of an object; ok is false if the object does not belong to
// the collection. If its final state cannot be decoded, or the transform fails on it, the last
// known state takes the place of the final one.
func (j *objects[T]) deleted(item source.Item[T]) (e delta.Event[T], ok bool) {
	switch {
	case item.IsUndecodable():
		return j.gone(item)
	case j.accept(item, true) != nil:
		return e, false
	case j.transform(&item) != nil:
		return j.gone(item)
	}
	return event(delta.Delete, item), true
}

// gone returns the delete of an object whose final state cannot be used. The queue finds its last
// known state: its add may be pending. Keys of other partitions belong to other reflectors.
func (j *objects[T]) gone(item source.Item[T]) (e delta.Event[T], ok bool) {
	var none T
	item.Object = none
	return event(delta.Gone, item), strings.HasPrefix(item.Key, j.o.Partition)
}

// event returns an event for the queue.
func event[T any](t delta.EventType, item source.Item[T]) delta.Event[T] {
	return delta.Event[T]{Type: t, Item: itemOf(item)}
}

// itemOf returns an object for the queue.
func itemOf[T any](item source.Item[T]) delta.Item[T] {
	return delta.Item[T]{
		Key: item.Key, Version: item.Version, UID: item.UID, Object: item.Object,
	}
}

// accept returns why an object does not belong to the collection, and counts it, or returns nil.
func (j *objects[T]) accept(item source.Item[T], deleted bool) error {
	err := item.Err
	if err == nil {
		err = j.o.Accept(item, deleted)
	}
	if err == nil {
		return nil
	}
	if item.Key != "" {
		err = source.Bound(fmt.Errorf("object %s: %w", item.Key, err))
	}
	j.recorder.change(func(h *health.Watch) {
		h.Dropped++
		h.LastDropped, h.LastDroppedAt = err, time.Now()
	})
	j.recorder.log.Debug("an object was dropped, because it does not belong to the collection",
		"error", err)
	return err
}

// transform replaces item.Object by the result of the transforms.
func (j *objects[T]) transform(item *source.Item[T]) error {
	obj, err := j.callTransform(item)
	if err == nil {
		item.Object = obj
		return nil
	}
	key := source.BoundText(item.Key)
	err = fmt.Errorf("transform of %s: %w", key, err)
	j.recorder.change(func(h *health.Watch) {
		h.TransformErrors++
		h.LastTransformError, h.LastTransformErrorAt = err, time.Now()
	})
	if more, ok := j.recorder.transforms.Allow(); ok {
		j.recorder.log.Warn("the transform failed; the object's previous state stays in the cache",
			append([]any{"key", key, "error", err}, more...)...)
	}
	return err
}

// errNilResult is a transform that returned nothing and no error.
var errNilResult = errors.New("it returned nil: return the object, or an error " +
	"to leave the cached state as it is")

// callTransform calls the transforms and makes an error of a panic and of a nil result: a failure
// on one object must not end the watch of all others.
func (j *objects[T]) callTransform(item *source.Item[T]) (result T, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	result = item.Object
	if j.o.Transform != nil {
		if result, err = j.o.Transform(result); err == nil && isNil(result) {
			err = errNilResult
		}
	}
	if err == nil && j.o.AfterTransform != nil {
		result, err = j.o.AfterTransform(*item, result)
	}
	return result, err
}

// isNil reports whether a value is nil or a nil pointer.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
