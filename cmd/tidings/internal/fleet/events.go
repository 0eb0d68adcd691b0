package fleet

import (
	"fmt"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// disturb makes a write that an application is then reconciled with. It reports whether there is
// one to make.
func (f *Fleet) disturb(a *app, now time.Time) (bool, error) {
	switch roll := f.rng.IntN(100); {
	case roll < 10 && a.database != nil:
		return true, update(f, &a.database, func(u *unstructured.Unstructured) {
			setPhase(u, "FailingOver", now)
		})
	case roll < 25 && !a.foreign:
		return true, update(f, &a.deployment, func(d *appsv1.Deployment) {
			next := revision(d) + 1
			d.Annotations[revisionAnnotation] = strconv.Itoa(next)
			d.Spec.Template.Spec.Containers[0].Image = image(d.Namespace, d.Name, next)
		})
	case roll < 45 && !a.foreign:
		return true, f.scale(a)
	case len(a.pods) == 0:
		return false, nil
	case roll < 75:
		return true, f.crash(a, now)
	default:
		return true, f.removePod(a, f.rng.IntN(len(a.pods)))
	}
}

// scale changes the size of an application by a few pods, towards the size of the whole fleet.
func (f *Fleet) scale(a *app) error {
	size := wanted(a.deployment) + 1 + f.rng.Int32N(3)
	if f.pods() >= f.o.Pods {
		size = max(1, wanted(a.deployment)-1-f.rng.Int32N(3))
	}
	if size == wanted(a.deployment) {
		size++
	}
	return update(f, &a.deployment, func(d *appsv1.Deployment) { d.Spec.Replicas = new(size) })
}

// crash ends the containers of a pod.
func (f *Fleet) crash(a *app, now time.Time) error {
	code, reason := int32(1), "Error"
	if f.rng.IntN(3) == 0 {
		code, reason = 137, "OOMKilled"
	}
	waiting := &corev1.ContainerStateWaiting{
		Reason: "CrashLoopBackOff", Message: "back-off 10s restarting failed container",
	}
	return update(f, &a.pods[f.rng.IntN(len(a.pods))], func(pod *corev1.Pod) {
		for i := range pod.Status.ContainerStatuses {
			status := &pod.Status.ContainerStatuses[i]
			ended := &corev1.ContainerStateTerminated{
				ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(now), ContainerID: status.ContainerID,
			}
			if status.State.Running != nil {
				ended.StartedAt = status.State.Running.StartedAt
			}
			status.Ready, status.Started = false, new(false)
			status.RestartCount++
			status.LastTerminationState = corev1.ContainerState{Terminated: ended}
			status.State = corev1.ContainerState{Waiting: waiting}
		}
		setReady(pod, corev1.ConditionFalse, "ContainersNotReady", now)
	})
}

// changeConfig changes one value of an application's configuration.
func (f *Fleet) changeConfig(a *app) error {
	key, value := "pool.size", strconv.Itoa(4+f.rng.IntN(60))
	switch old := a.config.Data; f.rng.IntN(4) {
	case 0:
		key, value = "log.level", "debug"
		if old[key] == value {
			value = "info"
		}
	case 1:
		key, value = "cache.ttl", strconv.Itoa(30+f.rng.IntN(300))+"s"
	case 2:
		key, value = "feature.new-menus", strconv.FormatBool(old["feature.new-menus"] == "false")
	}
	return update(f, &a.config, func(config *corev1.ConfigMap) {
		if config.Data == nil {
			config.Data = make(map[string]string)
		}
		config.Data[key] = value
	})
}

// heartbeat updates the conditions of a node.
func (f *Fleet) heartbeat(now time.Time) error {
	i := f.rng.IntN(len(f.nodes))
	err := update(f, &f.nodes[i], func(node *corev1.Node) { setHeartbeat(node, now) })
	if isConflict(err) {
		f.Touch("")
		return nil
	}
	return err
}

// schedule puts a pod on a node.
func schedule(pod *corev1.Pod, node string, now time.Time) {
	pod.Spec.NodeName = node
	setCondition(pod, corev1.PodScheduled, corev1.ConditionTrue, "", now)
}

// startContainers starts the containers of a pod that is on a node.
func (f *Fleet) startContainers(pod *corev1.Pod, now time.Time) {
	pod.Status.Phase = corev1.PodRunning
	if pod.Status.PodIP == "" {
		pod.Status.PodIP = fmt.Sprintf("10.%d.%d.%d", 64+f.rng.IntN(64), f.rng.IntN(256),
			2+f.rng.IntN(250))
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
		pod.Status.StartTime = new(metav1.NewTime(now))
	}
	if len(pod.Status.ContainerStatuses) == 0 {
		for _, container := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
				corev1.ContainerStatus{
					Name: container.Name, Image: container.Image,
					ImageID:     container.Image + "@" + imageID(f.rng),
					ContainerID: "containerd://" + imageID(f.rng)[len("sha256:"):],
				})
		}
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.Ready, status.Started = true, new(true)
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
	}
	setReady(pod, corev1.ConditionTrue, "", now)
}

func setReady(pod *corev1.Pod, ready corev1.ConditionStatus, reason string, now time.Time) {
	setCondition(pod, corev1.PodInitialized, corev1.ConditionTrue, "", now)
	setCondition(pod, corev1.ContainersReady, ready, reason, now)
	setCondition(pod, corev1.PodReady, ready, reason, now)
}

// setCondition sets a condition. Its time changes only with its status.
func setCondition(
	pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason string, now time.Time,
) {
	next := corev1.PodCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now)}
	for i, c := range pod.Status.Conditions {
		if c.Type != kind {
			continue
		}
		if c.Status == status {
			next.LastTransitionTime = c.LastTransitionTime
		}
		pod.Status.Conditions[i] = next
		return
	}
	pod.Status.Conditions = append(pod.Status.Conditions, next)
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
