package reflector

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strings"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

// changed takes a new state of an object.
func (r *Reflector[T]) changed(item source.Item[T]) {
	if err := r.accept(item, false); err != nil {
		if item.Err == nil {
			r.gone(item) // an object that is known has left the collection
		}
		return
	}
	if r.transform(&item) != nil {
		return
	}
	r.push(delta.Set, item)
}

// deleted takes the final state of an object. A transform that fails on it does not
// cost the delete: the last known state stands in.
func (r *Reflector[T]) deleted(item source.Item[T]) {
	if r.accept(item, true) != nil {
		return
	}
	if r.transform(&item) != nil {
		r.gone(item)
		return
	}
	r.push(delta.Delete, item)
}

// gone pushes the delete of an object whose final state cannot be used. Which state of it
// is the last known one is for the queue to say: its add may be pending. Keys of other scopes
// belong to other reflectors.
func (r *Reflector[T]) gone(item source.Item[T]) {
	if strings.HasPrefix(item.Key, r.o.Scope) {
		var none T
		item.Object = none
		r.push(delta.Gone, item)
	}
}

func (r *Reflector[T]) push(t delta.EventType, item source.Item[T]) {
	r.changes = append(r.changes, delta.Event[T]{
		Type: t,
		Item: delta.Item[T]{Key: item.Key, Version: item.Version, UID: item.UID, Object: item.Object},
	})
}

// accept asks whether an object belongs to the collection, and counts it if not.
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
		h.LastDropped = err
	})
	r.recorder.log.Debug("dropped an object that does not belong here", "error", err)
	return err
}

// transform replaces item.Object by what the options make of it.
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
		h.LastTransformError = err
	})
	r.recorder.log.Warn("the transform failed; the object's previous state stays in the cache", "key", key, "error", err)
	return err
}

// errNilResult is a transform that returned nothing and no error.
var errNilResult = errors.New("it returned nil: return the object, or an error to leave the cached state as it is")

// callTransform makes an error of a panic and of a nil result: a transform is the user's
// code, and one object that it cannot bear must not end the watch of all others.
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
