package objects

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings"
)

// Object is an object as clients write it: a whole one, of an API type or a map.
type Object interface {
	metav1.Object
	runtime.Object
}

// StatusUpdater writes a status. It is a typed client of one resource and namespace,
// such as client.AppsV1().Deployments("default"), or a dynamic client.
type StatusUpdater[T Object] interface {
	UpdateStatus(ctx context.Context, object T, o metav1.UpdateOptions) (T, error)
}

// UpdateStatus gives a copy of an object to set, which changes its status, writes that status and
// returns the server's answer. It returns the object as it is if set changes nothing.
func UpdateStatus[T Object](
	ctx context.Context, client StatusUpdater[T], object T, set func(T),
) (T, error) {
	changed := object.DeepCopyObject().(T)
	set(changed)
	if equality.Semantic.DeepEqual(object, changed) {
		return object, nil
	}
	return client.UpdateStatus(ctx, changed, metav1.UpdateOptions{})
}

// PatchStatus merges fields into the status of an object, which may be a view, and returns the
// server's answer. status is a struct or a map with the fields to write; nil removes a field, and a
// list replaces the one that is there. It always sends: call it if the cached status is another.
func PatchStatus[T any](
	ctx context.Context, client Patcher[T], object tidings.Object, status any,
) (T, error) {
	return patchState(ctx, client, object, map[string]any{"status": status}, "status")
}
