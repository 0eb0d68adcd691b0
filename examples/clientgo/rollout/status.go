package rollout

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// reportSet writes into the status of a replica set what the caches say of its pods.
func (c *Controller) reportSet(ctx context.Context, set *appsv1.ReplicaSet, active []*corev1.Pod) error {
	status := set.Status.DeepCopy()
	status.ObservedGeneration = set.Generation
	status.Replicas = int32(len(active))
	status.ReadyReplicas, status.FullyLabeledReplicas = 0, 0
	template := labels.SelectorFromSet(set.Spec.Template.Labels)
	for _, pod := range active {
		if template.Matches(labels.Set(pod.Labels)) {
			status.FullyLabeledReplicas++
		}
		if ready(pod) {
			status.ReadyReplicas++
		}
	}
	status.AvailableReplicas = status.ReadyReplicas // minReadySeconds is not waited for
	if equality.Semantic.DeepEqual(*status, set.Status) {
		return nil
	}
	changed := set.DeepCopy()
	changed.Status = *status
	if _, err := c.client.AppsV1().ReplicaSets(set.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write its status: %w", err)
	}
	return nil
}

// reportDeployment writes into the status of a deployment what its replica sets say.
func (c *Controller) reportDeployment(ctx context.Context, d *appsv1.Deployment, newest *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) error {
	status := d.Status.DeepCopy()
	status.ObservedGeneration = d.Generation
	status.UpdatedReplicas = newest.Status.Replicas
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = 0, 0, 0
	for _, set := range append([]*appsv1.ReplicaSet{newest}, old...) {
		status.Replicas += set.Status.Replicas
		status.ReadyReplicas += set.Status.ReadyReplicas
		status.AvailableReplicas += set.Status.AvailableReplicas
	}
	status.UnavailableReplicas = max(0, wanted(d.Spec.Replicas)-status.AvailableReplicas)
	if equality.Semantic.DeepEqual(*status, d.Status) {
		return nil
	}
	changed := d.DeepCopy()
	changed.Status = *status
	if _, err := c.client.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write its status: %w", err)
	}
	return nil
}
