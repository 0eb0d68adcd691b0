package rollout

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// deleteOrphans deletes those of the objects whose controller is of a name and kind,
// and is not there any more. present is the UID of that in the cache, "" if it has
// none. The server has the last word, as the cache may be late. It calls again if there
// was something to delete, to look whether that is gone: answers may be wrong.
func deleteOrphans[T metav1.Object](
	ctx context.Context, objects []T, owner string, isKind func(*metav1.OwnerReference) bool, present types.UID,
	current func(context.Context) (metav1.Object, error), remove func(context.Context, string, metav1.DeleteOptions) error, again func(),
) error {
	var orphans []T
	for _, obj := range objects {
		if ref := metav1.GetControllerOf(obj); ref != nil && ref.Name == owner && isKind(ref) && ref.UID != present && obj.GetDeletionTimestamp() == nil {
			orphans = append(orphans, obj)
		}
	}
	if len(orphans) == 0 {
		return nil
	}
	again()
	var living types.UID
	switch obj, err := current(ctx); {
	case err == nil:
		living = obj.GetUID()
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read the owner of %d objects before they are deleted: %w", len(orphans), err)
	}
	var failed []error
	for _, obj := range orphans {
		if metav1.GetControllerOf(obj).UID == living {
			failed = append(failed, fmt.Errorf("the cache lacks the owner of %s, which is there", obj.GetName()))
			continue
		}
		failed = append(failed, deleteOne(ctx, obj, remove))
	}
	return errors.Join(failed...)
}

// deleteOne deletes an object, and none of the same name that has come in its place.
// That it is gone already is an error too, for another attempt: the cache will agree
// soon, and if not, what the server said was wrong.
func deleteOne(ctx context.Context, obj metav1.Object, remove func(context.Context, string, metav1.DeleteOptions) error) error {
	err := remove(ctx, obj.GetName(), metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(obj.GetUID()))})
	if err != nil {
		return fmt.Errorf("delete %v: %w", nameOf(obj), err)
	}
	return nil
}
