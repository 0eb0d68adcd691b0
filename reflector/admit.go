package reflector

import (
	"fmt"
	"runtime/debug"

	"github.com/tidings-go/tidings/delta"
	"github.com/tidings-go/tidings/source"
)

// changed takes a new state of an object.
func (r *Reflector[T]) changed(item source.Item[T]) {
	if err := r.accept(item, false); err != nil {
		if item.Err == nil {
			r.left(item) // an object that is known has left the collection
		}
		return
	}
	if r.transform(&item) != nil {
		return
	}
	r.push(delta.Set, item)
}

// deleted takes the last state of an object. A transform that fails on it does
// not cost the delete: the last known state stands in.
func (r *Reflector[T]) deleted(item source.Item[T]) {
	if r.accept(item, true) != nil {
		return
	}
	if r.transform(&item) != nil {
		r.left(item)
		return
	}
	r.push(delta.Delete, item)
}

// left pushes the delete of a known object with its last known state.
func (r *Reflector[T]) left(item source.Item[T]) {
	if known, _, uid, ok := r.o.Known(item.Key); ok {
		item.Object, item.UID = known, uid
		r.push(delta.Delete, item)
	}
}

func (r *Reflector[T]) push(t delta.ChangeType, item source.Item[T]) {
	r.changes = append(r.changes, delta.Change[T]{
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
		err = fmt.Errorf("object %s: %w", item.Key, err)
	}
	r.record.change(func(h *Health) {
		h.Dropped++
		h.LastDropped = err
	})
	r.record.log.Debug("dropped an object that does not belong here", "error", err)
	return err
}

// transform replaces item.Object by what Options.Transform makes of it.
func (r *Reflector[T]) transform(item *source.Item[T]) error {
	if r.o.Transform == nil {
		return nil
	}
	obj, err := r.callTransform(item.Object)
	if err == nil {
		item.Object = obj
		return nil
	}
	err = fmt.Errorf("transform of %s: %w", item.Key, err)
	r.record.change(func(h *Health) {
		h.TransformErrors++
		h.LastTransformError = err
	})
	r.record.log.Warn("the transform failed; the object's previous state stays in the cache", "key", item.Key, "error", err)
	return err
}

// callTransform makes an error of a panic: a transform is the user's code, and
// one object that it cannot bear must not end the watch of all others.
func (r *Reflector[T]) callTransform(obj T) (result T, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	return r.o.Transform(obj)
}
