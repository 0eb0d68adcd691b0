package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/tidings-go/tidings/controller"
)

const (
	// selector chooses the ConfigMaps that get checksums.
	selector = "checksum=wanted"
	// sumAnnotation is the checksum, and byAnnotation is the replica that wrote it.
	sumAnnotation = "tidings.example.com/checksum"
	byAnnotation  = "tidings.example.com/checksum-by"
)

// checksums writes the checksum of the data of each ConfigMap into an annotation.
type checksums struct {
	client corev1client.ConfigMapsGetter
	by     string
}

func (c checksums) reconcile(
	ctx context.Context, r controller.Request[*corev1.ConfigMap],
) (controller.Result, error) {
	if r.Gone || r.Object.DeletionTimestamp != nil {
		return controller.Result{}, nil
	}
	sum := checksum(r.Object)
	if r.Object.Annotations[sumAnnotation] == sum {
		return controller.Result{}, nil
	}
	// With UID and version, a write that the server receives after the slot has moved changes
	// nothing that the next owner has written.
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": r.Object.UID, "resourceVersion": r.Object.ResourceVersion,
		"annotations": map[string]string{sumAnnotation: sum, byAnnotation: c.by},
	}})
	if err != nil {
		return controller.Result{}, err
	}
	_, err = c.client.ConfigMaps(r.Namespace()).Patch(
		ctx, r.Name(), types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = nil // the change that was first leads to the next call
	}
	return controller.Result{}, err
}

// checksum returns that of the data.
func checksum(c *corev1.ConfigMap) string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		hash.Write([]byte(key + "\x00" + c.Data[key] + "\x00"))
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}
