package fleet

import (
	"cmp"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// reportStatus writes the sizes of the replica sets and the status of all parts.
func (f *Fleet) reportStatus(a *app, now time.Time) (bool, error) {
	current, ready := a.count(a.set)
	if wrote, err := f.updateSet(a.set, wanted(a.deployment), current, ready); wrote || err != nil {
		return wrote, err
	}
	for _, set := range a.old {
		pods, ready := a.count(set)
		if wrote, err := f.updateSet(set, pods, pods, ready); wrote || err != nil {
			return wrote, err
		}
	}
	all, ready := a.count(nil)
	status := appsv1.DeploymentStatus{
		ObservedGeneration: a.deployment.Generation, Replicas: all, UpdatedReplicas: current,
		ReadyReplicas: ready, AvailableReplicas: ready,
		UnavailableReplicas: max(0, wanted(a.deployment)-ready),
	}
	status.Conditions = conditions(a.deployment, status, now)
	if equality.Semantic.DeepEqual(status, a.deployment.Status) {
		return false, nil
	}
	return update(f, a.deployment, func(d *appsv1.Deployment) { d.Status = status })
}

// updateSet writes the size and the status of a replica set if they differ from those that it
// has.
func (f *Fleet) updateSet(set *appsv1.ReplicaSet, size, pods, ready int32) (bool, error) {
	status := appsv1.ReplicaSetStatus{
		ObservedGeneration: set.Generation, Replicas: pods, FullyLabeledReplicas: pods,
		ReadyReplicas: ready, AvailableReplicas: ready,
	}
	if *cmp.Or(set.Spec.Replicas, new(int32)) == size &&
		equality.Semantic.DeepEqual(status, set.Status) {
		return false, nil
	}
	return update(f, set, func(set *appsv1.ReplicaSet) {
		set.Spec.Replicas, set.Status = new(size), status
	})
}

// The reasons of a deployment's conditions, as Kubernetes writes them.
const (
	reasonAvailable   = "MinimumReplicasAvailable"
	reasonUnavailable = "MinimumReplicasUnavailable"
	reasonUpdated     = "ReplicaSetUpdated"
	reasonComplete    = "NewReplicaSetAvailable"
)

// conditions returns the conditions of a deployment that is to have a status. A rollout that was
// complete stays so until the next template.
func conditions(d *appsv1.Deployment, status appsv1.DeploymentStatus,
	now time.Time) []appsv1.DeploymentCondition {
	before := make(map[appsv1.DeploymentConditionType]appsv1.DeploymentCondition)
	for _, c := range d.Status.Conditions {
		before[c.Type] = c
	}
	available := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: reasonAvailable,
		Message: "Deployment has minimum availability.",
	}
	if status.AvailableReplicas < wanted(d)-maxUnavailable(d) {
		available.Status, available.Reason = corev1.ConditionFalse, reasonUnavailable
		available.Message = "Deployment does not have minimum availability."
	}
	progressing := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: reasonUpdated,
		Message: fmt.Sprintf("Deployment %q is progressing.", d.Name),
	}
	updated := status.Replicas == status.UpdatedReplicas
	complete := updated && status.Replicas == wanted(d) && status.AvailableReplicas == wanted(d)
	if complete || updated && before[progressing.Type].Reason == reasonComplete {
		progressing.Reason = reasonComplete
		progressing.Message = fmt.Sprintf("Deployment %q has successfully progressed.", d.Name)
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

// maxUnavailable returns how many pods of a deployment may be missing.
func maxUnavailable(d *appsv1.Deployment) int32 {
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return 0
	}
	limit := intstr.FromString("25%") // the default of Kubernetes
	if update := d.Spec.Strategy.RollingUpdate; update != nil && update.MaxUnavailable != nil {
		limit = *update.MaxUnavailable
	}
	missing, err := intstr.GetScaledValueFromIntOrPercent(&limit, int(wanted(d)), false)
	if err != nil {
		return 0 // the server does not validate it
	}
	return int32(min(max(0, missing), maxWanted))
}
