package rollout

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// step is a change by a user, and the state that it leads to.
type step struct {
	name   string
	change func(w *world)
	want   string
	limit  int // of pods, meanwhile
	least  int // of ready pods, meanwhile
}

// stray is the pod that scenario takes away from its replica set.
const stray = "pod of nobody, app=stray: Running"

// podsOfScenario is the number of pods that the controller has to create in scenario: 3, 2 more,
// one for the deleted pod, one for the stray pod, and 3 for the second set.
const podsOfScenario = 10

// scenario is the life of a replica set.
func scenario() []step {
	scaled := func(replicas int32) func(w *world) {
		return func(w *world) {
			edit(w, setsResource, "web", func(set *appsv1.ReplicaSet) { set.Spec.Replicas = &replicas })
		}
	}
	return []step{
		{"create", func(w *world) { w.create(replicaSet(3)); w.start() }, steady(3), 3, 0},
		{"scale up", scaled(5), steady(5), 5, 3},
		{"delete a pod", func(w *world) { w.delete(podsResource, w.anyPod()) }, steady(5), 5, 4},
		{"take a pod away", func(w *world) {
			edit(w, podsResource, w.anyPod(), func(pod *corev1.Pod) { pod.Labels["app"] = "stray" })
		}, steady(5, stray), 5, 4},
		{"scale down", scaled(2), steady(2, stray), 5, 2},
		{"add a pod", func(w *world) { w.create(pod("late", "web")) }, steady(2, stray), 3, 2},
		{"delete", func(w *world) { w.delete(setsResource, "web") }, stray, 2, 0},
		{"create again", func(w *world) { w.create(replicaSet(3)) }, steady(3, stray), 3, 0},
	}
}

// anyPod returns the name of the first pod that has a controller.
func (w *world) anyPod() string {
	w.t.Helper()
	pods := list[*corev1.Pod](w, podsResource)
	i := slices.IndexFunc(pods, func(pod *corev1.Pod) bool { return metav1.GetControllerOf(pod) != nil })
	if i < 0 {
		w.t.Fatal("there is no pod of a replica set")
	}
	return pods[i].Name
}

func TestLifeOfAReplicaSet(t *testing.T) {
	inWorlds(t, []string{"client-go", "tidings"}, func(w *world) {
		for _, step := range scenario() {
			w.bounds(step.limit, step.least)
			step.change(w)
			begun := time.Now()
			w.expect(step.want)
			if took := time.Since(begun); took > 3*time.Minute {
				w.t.Errorf("%s: it took %v", step.name, took)
			}
		}
		if created, _ := w.count(); created != podsOfScenario {
			w.t.Errorf("the controller created %d pods, want %d", created, podsOfScenario)
		}
	})
}
