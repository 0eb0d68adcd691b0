package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

var setKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")

// reconcileSet brings the pods and the status of a replica set to where its spec wants
// them, or deletes the pods of one that is gone.
func (c *Controller) reconcileSet(ctx context.Context, key cache.ObjectName) error {
	set, err := c.sets.ReplicaSets(key.Namespace).Get(key.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	pods, listErr := c.pods.Pods(key.Namespace).List(labels.Everything())
	if listErr != nil {
		return listErr
	}
	var present types.UID
	if err == nil {
		present = set.UID
	}
	failed := []error{deleteOrphans(ctx, pods, key.Name, isSet, present, c.currentSet(key), c.client.CoreV1().Pods(key.Namespace).Delete,
		func() { c.setQueue.AddAfter(key, settling) })}
	switch {
	case err != nil:
		c.writes.forget(key)
	case set.DeletionTimestamp == nil:
		failed = append(failed, c.keepPods(ctx, key, set, pods))
	}
	return errors.Join(failed...)
}

// currentSet returns what reads a replica set from the server.
func (c *Controller) currentSet(key cache.ObjectName) func(context.Context) (metav1.Object, error) {
	return func(ctx context.Context) (metav1.Object, error) {
		return c.client.AppsV1().ReplicaSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	}
}

// keepPods works on a replica set that is there; all are the pods of its namespace.
func (c *Controller) keepPods(ctx context.Context, key cache.ObjectName, set *appsv1.ReplicaSet, all []*corev1.Pod) error {
	selector, err := selectorOf(set.Spec.Selector)
	if err != nil {
		return err
	}
	owned, claimed := claims[*corev1.Pod]{
		owner: set, kind: setKind, selector: selector, current: c.currentSet(key),
		patch: func(ctx context.Context, name string, data []byte) (*corev1.Pod, error) {
			return c.client.CoreV1().Pods(set.Namespace).Patch(ctx, name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
		},
	}.claim(ctx, slices.DeleteFunc(slices.Clone(all), func(pod *corev1.Pod) bool { return finished(pod) && metav1.GetControllerOf(pod) == nil }))
	behind, err := c.isBehind(ctx, key, all)
	if err != nil {
		return errors.Join(claimed, err)
	}
	if behind {
		c.setQueue.AddAfter(key, settling) // in case that no event comes
		return claimed
	}
	active := slices.DeleteFunc(slices.Clone(owned), func(pod *corev1.Pod) bool { return finished(pod) || pod.DeletionTimestamp != nil })
	missing := int(wanted(set.Spec.Replicas)) - len(active)
	if missing != 0 {
		c.setQueue.AddAfter(key, settling) // to see that it was done, whatever the answers say
	}
	scaled := error(nil)
	switch {
	case missing > 0:
		scaled = c.createPods(ctx, key, set, all, missing)
	case missing < 0:
		scaled = c.deletePods(ctx, key, active, -missing)
	}
	return errors.Join(claimed, scaled, c.reportSet(ctx, set, active))
}

// createPods creates pods under names that no pod of the cache has. If the server has
// one of that name all the same, the cache will know when this is tried again.
func (c *Controller) createPods(ctx context.Context, key cache.ObjectName, set *appsv1.ReplicaSet, all []*corev1.Pod, count int) error {
	taken := map[string]bool{}
	for _, pod := range all {
		taken[pod.Name] = true
	}
	done := c.writes.of(key)
	var failed []error
	for number := 0; count > 0; number++ {
		name := set.Name + "-" + strconv.Itoa(number)
		if taken[name] {
			continue
		}
		count--
		_, err := c.client.CoreV1().Pods(set.Namespace).Create(ctx, podFor(set, name), metav1.CreateOptions{})
		if tried(done, name, write{}, err); err != nil {
			failed = append(failed, fmt.Errorf("create pod %s: %w", name, err))
		}
	}
	return errors.Join(failed...)
}

// deletePods deletes the pods that are missed the least: those that are not ready,
// then the newest, then the last by name.
func (c *Controller) deletePods(ctx context.Context, key cache.ObjectName, active []*corev1.Pod, count int) error {
	slices.SortFunc(active, func(a, b *corev1.Pod) int {
		if ready(a) != ready(b) {
			return cmp.Compare(rank(a), rank(b))
		}
		if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
			return b.CreationTimestamp.Time.Compare(a.CreationTimestamp.Time)
		}
		return strings.Compare(b.Name, a.Name)
	})
	done := c.writes.of(key)
	var failed []error
	for _, pod := range active[:count] {
		err := deleteOne(ctx, pod, c.client.CoreV1().Pods(pod.Namespace).Delete)
		tried(done, pod.Name, write{deleted: pod.UID}, err)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// rank is the place of a pod among those that are to be deleted.
func rank(pod *corev1.Pod) int {
	if ready(pod) {
		return 1
	}
	return 0
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}
