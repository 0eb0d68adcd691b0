package fleet

import (
	"cmp"
	"context"
	"errors"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/objects"
)

func (c *cluster) newReplicaSets() (controller.Runner, error) {
	return controller.New(c.sets, options[*appsv1.ReplicaSet](c, "replicasets",
		controller.Owns(c.pods), orphans(c.deployments, c.sets)), c.reconcileReplicaSet)
}

// reconcileReplicaSet creates the missing pods of a replica set, or deletes surplus ones, and
// writes its status. It deletes a replica set whose deployment is gone.
func (c *cluster) reconcileReplicaSet(
	ctx context.Context, r controller.Request[*appsv1.ReplicaSet],
) (done controller.Result, err error) {
	if !isAlive(r) {
		return done, nil
	}
	isGarbage, err := isOrphan(ctx, c, r.Object, c.deployments, "Deployment", "deployments")
	if err != nil {
		return done, err
	}
	if isGarbage {
		client := c.appsV1.ReplicaSets(r.Namespace())
		return done, remove(ctx, client, r.Object, metav1.DeleteOptions{})
	}
	set, status := r.Object, appsv1.ReplicaSetStatus{ObservedGeneration: r.Object.Generation}
	var pods []*corev1.Pod
	for _, pod := range controller.Read(ctx, c.pods).Namespace(set.Namespace).Controlled(set.UID) {
		if pod.DeletionTimestamp != nil {
			continue
		}
		pods = append(pods, pod)
		status.Replicas++
		if isReady(pod) {
			status.ReadyReplicas++
		}
	}
	status.FullyLabeledReplicas, status.AvailableReplicas = status.Replicas, status.ReadyReplicas
	err = c.fitSize(ctx, set, pods)
	_, statusErr := objects.UpdateStatus(ctx, c.appsV1.ReplicaSets(set.Namespace), set,
		func(set *appsv1.ReplicaSet) { set.Status = status })
	return done, errors.Join(err, statusErr)
}

// fitSize creates or deletes pods of a replica set. It deletes first the pods that are not ready,
// and then the newest.
func (c *cluster) fitSize(
	ctx context.Context, set *appsv1.ReplicaSet, pods []*corev1.Pod,
) error {
	client, want := c.coreV1.Pods(set.Namespace), int(replicas(set.Spec.Replicas))
	for range want - len(pods) {
		if _, err := client.Create(ctx, newPod(set), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		switch {
		case isReady(a) == isReady(b):
			return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
				cmp.Compare(a.Name, b.Name))
		case isReady(b):
			return -1
		}
		return 1
	})
	for _, pod := range pods[:max(0, len(pods)-want)] {
		if err := remove(ctx, client, pod, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return nil
}
