package objects

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pod returns the pod of a number: replica number%40 of workload number/40.
func Pod(number int) *corev1.Pod {
	w := workloadOf(number / Replicas)
	r := randomOf("pod", number)
	created := r.time()
	token := "kube-api-access-" + r.suffix(5)
	pod := template().pod.DeepCopy()
	pod.Namespace, pod.GenerateName = w.namespace, w.set.Name+"-"
	pod.Name = fmt.Sprintf("%s-%s%d", w.set.Name, r.suffix(5), number%Replicas)
	pod.UID, pod.ResourceVersion, pod.CreationTimestamp = r.uid(), Version(number), created
	pod.Labels = w.labels()
	pod.Annotations["checksum/config"] = w.hex(64)
	pod.Annotations["mesh.example.com/status"] = `{"revision":"2-19-4","containers":["proxy"],` +
		`"volumes":["config"],"inject":"` + w.hex(120) + `"}`
	pod.OwnerReferences = []metav1.OwnerReference{w.set}
	pod.ManagedFields = managed(pod.ManagedFields, created, 9)
	pod.Spec = w.spec(token)
	host := r.IntN(1000)
	pod.Spec.NodeName = Node(host)
	status := &pod.Status
	status.StartTime = &created
	status.PodIP, status.PodIPs = ip(number), []corev1.PodIP{{IP: ip(number)}}
	status.HostIP, status.HostIPs = ip(1<<21+host), []corev1.HostIP{{IP: ip(1<<21 + host)}}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses,
			containerStatus(r, c.Name, c.Image, created))
	}
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = after(created, i*2)
	}
	return pod
}

func containerStatus(r random, name, image string, created metav1.Time) corev1.ContainerStatus {
	running := &corev1.ContainerStateRunning{StartedAt: after(created, 3)}
	return corev1.ContainerStatus{
		Name: name, Ready: true, Started: new(true), Image: image,
		ImageID: image[:strings.LastIndexByte(image, ':')] + "@sha256:" +
			seeded(0, image, 0).hex(64),
		ContainerID: "containerd://" + r.hex(64),
		State:       corev1.ContainerState{Running: running},
	}
}

// Next returns a new state of a pod, which differs in its version. It shares the rest with
// pod, which is not written to.
func Next(pod *corev1.Pod, version string) *corev1.Pod {
	next := *pod
	next.ResourceVersion = version
	return &next
}

// Heartbeat changes an object as a manager that only reports that it is alive: the time of its
// entry among the managed fields, and a condition's time of a pod.
func Heartbeat(o Object, update int) {
	later := metav1.NewTime(epoch.Add(300*24*time.Hour + time.Duration(update)*time.Second))
	managers := o.GetManagedFields()
	managers[len(managers)-1].Time = &later
	o.SetManagedFields(managers)
	if pod, ok := o.(*corev1.Pod); ok {
		pod.Status.Conditions[2].LastTransitionTime = later
	}
}

// Renamed returns a pod like another one under a name and a UID of its own. It shares the
// rest with pod, which is not written to.
func Renamed(pod *corev1.Pod, name, version string) *corev1.Pod {
	next := *pod
	next.Name, next.UID, next.ResourceVersion = name, types.UID("uid-"+name), version
	return &next
}
