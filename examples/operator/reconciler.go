package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	webv1 "github.com/tidings-go/tidings/examples/operator/api/v1"
)

// retryAfter is the time after which a write is tried again that the server refused because the
// cache was behind. It is short, since the cache is about to receive the change.
const retryAfter = 100 * time.Millisecond

// reconciler fits the objects in the namespace of a Website to the Website. It reads from the
// manager's cache and writes to the server.
type reconciler struct {
	client.Client
}

// Reconcile writes the objects that a Website needs and deletes those that it no longer needs.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var site webv1.Website
	err := r.Get(ctx, req.NamespacedName, &site)
	switch {
	case apierrors.IsNotFound(err):
		err = r.prune(ctx, req, "", "")
	case err == nil:
		err = r.apply(ctx, req, &site)
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: retryAfter}, nil
	}
	return reconcile.Result{}, err
}

// apply brings everything of a Website up to date, its status last.
func (r *reconciler) apply(ctx context.Context, req reconcile.Request, site *webv1.Website) error {
	page := pageOf(site)
	if err := r.write(ctx, site, page, func() { fillPage(page, site) }); err != nil {
		return err
	}
	servers := serversOf(site)
	if err := r.write(ctx, site, servers, func() { fillServers(servers, site, page.Name) }); err != nil {
		return err
	}
	if err := r.prune(ctx, req, servers.Name, page.Name); err != nil {
		return err
	}
	status := webv1.WebsiteStatus{ObservedGeneration: site.Generation, ConfigMap: page.Name, ReadyReplicas: servers.Status.ReadyReplicas}
	if site.Status == status {
		return nil
	}
	site.Status = status
	return r.Status().Update(ctx, site)
}

// write creates an object as fill makes it, or updates it if fill changes it. An object
// of that name which no Website controls belongs to somebody else and is left alone.
func (r *reconciler) write(ctx context.Context, site *webv1.Website, obj client.Object, fill func()) error {
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, obj, func() error {
		if obj.GetResourceVersion() != "" && metav1.GetControllerOf(obj) == nil {
			return fmt.Errorf("%T %s/%s is not of a website: delete it, or give the website another name", obj, obj.GetNamespace(), obj.GetName())
		}
		fill()
		return controllerutil.SetControllerReference(site, obj, r.Scheme())
	})
	return err
}

// prune deletes the objects that a Website controls, except one Deployment and one ConfigMap: those
// from before its page changed, or all of them after the Website is gone. A garbage collector does
// the latter too, and either may be first.
func (r *reconciler) prune(ctx context.Context, req reconcile.Request, deployment, configMap string) error {
	ofSite := []client.ListOption{client.InNamespace(req.Namespace), client.MatchingFields{ownerField: req.Name}}
	var deployments appsv1.DeploymentList
	if err := r.List(ctx, &deployments, ofSite...); err != nil {
		return err
	}
	var configMaps corev1.ConfigMapList
	if err := r.List(ctx, &configMaps, ofSite...); err != nil {
		return err
	}
	for i := range deployments.Items {
		if err := r.remove(ctx, &deployments.Items[i], deployment); err != nil {
			return err
		}
	}
	for i := range configMaps.Items {
		if err := r.remove(ctx, &configMaps.Items[i], configMap); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes an object unless it has the name to keep. It deletes the one that the
// cache knows, not one that took its name since.
func (r *reconciler) remove(ctx context.Context, obj client.Object, keep string) error {
	if obj.GetName() == keep {
		return nil
	}
	return client.IgnoreNotFound(r.Delete(ctx, obj, client.Preconditions{UID: new(obj.GetUID())}))
}
