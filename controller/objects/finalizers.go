package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
)

// Patcher writes finalizers. It is a typed client of one resource and namespace, such
// as client.AppsV1().Deployments("default"), or a dynamic or metadata client.
type Patcher[T any] interface {
	Patch(
		ctx context.Context, name string, kind types.PatchType, patch []byte,
		o metav1.PatchOptions, subresources ...string,
	) (T, error)
}

// AddFinalizer adds a finalizer to an object, which may be a view, and returns the server's answer.
// If it has the finalizer already, it returns the object as it is, nil for a view. A further write
// of the same call takes the returned object: the version of the cached one is in conflict. The
// server refuses a new finalizer for an object that is being deleted.
func AddFinalizer[T any, V tidings.Object](
	ctx context.Context, client Patcher[T], object V, finalizer string,
) (T, error) {
	same, _ := any(object).(T)
	present := object.GetFinalizers()
	if slices.Contains(present, finalizer) {
		return same, nil
	}
	all := append(slices.Clone(present), finalizer)
	changed, err := patchFinalizers(ctx, client, object, all)
	if err != nil {
		return same, fmt.Errorf("add the finalizer %s: %w", finalizer, err)
	}
	return changed, nil
}

// RemoveFinalizer removes a finalizer from an object, which may be a view, and returns the server's
// answer. If it lacks the finalizer, or if the server no longer has the object, it returns the
// object as it is, nil for a view.
func RemoveFinalizer[T any, V tidings.Object](
	ctx context.Context, client Patcher[T], object V, finalizer string,
) (T, error) {
	same, _ := any(object).(T)
	present := object.GetFinalizers()
	if !slices.Contains(present, finalizer) {
		return same, nil
	}
	left := slices.DeleteFunc(slices.Clone(present), func(f string) bool { return f == finalizer })
	changed, err := patchFinalizers(ctx, client, object, left)
	switch {
	case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err): // no page of a proxy
		return same, nil
	case err != nil:
		return same, fmt.Errorf("remove the finalizer %s: %w", finalizer, err)
	}
	return changed, nil
}

// patchFinalizers replaces the finalizers of the object, if it still has its version.
func patchFinalizers[T any](
	ctx context.Context, client Patcher[T], object tidings.Object, finalizers []string,
) (T, error) {
	patch := map[string]any{"metadata": map[string]any{"finalizers": finalizers}}
	return patchState(ctx, client, object, patch)
}

// patchState merges a patch into an object, if it still has its version.
func patchState[T any](
	ctx context.Context, client Patcher[T], object tidings.Object, patch map[string]any,
	subresources ...string,
) (T, error) {
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = object.GetUID(), object.GetResourceVersion()
	data, err := json.Marshal(patch)
	if err != nil {
		var none T
		return none, err
	}
	return client.Patch(
		ctx, object.GetName(), types.MergePatchType, data, metav1.PatchOptions{}, subresources...)
}
