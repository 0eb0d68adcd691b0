package fleet

import (
	"cmp"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// reasonComplete is Kubernetes' reason of a rollout that is complete.
const reasonComplete = "NewReplicaSetAvailable"

// conditions returns the conditions of a deployment for its next status. A complete rollout remains
// complete until the template changes.
func conditions(
	d *appsv1.Deployment, status appsv1.DeploymentStatus, now time.Time,
) []appsv1.DeploymentCondition {
	want := replicas(d.Spec.Replicas)
	before := make(map[appsv1.DeploymentConditionType]appsv1.DeploymentCondition)
	for _, c := range d.Status.Conditions {
		before[c.Type] = c
	}
	available := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable",
		Message: "Deployment has minimum availability.",
	}
	if status.AvailableReplicas < want-maxUnavailable(d) {
		available.Status, available.Reason = corev1.ConditionFalse, "MinimumReplicasUnavailable"
		available.Message = "Deployment does not have minimum availability."
	}
	progressing := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "ReplicaSetUpdated",
		Message: fmt.Sprintf("Deployment %q is progressing.", d.Name),
	}
	updated := status.Replicas == status.UpdatedReplicas
	complete := updated && status.Replicas == want && status.AvailableReplicas == want
	if complete || updated && before[progressing.Type].Reason == reasonComplete {
		progressing.Reason = reasonComplete
		progressing.Message = fmt.Sprintf("Deployment %q has successfully progressed.", d.Name)
	}
	if d.Spec.Paused {
		progressing.Status, progressing.Reason = corev1.ConditionUnknown, "DeploymentPaused"
		progressing.Message = "Deployment is paused"
	}
	next := []appsv1.DeploymentCondition{available, progressing}
	for i := range next {
		c, old := &next[i], before[next[i].Type]
		c.LastUpdateTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		if c.Status == old.Status {
			c.LastTransitionTime = old.LastTransitionTime
			if c.Reason == old.Reason {
				c.LastUpdateTime = old.LastUpdateTime
			}
		}
	}
	return next
}

// maxUnavailable returns the number of pods of a deployment that may be unavailable.
func maxUnavailable(d *appsv1.Deployment) int32 {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return 0
	}
	limit := intstr.FromString("25%") // the default of Kubernetes
	if update := d.Spec.Strategy.RollingUpdate; update != nil {
		limit = *cmp.Or(update.MaxUnavailable, &limit)
	}
	want := int(replicas(d.Spec.Replicas))
	missing, _ := intstr.GetScaledValueFromIntOrPercent(&limit, want, false) // 0 for an invalid limit
	return int32(min(max(0, missing), maxReplicasWanted))
}
