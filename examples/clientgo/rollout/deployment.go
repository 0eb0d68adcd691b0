package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

var deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")

// reconcileDeployment brings the replica sets and the status of a deployment to where
// its spec wants them, or deletes the replica sets of one that is gone.
func (c *Controller) reconcileDeployment(ctx context.Context, key cache.ObjectName) error {
	d, err := c.deployments.Deployments(key.Namespace).Get(key.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	sets, listErr := c.sets.ReplicaSets(key.Namespace).List(labels.Everything())
	if listErr != nil {
		return listErr
	}
	var present types.UID
	if err == nil {
		present = d.UID
	}
	orphaned := deleteOrphans(ctx, sets, key.Name, isDeployment, present, c.currentDeployment(key), c.client.AppsV1().ReplicaSets(key.Namespace).Delete,
		func() { c.deploymentQueue.AddAfter(key, settling) })
	if err != nil || d.DeletionTimestamp != nil {
		return orphaned
	}
	return errors.Join(orphaned, c.rollOut(ctx, d, sets))
}

// currentDeployment returns what reads a deployment from the server.
func (c *Controller) currentDeployment(key cache.ObjectName) func(context.Context) (metav1.Object, error) {
	return func(ctx context.Context) (metav1.Object, error) {
		return c.client.AppsV1().Deployments(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	}
}

// rollOut works on a deployment that is there; all are the sets of its namespace.
func (c *Controller) rollOut(ctx context.Context, d *appsv1.Deployment, all []*appsv1.ReplicaSet) error {
	selector, err := selectorOf(d.Spec.Selector)
	if err != nil {
		return err
	}
	if !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
		return fmt.Errorf("spec.selector does not match the labels of spec.template: its pods would not be its own")
	}
	hash, err := hashOf(&d.Spec.Template)
	if err != nil {
		return err
	}
	owned, claimed := claims[*appsv1.ReplicaSet]{
		owner: d, kind: deploymentKind, selector: selector, current: c.currentDeployment(nameOf(d)),
		patch: func(ctx context.Context, name string, data []byte) (*appsv1.ReplicaSet, error) {
			return c.client.AppsV1().ReplicaSets(d.Namespace).Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
		},
	}.claim(ctx, all)
	newest, err := c.newestSet(ctx, d, owned, all, hash)
	if err != nil {
		return errors.Join(claimed, err)
	}
	old := slices.DeleteFunc(owned, func(set *appsv1.ReplicaSet) bool { return set.UID == newest.UID })
	return errors.Join(claimed, c.scaleSets(ctx, d, newest, old), c.reportDeployment(ctx, d, newest, old))
}

// newestSet returns the replica set of the present template, which it creates if it
// is not there, under a name that no set of the cache has: one that was released may
// have kept the first choice.
func (c *Controller) newestSet(ctx context.Context, d *appsv1.Deployment, owned, all []*appsv1.ReplicaSet, hash string) (*appsv1.ReplicaSet, error) {
	// Of two of a template, which adoption can bring about, it is always the same one.
	var present *appsv1.ReplicaSet
	for _, set := range owned {
		if set.Labels[hashLabel] == hash && (present == nil || byAge(set, present) > 0) {
			present = set
		}
	}
	if present != nil {
		return present, nil
	}
	set := setFor(d, hash)
	if err := c.isMade(ctx, d, set); err != nil {
		return nil, err
	}
	taken := func(other *appsv1.ReplicaSet) bool { return other.Name == set.Name }
	for number := 1; slices.ContainsFunc(all, taken); number++ {
		set.Name = fmt.Sprintf("%s-%s-%d", d.Name, hash, number)
	}
	created, err := c.client.AppsV1().ReplicaSets(d.Namespace).Create(ctx, set, metav1.CreateOptions{})
	if err != nil {
		// If it is there already, the cache will have it when this is tried again.
		return nil, fmt.Errorf("create its replica set: %w", err)
	}
	return created, nil
}

// isMade returns an error if the server has a replica set of the template, which the
// cache lacks: under another name it would be created twice.
func (c *Controller) isMade(ctx context.Context, d *appsv1.Deployment, set *appsv1.ReplicaSet) error {
	present, err := c.client.AppsV1().ReplicaSets(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: labels.SelectorFromSet(set.Labels).String()})
	if err != nil {
		return fmt.Errorf("look whether it has a replica set: %w", err)
	}
	for i := range present.Items {
		if metav1.IsControlledBy(&present.Items[i], d) {
			return fmt.Errorf("the cache lacks its replica set %s, which is there", present.Items[i].Name)
		}
	}
	return nil
}

// scaleSets gives the newest replica set what is wanted, and the old ones together
// what the newest has not ready, the youngest of them first.
func (c *Controller) scaleSets(ctx context.Context, d *appsv1.Deployment, newest *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) error {
	all := wanted(d.Spec.Replicas)
	failed := []error{c.scaleSet(ctx, newest, all)}
	slices.SortFunc(old, byAge)
	left := all
	if newest.Status.ObservedGeneration >= newest.Generation {
		left = max(0, all-newest.Status.ReadyReplicas) // else the pods it speaks of may be deleted by now
	}
	for _, set := range old {
		keeps := min(left, wanted(set.Spec.Replicas))
		left -= keeps
		failed = append(failed, c.scaleSet(ctx, set, keeps))
	}
	return errors.Join(failed...)
}

// byAge orders replica sets, the youngest first.
func byAge(a, b *appsv1.ReplicaSet) int {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return b.CreationTimestamp.Time.Compare(a.CreationTimestamp.Time)
	}
	return strings.Compare(b.Name, a.Name)
}

func (c *Controller) scaleSet(ctx context.Context, set *appsv1.ReplicaSet, replicas int32) error {
	if set.DeletionTimestamp != nil || set.Spec.Replicas != nil && *set.Spec.Replicas == replicas {
		return nil
	}
	changed := set.DeepCopy()
	changed.Spec.Replicas = &replicas
	if _, err := c.client.AppsV1().ReplicaSets(set.Namespace).Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("scale replica set %s to %d: %w", set.Name, replicas, err)
	}
	return nil
}
