package rollout_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/examples/clientgo/rollout"
)

// loose returns a replica set of nobody that selects app=web.
func loose(replicas int32) *appsv1.ReplicaSet {
	chosen := map[string]string{"app": "web"}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "loose", Labels: chosen},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: chosen},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: chosen},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "v0"}}},
			},
		},
	}
}

func pod(name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "v0"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
}

// TestPodsAreAdopted gives a replica set a pod that was there, and one that comes later
// and is one too many.
func TestPodsAreAdopted(t *testing.T) {
	want := strings.Join([]string{
		"pod v0 of set v0, app=web: Running", "pod v0 of set v0, app=web: Running",
		"set v0 of nobody: 2 wanted, 2 pods, 2 labeled, 2 ready, 2 available, observed: true",
	}, "\n")
	inWorlds(t, func(w *world) {
		w.create(pod("early", map[string]string{"app": "web"}), loose(2))
		w.start()
		w.expect(want)
		if created, _ := w.count(); created != 1 {
			w.t.Errorf("it created %d pods beside the one that it adopted, want 1", created)
		}
		if owner := metav1.GetControllerOf(get[*corev1.Pod](w, podsResource, "early")); owner == nil || owner.Name != "loose" {
			w.t.Errorf("the pod that was there has the controller %v", owner)
		}
		w.create(pod("late", map[string]string{"app": "web"}))
		w.expect(want)
		if created, _ := w.count(); created != 1 {
			w.t.Errorf("it created %d pods, want no further one", created)
		}
	})
}

// TestSetsAreAdopted starts with a replica set of nobody: it is adopted as an old one,
// and drained.
func TestSetsAreAdopted(t *testing.T) {
	inWorlds(t, func(w *world) {
		w.create(loose(2), deployment("web", 3, "v1"))
		w.start()
		w.expect(steady(3, "v1", []string{"v0"}))
	})
}

// TestSetsAreReleased changes the labels of a replica set: it keeps its pods, and the
// deployment makes another of the template, under another name.
func TestSetsAreReleased(t *testing.T) {
	inWorlds(t, func(w *world) {
		w.create(deployment("web", 1, "v1"))
		w.start()
		w.expect(steady(1, "v1", nil))
		set := list[*appsv1.ReplicaSet](w, setsResource)[0]
		edit(w, setsResource, set.Name, func(set *appsv1.ReplicaSet) { set.Labels["app"] = "stray" })
		w.expect(steady(1, "v1", nil, "pod v1 of set v1, app=web: Running",
			"set v1 of nobody: 1 wanted, 1 pods, 1 labeled, 1 ready, 1 available, observed: true"))
	})
}

// TestFinishedPodsAreReplaced lets a pod fail: it stays, and another comes.
func TestFinishedPodsAreReplaced(t *testing.T) {
	inWorlds(t, func(w *world) {
		w.create(deployment("web", 2, "v1"))
		w.start()
		w.expect(steady(2, "v1", nil))
		edit(w, podsResource, w.anyPod(), func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Conditions = corev1.PodFailed, nil })
		w.expect(steady(2, "v1", nil, "pod v1 of set v1, app=web: Failed"))
	})
}

// TestOrphansAreDeleted starts with what a deployment and a replica set left that are gone.
func TestOrphansAreDeleted(t *testing.T) {
	inWorlds(t, func(w *world) {
		gone := deployment("web", 1, "v1")
		gone.UID = "gone"
		set := loose(1)
		set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(gone, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
		other := loose(1)
		other.Name, other.UID = "other", "gone too"
		left := pod("left", nil)
		left.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(other, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
		foreign := pod("foreign", nil)
		foreign.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(other, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
		w.create(set, left, foreign)
		w.start()
		w.expect("pod v0 of a StatefulSet that is gone, app=: Running")
	})
}

// TestBadSelectors shows that nothing is done for deployments whose selector cannot be
// meant, and that it is reported.
func TestBadSelectors(t *testing.T) {
	for problem, selector := range map[string]*metav1.LabelSelector{
		"is empty":       {},
		"cannot be read": {MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}},
		"does not match": {MatchLabels: map[string]string{"app": "other"}},
		"is missing":     nil,
	} {
		t.Run(problem, func(t *testing.T) {
			inWorlds(t, func(w *world) {
				bad := deployment("web", 1, "v1")
				bad.Spec.Selector = selector
				w.create(bad, deployment("good", 1, "v1"))
				w.start()
				time.Sleep(time.Minute)
				if sets := list[*appsv1.ReplicaSet](w, setsResource); len(sets) != 1 || metav1.GetControllerOf(sets[0]).Name != "good" {
					w.t.Errorf("there are %d replica sets, want that of the good deployment", len(sets))
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(w.errors) == 0 || !strings.Contains(w.errors[len(w.errors)-1].Error(), "deployment default/web, to be tried again: spec.selector") {
					w.t.Errorf("it reports %v, not the selector", w.errors)
				}
			})
		})
	}
}

// TestWorkersAreChecked gives New a number that makes no sense.
func TestWorkersAreChecked(t *testing.T) {
	server := apisim.Start(t)
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rollout.New(client, informers.NewSharedInformerFactory(client, 0), rollout.Options{Workers: -1}); err == nil {
		t.Error("a controller with -1 workers was made")
	}
}
