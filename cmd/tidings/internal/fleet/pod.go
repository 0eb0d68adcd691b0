package fleet

import (
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newPod returns a pod of a replica set as its controller creates it: not yet on
// a node.
func newPod(rng *rand.Rand, set *appsv1.ReplicaSet) *corev1.Pod {
	template := set.Spec.Template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: set.Name + "-" + randomName(rng, 5),
			GenerateName:    set.Name + "-",
			Labels:          template.Labels,
			OwnerReferences: ownedBy("apps/v1", "ReplicaSet", set),
		},
		Spec:   template.Spec,
		Status: corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable},
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, tokenVolume(rng))
	return pod
}

// tokenVolume is what admission adds to every pod.
func tokenVolume(rng *rand.Rand) corev1.Volume {
	return corev1.Volume{
		Name: "kube-api-access-" + randomName(rng, 5),
		VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: new(int32(0o644)),
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
				}},
			},
		}},
	}
}

// schedule puts a pod on a node.
func schedule(pod *corev1.Pod, node string, now time.Time) {
	pod.Spec.NodeName = node
	setPodCondition(pod, corev1.PodScheduled, corev1.ConditionTrue, "", now)
}

// startContainers makes a pod that is on a node run.
func startContainers(rng *rand.Rand, pod *corev1.Pod, now time.Time) {
	pod.Status.Phase = corev1.PodRunning
	if pod.Status.PodIP == "" {
		pod.Status.PodIP = podIP(rng)
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
		pod.Status.StartTime = new(metav1.NewTime(now))
	}
	if len(pod.Status.ContainerStatuses) == 0 {
		for _, container := range pod.Spec.Containers {
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: container.Name, Image: container.Image,
				ImageID:     container.Image + "@" + imageID(rng),
				ContainerID: "containerd://" + imageID(rng)[len("sha256:"):],
			})
		}
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.Ready, status.Started = true, new(true)
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
	}
	setReady(pod, true, "", now)
}

// crash ends the containers of a pod with an exit code; they will be restarted.
func crash(pod *corev1.Pod, code int32, reason string, now time.Time) {
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		ended := &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(now), ContainerID: status.ContainerID}
		if status.State.Running != nil {
			ended.StartedAt = status.State.Running.StartedAt
		}
		status.Ready, status.Started = false, new(false)
		status.RestartCount++
		status.LastTerminationState = corev1.ContainerState{Terminated: ended}
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s restarting failed container"}}
	}
	setReady(pod, false, "ContainersNotReady", now)
}

func setReady(pod *corev1.Pod, ready bool, reason string, now time.Time) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	setPodCondition(pod, corev1.PodInitialized, corev1.ConditionTrue, "", now)
	setPodCondition(pod, corev1.ContainersReady, status, reason, now)
	setPodCondition(pod, corev1.PodReady, status, reason, now)
}

// setPodCondition sets a condition; its time changes only with its status.
func setPodCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason string, now time.Time) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == kind {
			if c.Status != status {
				c.Status, c.LastTransitionTime = status, metav1.NewTime(now)
			}
			c.Reason = reason
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(now),
	})
}
