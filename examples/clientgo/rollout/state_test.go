package rollout_test

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

// deployment returns a deployment whose pods have an image.
func deployment(name string, replicas int32, image string) *appsv1.Deployment {
	chosen := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: chosen},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: chosen},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
			},
		},
	}
}

// state says what the server has, a line for each kind of object that is alike, sorted,
// but for the names of replica sets and pods: they depend on the order of events.
func (w *world) state() string {
	var lines []string
	owners := map[types.UID]string{}
	ownedBy := func(obj metav1.Object) string {
		owner := metav1.GetControllerOf(obj)
		switch {
		case owner == nil:
			return "of nobody"
		case owners[owner.UID] == "":
			return "of a " + owner.Kind + " that is gone"
		}
		return "of " + owners[owner.UID]
	}
	for _, d := range list[*appsv1.Deployment](w, deploymentsResource) {
		owners[d.UID] = d.Name
		s := d.Status
		lines = append(lines, fmt.Sprintf("deployment %s %s: %d pods, %d of the template, %d ready, %d available, %d not, observed: %t", d.Name, image(d.Spec.Template.Spec),
			s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas, s.ObservedGeneration == d.Generation))
	}
	for _, set := range list[*appsv1.ReplicaSet](w, setsResource) {
		if w.lossy && *set.Spec.Replicas == 0 && set.Status.Replicas == 0 {
			owners[set.UID] = "an empty set"
			continue
		}
		name := "set " + image(set.Spec.Template.Spec)
		s := set.Status
		lines = append(lines, fmt.Sprintf("%s %s: %d wanted, %d pods, %d labeled, %d ready, %d available, observed: %t", name, ownedBy(set),
			*set.Spec.Replicas, s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas, s.ObservedGeneration == set.Generation))
		owners[set.UID] = name
	}
	for _, pod := range list[*corev1.Pod](w, podsResource) {
		lines = append(lines, fmt.Sprintf("pod %s %s, app=%s: %s", image(pod.Spec), ownedBy(pod), pod.Labels["app"], pod.Status.Phase))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func image(spec corev1.PodSpec) string {
	var images []string
	for _, container := range spec.Containers {
		images = append(images, container.Image)
	}
	return strings.Join(images, ",")
}

// steady returns the state of a deployment named web that is done, with empty replica
// sets of old images, and with further lines.
func steady(replicas int, image string, old []string, further ...string) string {
	lines := append(further,
		fmt.Sprintf("deployment web %s: %d pods, %[2]d of the template, %[2]d ready, %[2]d available, 0 not, observed: true", image, replicas),
		fmt.Sprintf("set %s of web: %d wanted, %[2]d pods, %[2]d labeled, %[2]d ready, %[2]d available, observed: true", image, replicas))
	for _, other := range old {
		lines = append(lines, fmt.Sprintf("set %s of web: 0 wanted, 0 pods, 0 labeled, 0 ready, 0 available, observed: true", other))
	}
	for range replicas {
		lines = append(lines, fmt.Sprintf("pod %s of set %[1]s, app=web: Running", image))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// expect waits for a state, and that nobody writes in it any more.
func (w *world) expect(want string) {
	w.t.Helper()
	begun := time.Now()
	for got := w.state(); got != want; got = w.state() {
		if time.Since(begun) > patience {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.t.Fatalf("after %v there is\n%s\nnot\n%s\nthe newest errors are %v\nthe newest requests\n%v", patience, got, want, w.errors, tail(w))
		}
		time.Sleep(time.Second)
	}
	time.Sleep(2 * time.Second) // what it has just seen
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
