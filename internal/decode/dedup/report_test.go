package dedup

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func decodedPod(tb testing.TB, data []byte) any {
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(data); err != nil {
		tb.Error(err)
	}
	return pod
}

// reportPod changes a pod as a report of its kubelet does, and as most updates of a running
// pod do: a condition, a container status, the version and the time of its manager.
func reportPod(obj any, n int) {
	pod := obj.(*corev1.Pod)
	at := metav1.NewTime(time.Unix(1_770_000_000+int64(n), 0))
	pod.ResourceVersion = strconv.Itoa(50_000_000 + n)
	ready := &pod.Status.Conditions[2]
	ready.LastTransitionTime, ready.Status, ready.Reason = at, corev1.ConditionFalse, "ContainersNotReady"
	pod.Status.ContainerStatuses[0].RestartCount = int32(n)
	pod.ManagedFields[1].Time = &at
}

func decodedWidget(tb testing.TB, data []byte) any {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		tb.Fatal(err)
	}
	return u
}

// reportWidget changes a custom resource as its operator does.
func reportWidget(obj any, n int) {
	u := obj.(*unstructured.Unstructured)
	u.SetResourceVersion(strconv.Itoa(50_000_000 + n))
	status := u.Object["status"].(map[string]any)
	status["observedGeneration"] = int64(n)
	status["conditions"].([]any)[0].(map[string]any)["lastTransitionTime"] = time.Unix(1_770_000_000+int64(n), 0).UTC().Format(time.RFC3339)
}
