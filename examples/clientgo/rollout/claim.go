package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// claims are the means of an owner to claim objects of a type.
type claims[T metav1.Object] struct {
	owner    metav1.Object
	kind     schema.GroupVersionKind
	selector labels.Selector
	// current reads the owner from the server.
	current func(ctx context.Context) (metav1.Object, error)
	// patch applies a strategic merge patch to an object.
	patch func(ctx context.Context, name string, data []byte) (T, error)
}

// claim returns those of the objects that belong to the owner, after it has released
// what it must and adopted what it can. The objects that it could not release or adopt
// are in the error, and not returned.
func (c claims[T]) claim(ctx context.Context, objects []T) ([]T, error) {
	var owned []T
	var failed []error
	checked := false
	for _, obj := range objects {
		matches := c.selector.Matches(labels.Set(obj.GetLabels()))
		controller := metav1.GetControllerOf(obj)
		switch {
		case controller != nil && controller.UID != c.owner.GetUID():
		case controller != nil && matches:
			owned = append(owned, obj)
		case controller != nil:
			failed = append(failed, c.release(ctx, obj))
		case matches && obj.GetDeletionTimestamp() == nil:
			if !checked {
				if err := c.mayAdopt(ctx); err != nil {
					failed = append(failed, err)
					continue
				}
				checked = true
			}
			adopted, err := c.adopt(ctx, obj)
			if err != nil {
				failed = append(failed, err)
				continue
			}
			owned = append(owned, adopted)
		}
	}
	return owned, errors.Join(failed...)
}

// mayAdopt returns an error if the owner is not on the server as it is in the cache,
// or is being deleted: what it adopted then would have no owner.
func (c claims[T]) mayAdopt(ctx context.Context) error {
	current, err := c.current(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("read it before it adopts: %w", err)
	case current.GetUID() != c.owner.GetUID():
		return fmt.Errorf("the cache has an earlier %s of that name: it adopts nothing", c.kind.Kind)
	case current.GetDeletionTimestamp() != nil:
		return fmt.Errorf("it is being deleted since the cache has seen it: it adopts nothing")
	}
	return nil
}

// ownership is the patch that gives an object an owner, or takes it away. The UID of
// the object makes the server refuse it for another of the same name.
type ownership struct {
	Metadata struct {
		UID        types.UID `json:"uid"`
		References []any     `json:"ownerReferences"`
	} `json:"metadata"`
}

// forget is the part of a strategic merge patch that deletes a reference.
type forget struct {
	Directive string    `json:"$patch"`
	UID       types.UID `json:"uid"`
}

func (c claims[T]) adopt(ctx context.Context, obj T) (T, error) {
	return c.refer(ctx, obj, metav1.NewControllerRef(c.owner, c.kind))
}

// release gives an object free. That it is gone is an error too: the cache will agree
// before it is tried again, or what the server said was wrong.
func (c claims[T]) release(ctx context.Context, obj T) error {
	_, err := c.refer(ctx, obj, forget{"delete", c.owner.GetUID()})
	return err
}

func (c claims[T]) refer(ctx context.Context, obj T, reference any) (T, error) {
	var change ownership
	change.Metadata.UID = obj.GetUID()
	change.Metadata.References = []any{reference}
	data, err := json.Marshal(change)
	if err != nil {
		return obj, err
	}
	return c.patch(ctx, obj.GetName(), data)
}
