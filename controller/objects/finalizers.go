package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Patcher writes finalizers. It is a typed client of one resource and namespace, such
// as client.AppsV1().Deployments("default"), or a dynamic or metadata client.
type Patcher[T Object] interface {
	Patch(
		ctx context.Context, name string, kind types.PatchType, patch []byte,
		o metav1.PatchOptions, subresources ...string,
	) (T, error)
}

// AddFinalizer adds a finalizer to an object and returns the server's answer. It returns the
// object as it is if it has the finalizer already. The server refuses a new finalizer for an
// object that is being deleted.
func AddFinalizer[T Object](
	ctx context.Context, client Patcher[T], object T, finalizer string,
) (T, error) {
	present := object.GetFinalizers()
	if slices.Contains(present, finalizer) {
		return object, nil
	}
	all := append(slices.Clone(present), finalizer)
	changed, err := patchFinalizers(ctx, client, object, all)
	if err != nil {
		return object, fmt.Errorf("add the finalizer %s: %w", finalizer, err)
	}
	return changed, nil
}

// RemoveFinalizer removes a finalizer from an object and returns the server's answer. It returns
// the object as it is if it lacks the finalizer, or if the server no longer has the object.
func RemoveFinalizer[T Object](
	ctx context.Context, client Patcher[T], object T, finalizer string,
) (T, error) {
	present := object.GetFinalizers()
	if !slices.Contains(present, finalizer) {
		return object, nil
	}
	left := slices.DeleteFunc(slices.Clone(present), func(f string) bool { return f == finalizer })
	changed, err := patchFinalizers(ctx, client, object, left)
	switch {
	case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err): // no page of a proxy
		return object, nil
	case err != nil:
		return object, fmt.Errorf("remove the finalizer %s: %w", finalizer, err)
	}
	return changed, nil
}

// patchFinalizers replaces the finalizers of the object, if it still has its version.
func patchFinalizers[T Object](
	ctx context.Context, client Patcher[T], object T, finalizers []string,
) (T, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion(),
		"finalizers": finalizers,
	}})
	if err != nil {
		var none T
		return none, err
	}
	return client.Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
}
