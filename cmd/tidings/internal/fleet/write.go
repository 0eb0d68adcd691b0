package fleet

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// maxConflicts is how often a write is made again because another one came between.
const maxConflicts = 10

// store creates the object in slot without reporting it, and keeps what the
// cluster made of it.
func store[T Object](ctx context.Context, f *Fleet, slot *T) error {
	return f.write(ctx, "create", *slot, f.cluster.Create, func(written Object) { *slot = written.(T) }, func(Change) {})
}

// create does the same and reports it.
func create[T Object](ctx context.Context, f *Fleet, slot *T) error {
	return f.write(ctx, "create", *slot, f.cluster.Create, func(written Object) { *slot = written.(T) }, f.o.Made)
}

// update writes a changed copy of the object in slot. Where somebody else has written
// meanwhile, the change is made to what that left. A write that changed nothing leaves
// the version as it was and is not reported.
func update[T Object](ctx context.Context, f *Fleet, slot *T, change func(T)) error {
	for attempt := 1; ; attempt++ {
		before := (*slot).GetResourceVersion()
		next := (*slot).DeepCopyObject().(T)
		change(next)
		made := func(c Change) {
			if c.Object.GetResourceVersion() != before {
				f.o.Made(c)
			}
		}
		err := f.write(ctx, "update", next, f.cluster.Update, func(written Object) { *slot = written.(T) }, made)
		if !apierrors.IsConflict(err) || attempt == maxConflicts {
			return err
		}
		newest, err := f.cluster.Get(ctx, *slot)
		if err != nil {
			return err
		}
		*slot = newest.(T)
		f.hear(newest, false, true)
	}
}

// remove deletes an object. One that is gone already is as it is to be.
func remove(ctx context.Context, f *Fleet, obj Object) error {
	err := f.write(ctx, "delete", obj, f.cluster.Delete, func(Object) {}, f.o.Made)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// write makes one write. It is not cut short when ctx ends: whether it took place
// has to be known.
func (f *Fleet) write(ctx context.Context, verb string, obj Object, call func(context.Context, Object) (Object, error), keep func(Object), made func(Change)) error {
	began := time.Now()
	written, err := call(context.WithoutCancel(ctx), obj)
	if err != nil {
		return fmt.Errorf("fleet: %s %T %s/%s: %w", verb, obj, obj.GetNamespace(), obj.GetName(), err)
	}
	keep(written)
	made(Change{Began: began, Object: written})
	return nil
}

// isForeign reports whether an error comes of what somebody else has written: an object
// is gone, is there already, was changed again and again, or may not be made in a
// namespace that is about to go.
func isForeign(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsForbidden(err)
}

// renewed returns a copy that can be created again.
func renewed[T Object](obj T) T {
	again := obj.DeepCopyObject().(T)
	again.SetResourceVersion("")
	again.SetUID(types.UID(""))
	again.SetDeletionTimestamp(nil)
	return again
}
