package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// replicaSet returns a replica set named web.
func replicaSet(replicas int32) *appsv1.ReplicaSet {
	chosen := map[string]string{"app": "web"}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: chosen},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: chosen},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: chosen}, Spec: pod("", "").Spec,
			},
		},
	}
}

func pod(name, app string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "v1"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// state describes the objects on the server, a line for each, sorted, without the names of
// pods, which depend on the order of events.
func (w *world) state() string {
	var lines []string
	sets := map[types.UID]bool{}
	for _, set := range list[*appsv1.ReplicaSet](w, setsResource) {
		sets[set.UID] = true
		s := set.Status
		lines = append(lines, fmt.Sprintf("set %s: %d wanted, %d pods, %d ready, observed: %t", set.Name,
			*set.Spec.Replicas, s.Replicas, s.ReadyReplicas, s.ObservedGeneration == set.Generation))
	}
	for _, pod := range list[*corev1.Pod](w, podsResource) {
		of := "of nobody"
		if owner := metav1.GetControllerOf(pod); owner != nil {
			of = "of " + owner.Kind + " " + owner.Name
			if !sets[owner.UID] {
				of += ", which is gone"
			}
		}
		lines = append(lines, fmt.Sprintf("pod %s, app=%s: %s", of, pod.Labels["app"], pod.Status.Phase))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// steady returns the state of a replica set named web that needs no more work, with further
// lines.
func steady(replicas int, further ...string) string {
	lines := append(further, fmt.Sprintf("set web: %d wanted, %[1]d pods, %[1]d ready, observed: true", replicas))
	for range replicas {
		lines = append(lines, "pod of ReplicaSet web, app=web: Running")
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// expect waits for a state, and checks that the controller writes no more in it.
func (w *world) expect(want string) {
	w.t.Helper()
	begun := time.Now()
	for got := w.state(); got != want; got = w.state() {
		if time.Since(begun) > maxWait {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.t.Fatalf("after %v there is\n%s\nnot\n%s\nthe newest errors are %v\nthe newest requests\n%v", maxWait, got, want, w.errors, tail(w))
		}
		time.Sleep(time.Second)
	}
	time.Sleep(2 * time.Second) // for the last events
	_, before := w.count()
	time.Sleep(2 * time.Minute)
	if got := w.state(); got != want {
		w.t.Fatalf("it did not last: there is\n%s\nnot\n%s", got, want)
	}
	if _, after := w.count(); after != before {
		w.t.Errorf("the controller wrote %d times where nothing was left to do\n%v", after-before, tail(w))
	}
}

// tail returns the newest requests.
func tail(w *world) fmt.Stringer {
	all := w.server.Requests()
	return all[max(0, len(all)-40):]
}
