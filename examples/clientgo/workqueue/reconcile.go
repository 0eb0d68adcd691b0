package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/clientgo/cache"
)

const (
	// listSuffix makes the name of an image list from that of its deployment.
	listSuffix = "-images"
	// imagesKey is the entry of an image list.
	imagesKey = "images"
)

// reconcile creates, updates or deletes the image list of one deployment.
func (c *controller) reconcile(ctx context.Context, key cache.ObjectName) error {
	deployment, err := c.deployments.Deployments(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		return c.remove(ctx, key)
	}
	if err != nil {
		return err
	}
	images := imagesOf(deployment)
	list, err := c.lists.ConfigMaps(key.Namespace).Get(key.Name + listSuffix)
	switch {
	case apierrors.IsNotFound(err):
		return c.create(ctx, deployment, images)
	case err != nil:
		return err
	case isImageList(list) && !metav1.IsControlledBy(list, deployment):
		// Of a former deployment of this name. When it is gone, that is an event.
		return c.remove(ctx, key)
	case !metav1.IsControlledBy(list, deployment):
		c.out.Printf("%s/%s is not ours: left alone", list.Namespace, list.Name)
		return nil
	case list.Data[imagesKey] == images:
		return nil
	}
	changed := list.DeepCopy() // the original belongs to the cache
	changed.Data = map[string]string{imagesKey: images}
	if _, err := c.client.CoreV1().ConfigMaps(key.Namespace).Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return err
	}
	c.out.Printf("updated %s/%s: %s", changed.Namespace, changed.Name, images)
	return nil
}

func (c *controller) create(ctx context.Context, deployment *appsv1.Deployment, images string) error {
	list := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       deployment.Namespace,
			Name:            deployment.Name + listSuffix,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Data: map[string]string{imagesKey: images},
	}
	if _, err := c.client.CoreV1().ConfigMaps(list.Namespace).Create(ctx, list, metav1.CreateOptions{}); err != nil {
		return err
	}
	c.out.Printf("created %s/%s: %s", list.Namespace, list.Name, images)
	return nil
}

// remove deletes the image list of a deployment that is gone. Where the garbage
// collector runs, it may have been faster.
func (c *controller) remove(ctx context.Context, key cache.ObjectName) error {
	list, err := c.lists.ConfigMaps(key.Namespace).Get(key.Name + listSuffix)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !isImageList(list) {
		return nil
	}
	uid := list.UID
	err = c.client.CoreV1().ConfigMaps(key.Namespace).Delete(ctx, list.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	c.out.Printf("deleted %s/%s", list.Namespace, list.Name)
	return nil
}

// enqueueOwner puts the deployment of an image list into the queue.
func (c *controller) enqueueOwner(obj any) {
	if owner := ownerOf(obj); owner != "" {
		key, err := cache.DeletionHandlingObjectToName(obj)
		if err != nil {
			c.out.Printf("an event without a key: %v", err)
			return
		}
		c.queue.Add(cache.NewObjectName(key.Namespace, owner))
	}
}

// isImageList reports whether an object is the image list of a deployment.
func isImageList(obj any) bool { return ownerOf(obj) != "" }

// ownerOf returns the name of the deployment that an object is the image list of, or
// nothing if it is not one. The object may be a tombstone.
func ownerOf(obj any) string {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	list, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return ""
	}
	owner := metav1.GetControllerOf(list)
	if owner == nil || owner.Kind != "Deployment" || list.Name != owner.Name+listSuffix {
		return ""
	}
	return owner.Name
}

// imagesOf returns the images of a deployment, each once and in order.
func imagesOf(d *appsv1.Deployment) string {
	images := map[string]bool{}
	for _, container := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
		images[container.Image] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(images)), " ")
}
