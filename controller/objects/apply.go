package objects

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/tidings-go/tidings"
)

// Applier applies configurations. It is a typed client of one resource and namespace,
// such as client.AppsV1().ReplicaSets("default").
type Applier[C any, T tidings.Object] interface {
	Apply(ctx context.Context, configuration C, o metav1.ApplyOptions) (T, error)
}

// Apply applies a configuration as a field manager, takes over the fields that other managers
// own, and returns the server's answer. cached is the cached object, or nil. Apply returns it,
// without a request, if the manager has applied just that configuration to it. extract returns
// the configuration that a manager has applied to an object: typed clients have such a function
// for each type, as ExtractReplicaSet of applyconfigurations/apps/v1.
func Apply[C any, T tidings.Object](
	ctx context.Context, client Applier[C, T], manager string, wanted C,
	cached T, extract func(object T, manager string) (C, error),
) (T, error) {
	var none T
	if any(cached) != any(none) {
		present, err := extract(cached, manager)
		if err != nil {
			return none, err
		}
		if equality.Semantic.DeepEqual(present, wanted) {
			return cached, nil
		}
	}
	return client.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: manager, Force: true})
}

// ControllerRef returns the owner reference that makes an object of a kind the controller of
// another one. The kind is a parameter, as cached objects lack it.
func ControllerRef(
	owner metav1.Object, kind schema.GroupVersionKind,
) *applymetav1.OwnerReferenceApplyConfiguration {
	return applymetav1.OwnerReference().
		WithAPIVersion(kind.GroupVersion().String()).WithKind(kind.Kind).
		WithName(owner.GetName()).WithUID(owner.GetUID()).
		WithController(true).WithBlockOwnerDeletion(true)
}
