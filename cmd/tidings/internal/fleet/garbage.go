package fleet

import (
	"context"
	"iter"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/source"
)

// orphans returns a secondary of owners: the deletion of an owner leads to its dependents, and any
// other change to none.
func orphans[T, O tidings.Object](
	owners *tidings.Informer[O], dependents *tidings.Informer[T],
) controller.Secondary {
	return controller.Maps(owners, func(owner O) iter.Seq[string] {
		return func(yield func(string) bool) {
			if isCached(owners.Lister(), owner) {
				return
			}
			for key := range dependents.Lister().Controlled(owner.GetUID()) {
				if !yield(key) {
					return
				}
			}
		}
	})
}

func isCached[O tidings.Object](in tidings.Lister[O], of guard.Identity) bool {
	owner, err := in.Get(source.Key(of.GetNamespace(), of.GetName()))
	return err == nil && owner.GetUID() == of.GetUID()
}

// isOrphan reports whether the owner of an object is gone. The informer of the owners may be behind
// that of the dependents, so the server decides. Owners of another kind do not count.
func isOrphan[O tidings.Object](
	ctx context.Context, c *cluster, of metav1.Object, owners *tidings.Informer[O],
	kind, resource string,
) (bool, error) {
	ref := metav1.GetControllerOfNoCopy(of)
	if ref == nil || ref.Kind != kind {
		return false, nil
	}
	owner := &metav1.ObjectMeta{Namespace: of.GetNamespace(), Name: ref.Name, UID: ref.UID}
	if isCached(controller.Read(ctx, owners), owner) {
		return false, nil
	}
	exists, err := c.guard.Exists(ctx, appsv1.SchemeGroupVersion.WithResource(resource), owner)
	return err == nil && !exists, err
}
