package fleet

import (
	"context"
	"fmt"
	"time"
)

// store creates the object in slot without reporting it, and keeps what the
// cluster made of it.
func store[T Object](ctx context.Context, f *Fleet, slot *T) error {
	return f.write(ctx, "create", *slot, f.cluster.Create, func(written Object) { *slot = written.(T) }, func(Change) {})
}

// create does the same and reports it.
func create[T Object](ctx context.Context, f *Fleet, slot *T) error {
	return f.write(ctx, "create", *slot, f.cluster.Create, func(written Object) { *slot = written.(T) }, f.o.Made)
}

// update writes a changed copy of the object in slot. A write that changed nothing
// leaves the version as it was and is not reported.
func update[T Object](ctx context.Context, f *Fleet, slot *T, change func(T)) error {
	before := (*slot).GetResourceVersion()
	next := (*slot).DeepCopyObject().(T)
	change(next)
	made := func(c Change) {
		if c.Object.GetResourceVersion() != before {
			f.o.Made(c)
		}
	}
	return f.write(ctx, "update", next, f.cluster.Update, func(written Object) { *slot = written.(T) }, made)
}

// remove deletes an object.
func remove(ctx context.Context, f *Fleet, obj Object) error {
	return f.write(ctx, "delete", obj, f.cluster.Delete, func(Object) {}, f.o.Made)
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
