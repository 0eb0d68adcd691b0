package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// disturb makes a write that the fleet then reacts to: in the configuration of an idle deployment,
// or, unless enough deployments are busy, in something else of it. It reports whether it made one.
func (f *Fleet) disturb(config bool, now time.Time) (bool, error) {
	if !config && len(f.busy) >= maxBusy {
		return false, nil
	}
	apps, _, err := f.apps(f.namespaces[f.rng.IntN(len(f.namespaces))])
	apps = slices.DeleteFunc(apps, func(a *app) bool { return slices.Contains(f.busy, a.name()) })
	if err != nil || len(apps) == 0 {
		return false, err
	}
	a := apps[f.rng.IntN(len(apps))]
	if config {
		return f.changeConfig(a.deployment)
	}
	f.busy = append(f.busy, a.name())
	own := f.isOwn(a.deployment)
	switch roll := f.rng.IntN(100); {
	case roll < 5:
		database, err := f.database(a.deployment)
		if err != nil || database == nil {
			return false, err
		}
		return update(f, database, func(u *unstructured.Unstructured) {
			setPhase(u, "FailingOver", now)
		})
	case roll < 25 && own:
		return f.updateSpec(a.deployment, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = image(d.Namespace, d.Name, revision(d)+1)
		})
	case roll < 45 && own:
		return f.scale(a.deployment)
	case len(a.pods) == 0:
		return false, nil
	case roll < 75:
		return f.crash(a.pods[f.rng.IntN(len(a.pods))], now)
	default:
		return remove(f, a.pods[f.rng.IntN(len(a.pods))])
	}
}

// updateSpec changes the spec or the annotations of a deployment, which begins a generation.
func (f *Fleet) updateSpec(d *appsv1.Deployment, change func(*appsv1.Deployment)) (bool, error) {
	own := f.isOwn(d)
	wrote, err := update(f, d, change)
	if wrote && own {
		f.specs[d.UID] = d.Generation + 1
	}
	return wrote, err
}

// scale changes the size of a deployment by a few pods, towards the size of the whole fleet.
func (f *Fleet) scale(d *appsv1.Deployment) (bool, error) {
	size := wanted(d) + 1 + f.rng.Int32N(3)
	if f.server.Snapshot().Objects() >= f.size {
		size = max(1, wanted(d)-1-f.rng.Int32N(3))
	}
	if size == wanted(d) {
		size++
	}
	return f.updateSpec(d, func(d *appsv1.Deployment) { d.Spec.Replicas = new(size) })
}

// crash ends the containers of a pod.
func (f *Fleet) crash(pod *corev1.Pod, now time.Time) (bool, error) {
	return update(f, pod, func(pod *corev1.Pod) {
		for i := range pod.Status.ContainerStatuses {
			status := &pod.Status.ContainerStatuses[i]
			status.Ready, status.Started = false, new(false)
			status.RestartCount++
			status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: "CrashLoopBackOff", Message: "back-off 10s restarting failed container",
			}}
		}
		setReady(pod, corev1.ConditionFalse, "ContainersNotReady", now)
	})
}

// changeConfig changes one value of the configuration of a deployment.
func (f *Fleet) changeConfig(d *appsv1.Deployment) (bool, error) {
	config, err := get(f, f.templates.config, d.Namespace, d.Name)
	if err != nil || config == nil {
		return false, err
	}
	key, value := "pool.size", strconv.Itoa(4+f.rng.IntN(60))
	if f.rng.IntN(2) == 0 {
		key, value = "cache.ttl", strconv.Itoa(30+f.rng.IntN(300))+"s"
	}
	return update(f, config, func(config *corev1.ConfigMap) {
		if config.Data == nil {
			config.Data = make(map[string]string)
		}
		config.Data[key] = value
	})
}

// heartbeat updates the conditions of a node.
func (f *Fleet) heartbeat(now time.Time) error {
	node, err := get(f, f.templates.node, "", f.randomNode())
	if err != nil || node == nil {
		return err
	}
	_, err = update(f, node, func(node *corev1.Node) { setHeartbeat(node, now) })
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
		for _, c := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
				corev1.ContainerStatus{Name: c.Name, Image: c.Image})
		}
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.Ready, status.Started = true, new(true)
		status.State = corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)},
		}
	}
	setReady(pod, corev1.ConditionTrue, "", now)
}

func setReady(pod *corev1.Pod, ready corev1.ConditionStatus, reason string, now time.Time) {
	setCondition(pod, corev1.PodInitialized, corev1.ConditionTrue, "", now)
	setCondition(pod, corev1.ContainersReady, ready, reason, now)
	setCondition(pod, corev1.PodReady, ready, reason, now)
}

// setCondition sets a condition. Its time changes only with its status.
func setCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus,
	reason string, now time.Time) {
	next := corev1.PodCondition{
		Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now),
	}
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
