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
	case !isImageList(list):
		c.out.Printf("%s/%s is not ours: left alone", list.Namespace, list.Name)
		return nil
	case list.Data[imagesKey] == images:
		return nil
	}
	changed := list.DeepCopy() // the original belongs to the cache
	changed.Data = map[string]string{imagesKey: images}
	client := c.client.CoreV1().ConfigMaps(key.Namespace)
	if _, err := client.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return err
	}
	c.out.Printf("updated %s/%s: %s", changed.Namespace, changed.Name, images)
	return nil
}

func (c *controller) create(ctx context.Context, owner *appsv1.Deployment, images string) error {
	ref := metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	list := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: owner.Namespace, Name: owner.Name + listSuffix,
			OwnerReferences: []metav1.OwnerReference{*ref},
		},
		Data: map[string]string{imagesKey: images},
	}
	client := c.client.CoreV1().ConfigMaps(list.Namespace)
	if _, err := client.Create(ctx, list, metav1.CreateOptions{}); err != nil {
		return err
	}
	c.out.Printf("created %s/%s: %s", list.Namespace, list.Name, images)
	return nil
}

// remove deletes the image list of a deployment that is gone. Where the garbage
// collector runs, it may have been faster.
func (c *controller) remove(ctx context.Context, key cache.ObjectName) error {
	list, err := c.lists.ConfigMaps(key.Namespace).Get(key.Name + listSuffix)
	if err == nil && isImageList(list) {
		o := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(list.UID))}
		err = c.client.CoreV1().ConfigMaps(key.Namespace).Delete(ctx, list.Name, o)
		if err == nil {
			c.out.Printf("deleted %s/%s", list.Namespace, list.Name)
		}
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// isImageList reports whether a ConfigMap is the image list of a deployment.
func isImageList(list *corev1.ConfigMap) bool {
	owner := metav1.GetControllerOf(list)
	return owner != nil && owner.Kind == "Deployment" && list.Name == owner.Name+listSuffix
}

// imagesOf returns the images of a deployment, each once and in order.
func imagesOf(d *appsv1.Deployment) string {
	images := map[string]bool{}
	spec := d.Spec.Template.Spec
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		images[container.Image] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(images)), " ")
}
