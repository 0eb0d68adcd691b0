package rollout_test

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// step is a change by a user, and what becomes of it.
type step struct {
	name   string
	change func(w *world)
	want   string
	limit  int // of pods of a replica set, meanwhile
	least  int // of ready pods, meanwhile
}

// stray is the pod that scenario takes away from its replica set.
const stray = "pod v2 of nobody, app=stray: Running"

// madeByScenario is how many pods the controller has to create in scenario, no more
// and no less: 3, 2 more, 5 of the second template, the deleted one, the stray one's
// replacement, and 2 of the first template again.
const madeByScenario = 14

// scenario is the life of a deployment.
func scenario() []step {
	wants := func(change func(d *appsv1.Deployment)) func(w *world) {
		return func(w *world) { edit(w, deploymentsResource, "web", change) }
	}
	scaled := func(replicas int32) func(w *world) {
		return wants(func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
	}
	templated := func(image string) func(w *world) {
		return wants(func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = image })
	}
	return []step{
		{"create", func(w *world) { w.create(deployment("web", 3, "v1")); w.start() }, steady(3, "v1", nil), 3, 0},
		{"scale up", scaled(5), steady(5, "v1", nil), 5, 3},
		{"new template", templated("v2"), steady(5, "v2", []string{"v1"}), 5, 5},
		{"delete a pod", func(w *world) { w.delete(podsResource, w.anyPod()) }, steady(5, "v2", []string{"v1"}), 5, 4},
		{"take a pod away", func(w *world) {
			edit(w, podsResource, w.anyPod(), func(pod *corev1.Pod) { pod.Labels["app"] = "stray" })
		}, steady(5, "v2", []string{"v1"}, stray), 5, 4},
		{"scale down", scaled(2), steady(2, "v2", []string{"v1"}, stray), 5, 2},
		{"old template", templated("v1"), steady(2, "v1", []string{"v2"}, stray), 2, 2},
		{"delete", func(w *world) { w.delete(deploymentsResource, "web") }, stray, 2, 0},
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

func TestLifeOfADeployment(t *testing.T) {
	inWorlds(t, func(w *world) {
		for _, step := range scenario() {
			w.bounds(step.limit, step.least)
			step.change(w)
			begun := time.Now()
			w.expect(step.want)
			if took := time.Since(begun); took > 3*time.Minute {
				w.t.Errorf("%s: it took %v", step.name, took)
			}
		}
		if created, _ := w.count(); created != madeByScenario {
			w.t.Errorf("the controller created %d pods, want %d", created, madeByScenario)
		}
	})
}
