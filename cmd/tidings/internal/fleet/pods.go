package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/objects"
)

// startTime is the time in which the containers of a pod start.
const startTime = 150 * time.Millisecond

// kubelet acts as the scheduler and as the kubelet of all nodes.
type kubelet struct {
	*cluster
	starts sync.Map // time at which the containers of a pod have started, by UID
}

func (c *cluster) newPods() (controller.Runner, error) {
	k := &kubelet{cluster: c}
	return controller.New(c.pods, options[*corev1.Pod](c, "pods", controller.Reads(c.nodes),
		orphans(c.sets, c.pods)), k.reconcile)
}

// reconcile binds a pod to a node, starts its containers, or finishes its deletion. It deletes a pod
// whose replica set is gone.
func (k *kubelet) reconcile(
	ctx context.Context, r controller.Request[*corev1.Pod],
) (done controller.Result, err error) {
	pod, client := r.Object, k.coreV1.Pods(r.Namespace())
	switch {
	case r.Gone:
		k.starts.Delete(r.Last.UID)
		return done, nil
	case pod.DeletionTimestamp != nil:
		return done, remove(ctx, client, pod, *metav1.NewDeleteOptions(0)) // the grace period ends
	}
	isGarbage, err := isOrphan(ctx, k.cluster, pod, k.sets, "ReplicaSet", "replicasets")
	switch {
	case err != nil:
		return done, err
	case isGarbage:
		return done, remove(ctx, client, pod, metav1.DeleteOptions{})
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return done, nil
	case pod.Spec.NodeName == "":
		return done, k.schedule(ctx, pod)
	case isReady(pod):
		k.starts.Delete(pod.UID)
		return done, nil
	}
	starts, _ := k.starts.LoadOrStore(pod.UID, time.Now().Add(startTime))
	if left := time.Until(starts.(time.Time)); left > 0 {
		return controller.Result{RequeueAfter: left}, nil
	}
	_, err = objects.UpdateStatus(ctx, client, pod, func(pod *corev1.Pod) {
		startContainers(pod, rand.Uint32(), time.Now())
	})
	return done, err
}

// schedule binds a pod to any node that takes pods.
func (k *kubelet) schedule(ctx context.Context, pod *corev1.Pod) error {
	chosen, choices := "", 0
	for name, node := range controller.Read(ctx, k.nodes).All() {
		if node.Spec.Unschedulable || node.DeletionTimestamp != nil {
			continue
		}
		if choices++; rand.IntN(choices) == 0 {
			chosen = name
		}
	}
	if choices == 0 {
		return errors.New("no node takes pods")
	}
	return k.coreV1.Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: chosen},
	}, metav1.CreateOptions{})
}

// startContainers starts the containers of a pod that is on a node. address is any number, for the
// IP address.
func startContainers(pod *corev1.Pod, address uint32, now time.Time) {
	status := &pod.Status
	status.Phase = corev1.PodRunning
	if status.PodIP == "" {
		status.PodIP = fmt.Sprintf("10.%d.%d.%d", 64+address>>16%64, address>>8%256, 2+address%250)
		status.PodIPs = []corev1.PodIP{{IP: status.PodIP}}
		status.StartTime = new(metav1.NewTime(now))
		setCondition(pod, corev1.PodInitialized, corev1.ConditionTrue, now)
	}
	if len(status.ContainerStatuses) == 0 {
		for _, c := range pod.Spec.Containers {
			status.ContainerStatuses = append(status.ContainerStatuses,
				corev1.ContainerStatus{Name: c.Name, Image: c.Image})
		}
	}
	setContainers(pod, corev1.ConditionTrue, now, corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)},
	})
}

func crash(pod *corev1.Pod, now time.Time) {
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].RestartCount++
	}
	setContainers(pod, corev1.ConditionFalse, now, corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff", Message: "back-off 10s restarting failed container",
		},
	})
}

// setContainers sets the state of the containers of a pod, and the conditions that follow from it.
func setContainers(
	pod *corev1.Pod, ready corev1.ConditionStatus, now time.Time, state corev1.ContainerState,
) {
	for i := range pod.Status.ContainerStatuses {
		status, run := &pod.Status.ContainerStatuses[i], ready == corev1.ConditionTrue
		status.Ready, status.Started, status.State = run, &run, state
	}
	setCondition(pod, corev1.ContainersReady, ready, now)
	setCondition(pod, corev1.PodReady, ready, now)
}

// setCondition sets a condition to a new status, with now as the time of the transition.
func setCondition(
	pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, now time.Time,
) {
	next := corev1.PodCondition{
		Type: kind, Status: status, LastTransitionTime: metav1.NewTime(now),
	}
	if i := conditionAt(pod, kind); i >= 0 {
		pod.Status.Conditions[i] = next
	} else {
		pod.Status.Conditions = append(pod.Status.Conditions, next)
	}
}

// conditionAt returns the index of a condition, -1 if there is none.
func conditionAt(pod *corev1.Pod, kind corev1.PodConditionType) int {
	return slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == kind
	})
}

// isReady reports whether the containers of a pod run.
func isReady(pod *corev1.Pod) bool {
	i := conditionAt(pod, corev1.PodReady)
	return i >= 0 && pod.Status.Conditions[i].Status == corev1.ConditionTrue
}
