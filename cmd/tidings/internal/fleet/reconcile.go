package fleet

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reconcile makes the next write that brings an app to the state that its deployment and its
// database ask for. It reports whether it made one.
func (f *Fleet) reconcile(a *app, now time.Time) (bool, error) {
	if a.set == nil {
		_, err := create(f, f.newReplicaSet(a.deployment))
		return tolerate(err)
	}
	for _, next := range []func(*app, time.Time) (bool, error){
		f.startPods, f.reportStatus, f.fitSize, f.failOver,
	} {
		if wrote, err := next(a, now); wrote || err != nil {
			return wrote, err
		}
	}
	return false, nil
}

// startPods finishes the deletion of pods, schedules new ones, and starts them and those that
// have crashed.
func (f *Fleet) startPods(a *app, now time.Time) (bool, error) {
	for _, pod := range a.pods {
		switch {
		case pod.DeletionTimestamp != nil:
			return remove(f, pod)
		case pod.Spec.NodeName == "":
			node := f.randomNode()
			return update(f, pod, func(pod *corev1.Pod) { schedule(pod, node, now) })
		case !isReady(pod):
			return update(f, pod, func(pod *corev1.Pod) { f.startContainers(pod, now) })
		}
	}
	return false, nil
}

// reportStatus writes the sizes of the replica sets and the status of all parts.
func (f *Fleet) reportStatus(a *app, _ time.Time) (bool, error) {
	current, ready := a.count(a.set)
	if wrote, err := f.updateSet(a.set, wanted(a.deployment), current, ready); wrote || err != nil {
		return wrote, err
	}
	for _, set := range a.old {
		pods, ready := a.count(set)
		if wrote, err := f.updateSet(set, pods, pods, ready); wrote || err != nil {
			return wrote, err
		}
	}
	all, ready := a.count(nil)
	status := appsv1.DeploymentStatus{
		ObservedGeneration: a.deployment.Generation, Replicas: all, UpdatedReplicas: current,
		ReadyReplicas: ready, AvailableReplicas: ready,
		UnavailableReplicas: max(0, wanted(a.deployment)-ready),
	}
	if equality.Semantic.DeepEqual(status, a.deployment.Status) {
		return false, nil
	}
	return update(f, a.deployment, func(d *appsv1.Deployment) { d.Status = status })
}

// updateSet writes the size and the status of a replica set if they differ from those that it
// has.
func (f *Fleet) updateSet(set *appsv1.ReplicaSet, size, pods, ready int32) (bool, error) {
	status := appsv1.ReplicaSetStatus{
		ObservedGeneration: set.Generation, Replicas: pods, FullyLabeledReplicas: pods,
		ReadyReplicas: ready, AvailableReplicas: ready,
	}
	if *cmp.Or(set.Spec.Replicas, new(int32)) == size &&
		equality.Semantic.DeepEqual(status, set.Status) {
		return false, nil
	}
	return update(f, set, func(set *appsv1.ReplicaSet) {
		set.Spec.Replicas, set.Status = new(size), status
	})
}

// fitSize creates or deletes one pod, and deletes old replica sets but the newest. At most one
// pod more than wanted exists at a time.
func (f *Fleet) fitSize(a *app, _ time.Time) (bool, error) {
	current, _ := a.count(a.set)
	switch want := wanted(a.deployment); {
	case current < want && len(a.pods) <= int(want):
		_, err := create(f, f.newPod(a.set))
		return tolerate(err)
	case len(a.pods) > int(want):
		i := slices.IndexFunc(a.pods,
			func(pod *corev1.Pod) bool { return !metav1.IsControlledBy(pod, a.set) })
		return remove(f, a.pods[max(i, 0)])
	case len(a.old) > 1:
		return remove(f, a.old[0]) // it has no pods: as many as wanted are of the current one
	}
	return false, nil
}

// failOver completes the failover of a database.
func (f *Fleet) failOver(a *app, now time.Time) (bool, error) {
	database, err := f.database(a.deployment)
	if err != nil || database == nil {
		return false, err
	}
	phase, _, _ := unstructured.NestedString(database.Object, "status", "phase")
	if phase == "Ready" {
		return false, nil
	}
	return update(f, database, func(u *unstructured.Unstructured) {
		setPhase(u, "Ready", now)
		setPrimary(u, f.rng.Int64N(3))
	})
}

// database returns the database of a deployment, or nil.
func (f *Fleet) database(d *appsv1.Deployment) (*unstructured.Unstructured, error) {
	return get(f, f.templates.database, d.Namespace, d.Name)
}
