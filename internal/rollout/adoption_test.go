package rollout

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPodsAreAdopted: a replica set adopts a pod that was there, one that comes later and is
// one too many, and none that has failed.
func TestPodsAreAdopted(t *testing.T) {
	inWorlds(t, func(w *world) {
		w.create(pod("early", "web"), replicaSet(2))
		w.start()
		w.expect(steady(2))
		w.create(pod("late", "web"))
		w.expect(steady(2))
		if created, _ := w.count(); created != 1 {
			w.t.Errorf("the controller created %d pods beside the one that it adopted, want 1", created)
		}
		edit(w, podsResource, w.anyPod(), func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Conditions = corev1.PodFailed, nil })
		w.expect(steady(2, "pod of ReplicaSet web, app=web: Failed"))
	})
}

// TestOrphansAreDeleted starts with the pods of a replica set that is gone, and of another
// controller.
func TestOrphansAreDeleted(t *testing.T) {
	inWorlds(t, func(w *world) {
		gone := replicaSet(1)
		gone.UID = "gone"
		orphan, foreign := pod("orphan", ""), pod("foreign", "")
		orphan.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(gone, setKind)}
		foreign.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(gone, setKind.GroupVersion().WithKind("StatefulSet"))}
		w.create(orphan, foreign)
		w.start()
		w.expect("pod of StatefulSet web, which is gone, app=: Running")
	})
}
