package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// next works on one widget and reports false when the queue was shut down.
func (c *controller) next(ctx context.Context) bool {
	key, down := c.queue.Get()
	if down {
		return false
	}
	defer c.queue.Done(key)
	err := c.reconcile(ctx, key)
	if err == nil || ctx.Err() != nil {
		c.queue.Forget(key)
		return true
	}
	// What changed or went away since is a cache that is a moment behind.
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		fmt.Fprintf(c.out, "%v: %v; trying again\n", key, err)
	}
	c.queue.AddRateLimited(key)
	return true
}

// reconcile makes one piece of a widget if one is missing. That changes the widget, so
// that its next piece follows by itself.
func (c *controller) reconcile(ctx context.Context, key cache.ObjectName) error {
	widget, err := c.widgets.Widgets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		fmt.Fprintf(c.out, "%v is cancelled\n", key)
		return nil
	}
	if err != nil {
		return err
	}
	if widget.Status.Made >= widget.Spec.Pieces {
		return nil
	}
	_, err = c.configMaps.ConfigMaps(key.Namespace).Get(closedName)
	switch {
	case err == nil:
		fmt.Fprintf(c.out, "%v waits: the shop is closed\n", key)
		return nil
	case !apierrors.IsNotFound(err):
		return err
	}
	changed := widget.DeepCopy() // the original belongs to the cache
	changed.Status.Made++
	if _, err := c.client.ShopV1().Widgets(key.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%v: %s piece %d of %d is made\n", key, changed.Spec.Color, changed.Status.Made, changed.Spec.Pieces)
	return nil
}

// reopened is called for every ConfigMap that was deleted: the widgets of its namespace
// may have waited for that.
func (c *controller) reopened(obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil || key.Name != closedName {
		return // without a name it is not the one
	}
	widgets, err := c.widgets.Widgets(key.Namespace).List(labels.Everything())
	if err != nil {
		return // a lister has no way to fail but an index that is missing, and then lists all
	}
	for _, widget := range widgets {
		c.queue.Add(cache.MetaObjectToName(widget))
	}
}
