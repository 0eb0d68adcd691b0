package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// keepPods works on a replica set that is there; all are the pods of its namespace.
func (c *controller) keepPods(ctx context.Context, key cache.ObjectName, set *appsv1.ReplicaSet, all []*corev1.Pod) error {
	owned, claimed := c.claim(ctx, set, all)
	behind, err := c.isBehind(ctx, key, all)
	if err != nil {
		return errors.Join(claimed, err)
	}
	if behind {
		c.queue.AddAfter(key, settling) // in case that no event comes
		return claimed
	}
	active := slices.DeleteFunc(owned, func(pod *corev1.Pod) bool { return finished(pod) || pod.DeletionTimestamp != nil })
	missing := int(*set.Spec.Replicas) - len(active)
	if missing != 0 {
		c.queue.AddAfter(key, settling) // to see that it was done: answers may be wrong
	}
	return errors.Join(claimed, c.createPods(ctx, key, set, all, missing), c.deletePods(ctx, key, active, -missing),
		c.updateStatus(ctx, set, active))
}

// createPods creates pods under names that no cached pod has.
func (c *controller) createPods(ctx context.Context, key cache.ObjectName, set *appsv1.ReplicaSet, all []*corev1.Pod, count int) error {
	var failed []error
	for number := 0; count > 0; number++ {
		name := set.Name + "-" + strconv.Itoa(number)
		if slices.ContainsFunc(all, func(pod *corev1.Pod) bool { return pod.Name == name }) {
			continue
		}
		count--
		pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
		pod.Namespace, pod.Name = set.Namespace, name
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, setKind)}
		_, err := c.client.CoreV1().Pods(set.Namespace).Create(ctx, pod, metav1.CreateOptions{})
		c.wrote(key, name, "", err)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// deletePods deletes those pods first that are not ready, then the newest, then the last by
// name.
func (c *controller) deletePods(ctx context.Context, key cache.ObjectName, active []*corev1.Pod, count int) error {
	slices.SortFunc(active, func(a, b *corev1.Pod) int {
		return cmp.Or(
			strings.Compare(readiness(a), readiness(b)),
			b.CreationTimestamp.Time.Compare(a.CreationTimestamp.Time), strings.Compare(b.Name, a.Name))
	})
	var failed []error
	for _, pod := range active[:max(count, 0)] {
		err := c.deletePod(ctx, pod)
		c.wrote(key, pod.Name, pod.UID, err)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// readiness sorts pods that are not ready first.
func readiness(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return "ready"
		}
	}
	return ""
}

// updateStatus writes the counts of the pods into the status of a replica set.
func (c *controller) updateStatus(ctx context.Context, set *appsv1.ReplicaSet, active []*corev1.Pod) error {
	status := set.Status.DeepCopy()
	status.ObservedGeneration, status.Replicas, status.ReadyReplicas = set.Generation, int32(len(active)), 0
	for _, pod := range active {
		if readiness(pod) != "" {
			status.ReadyReplicas++
		}
	}
	if status.ObservedGeneration == set.Status.ObservedGeneration && status.Replicas == set.Status.Replicas && status.ReadyReplicas == set.Status.ReadyReplicas {
		return nil
	}
	changed := set.DeepCopy()
	changed.Status = *status
	_, err := c.client.AppsV1().ReplicaSets(set.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	return err
}

// write is a create or a delete of a pod that the cache does not show yet. A decision from a
// cache that lacks it would be made twice.
type write struct {
	deleted types.UID // of the deleted pod; "" is a create
	at      time.Time // zero if its outcome is unknown
}

// wrote keeps a write. After an error its outcome is unknown: the server will be asked.
func (c *controller) wrote(key cache.ObjectName, name string, deleted types.UID, err error) {
	w := write{deleted: deleted}
	if err == nil {
		w.at = time.Now()
	}
	if c.writes[key] == nil {
		c.writes[key] = map[string]write{}
	}
	c.writes[key][name] = w
}

// isBehind reports whether the cache, which has these pods, lacks a write, and forgets the
// other writes.
func (c *controller) isBehind(ctx context.Context, key cache.ObjectName, pods []*corev1.Pod) (bool, error) {
	behind := false
	for name, w := range c.writes[key] {
		var cached *corev1.Pod
		if i := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return pod.Name == name }); i >= 0 {
			cached = pods[i]
		}
		if !w.isShown(cached) && time.Since(w.at) < settling {
			behind = true
			continue
		}
		if !w.isShown(cached) {
			current, err := c.client.CoreV1().Pods(key.Namespace).Get(ctx, name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				current, err = nil, nil
			}
			if err != nil {
				return true, fmt.Errorf("read pod %s, which the cache does not show changed: %w", name, err)
			}
			if w.isShown(current) {
				behind = true
				continue
			}
		}
		delete(c.writes[key], name) // it is in the cache, or was not done, or was undone
	}
	return behind, nil
}

// isShown reports whether a pod, nil for a missing one, is in its state after the write.
func (w write) isShown(pod *corev1.Pod) bool {
	if w.deleted == "" {
		return pod != nil
	}
	return pod == nil || pod.UID != w.deleted || pod.DeletionTimestamp != nil
}
