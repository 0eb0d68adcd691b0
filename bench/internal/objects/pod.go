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
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, GenerateName: w.name + "-" + w.hash + "-",
			Name: fmt.Sprintf("%s-%s-%s%d", w.name, w.hash, r.suffix(5), number%Replicas),
			UID:  r.uid(), ResourceVersion: Version(number), CreationTimestamp: created,
			Labels: w.labels(),
			Annotations: map[string]string{
				"prometheus.io/scrape": "true", "prometheus.io/port": "8080", "prometheus.io/path": "/metrics",
				"checksum/config": w.hex(64), "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
				"mesh.example.com/status": `{"revision":"2-19-4","containers":["proxy"],` +
					`"volumes":["config"],"inject":"` + w.hex(120) + `"}`,
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: w.name + "-" + w.hash, UID: w.set,
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
			ManagedFields: []metav1.ManagedFieldsEntry{
				managed("kube-controller-manager", "", created, podSpecFields),
				managed("kubelet", "status", after(created, 9), podStatusFields),
			},
		},
		Spec: w.spec(token),
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, StartTime: &created,
			PodIP: ip(number), PodIPs: []corev1.PodIP{{IP: ip(number)}},
			ContainerStatuses: []corev1.ContainerStatus{
				containerStatus(r, "app", w.image+":v1.27."+fmt.Sprint(w.number%10), created),
				containerStatus(r, "proxy", "registry.example.com/mesh/proxy:2.19.4", created),
			},
		},
	}
	node := r.IntN(1000)
	pod.Spec.NodeName = fmt.Sprintf("node-%d.eu-west-1.compute.internal", node)
	pod.Status.HostIP, pod.Status.HostIPs = ip(1<<21+node), []corev1.HostIP{{IP: ip(1<<21 + node)}}
	for i, condition := range []corev1.PodConditionType{corev1.PodReadyToStartContainers,
		corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: condition, Status: corev1.ConditionTrue, LastTransitionTime: after(created, i*2),
		})
	}
	return pod
}

func containerStatus(r random, name, image string, created metav1.Time) corev1.ContainerStatus {
	running := &corev1.ContainerStateRunning{StartedAt: after(created, 3)}
	return corev1.ContainerStatus{
		Name: name, Ready: true, Started: new(true), Image: image,
		ImageID:     image[:strings.LastIndexByte(image, ':')] + "@sha256:" + seeded(0, image, 0).hex(64),
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
