package fleet

import (
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// reconcile makes the next write that brings an app to the state that its deployment and its
// database ask for. It reports whether it made one.
func (f *Fleet) reconcile(a *app, now time.Time) (bool, error) {
	a.chooseSet()
	if a.set == nil {
		_, err := create(f, f.newReplicaSet(a))
		return tolerate(err)
	}
	for _, next := range []func(*app, time.Time) (bool, error){
		f.setRevision, f.startPods, f.reportStatus, f.fitSize, f.failOver,
	} {
		if wrote, err := next(a, now); wrote || err != nil {
			return wrote, err
		}
	}
	return false, nil
}

// setRevision writes the revision of the current replica set and of the deployment.
func (f *Fleet) setRevision(a *app, _ time.Time) (bool, error) {
	next := a.revision()
	if revision(a.set) != next ||
		a.set.Annotations[causeAnnotation] != a.deployment.Annotations[causeAnnotation] {
		return update(f, a.set, func(set *appsv1.ReplicaSet) { annotate(set, a.deployment, next) })
	}
	if revision(a.deployment) == next {
		return false, nil
	}
	return f.updateSpec(a.deployment, func(d *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, revisionAnnotation, strconv.Itoa(next))
	})
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

// fitSize creates or deletes one pod, and deletes the oldest replica set if there are more than the
// deployment keeps. At most one pod more than wanted exists at a time.
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
	case len(a.old) > int(historyLimit(a.deployment)):
		return remove(f, a.old[0]) // it has no pods: as many as wanted are of the current one
	}
	return false, nil
}

// historyLimit returns how many old replica sets a deployment keeps.
func historyLimit(d *appsv1.Deployment) int32 {
	if limit := d.Spec.RevisionHistoryLimit; limit != nil {
		return max(0, *limit)
	}
	return 10 // the default of Kubernetes
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
