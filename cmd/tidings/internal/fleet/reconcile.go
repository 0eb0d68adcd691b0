package fleet

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxWanted bounds the pods of an application, whatever its deployment says.
const maxWanted = 500

// wanted returns how many pods a deployment is to have.
func wanted(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return min(max(0, *d.Spec.Replicas), maxWanted)
}

// reconcile makes the next write that brings an application to the state that its deployment and
// its database ask for. It reports whether it made one.
func (f *Fleet) reconcile(a *app, now time.Time) (bool, error) {
	if a.set == nil || !sameImages(a.set, a.deployment) {
		return true, f.replaceSet(a)
	}
	for _, next := range []func(*app, time.Time) (bool, error){
		f.startPods, f.reportStatus, f.restartContainers, f.fitSize, f.failOver,
	} {
		if wrote, err := next(a, now); wrote || err != nil {
			return wrote, err
		}
	}
	return false, nil
}

// replaceSet creates a replica set of the deployment's template. The current one becomes the
// previous one, which is deleted before.
func (f *Fleet) replaceSet(a *app) error {
	if previous := a.previous; previous != nil {
		a.previous = nil
		return remove(f, previous)
	}
	set := f.newReplicaSet(a.deployment)
	if err := create(f, &set); err != nil {
		return err
	}
	a.previous, a.set = a.set, set
	return nil
}

// startPods finishes the deletion of pods, schedules new ones and starts them.
func (f *Fleet) startPods(a *app, now time.Time) (bool, error) {
	for i, pod := range a.pods {
		switch {
		case pod.DeletionTimestamp != nil:
			return true, f.removePod(a, i)
		case pod.Spec.NodeName == "":
			node := f.randomNode()
			return true, update(f, &a.pods[i], func(pod *corev1.Pod) { schedule(pod, node, now) })
		case len(pod.Status.ContainerStatuses) == 0:
			return true, update(f, &a.pods[i],
				func(pod *corev1.Pod) { f.startContainers(pod, now) })
		}
	}
	return false, nil
}

// restartContainers starts containers that have crashed.
func (f *Fleet) restartContainers(a *app, now time.Time) (bool, error) {
	i := slices.IndexFunc(a.pods, func(pod *corev1.Pod) bool { return !isReady(pod) })
	if i < 0 {
		return false, nil
	}
	return true, update(f, &a.pods[i], func(pod *corev1.Pod) { f.startContainers(pod, now) })
}

// reportStatus writes the sizes of the replica sets and the status of all parts.
func (f *Fleet) reportStatus(a *app, _ time.Time) (bool, error) {
	pods, ready := a.count(a.set)
	if wrote, err := updateSet(f, &a.set, wanted(a.deployment), pods, ready); wrote || err != nil {
		return wrote, err
	}
	if a.previous != nil {
		pods, ready := a.count(a.previous)
		if wrote, err := updateSet(f, &a.previous, pods, pods, ready); wrote || err != nil {
			return wrote, err
		}
	}
	_, allReady := a.count(nil)
	status := a.deployment.Status
	status.ObservedGeneration = a.deployment.Generation
	status.Replicas, status.UpdatedReplicas = int32(len(a.pods)), pods
	status.ReadyReplicas, status.AvailableReplicas = allReady, allReady
	status.UnavailableReplicas = max(0, wanted(a.deployment)-allReady)
	if sameStatus(status, a.deployment.Status) {
		return false, nil
	}
	return true, update(f, &a.deployment, func(d *appsv1.Deployment) { d.Status = status })
}

// sameStatus compares the fields of a status that the fleet writes.
func sameStatus(a, b appsv1.DeploymentStatus) bool {
	return a.ObservedGeneration == b.ObservedGeneration && a.Replicas == b.Replicas &&
		a.UpdatedReplicas == b.UpdatedReplicas && a.ReadyReplicas == b.ReadyReplicas &&
		a.AvailableReplicas == b.AvailableReplicas && a.UnavailableReplicas == b.UnavailableReplicas
}

// updateSet writes the size and the status of a replica set. It reports whether they differ from
// those that it has.
func updateSet(f *Fleet, slot **appsv1.ReplicaSet, size, pods, ready int32) (bool, error) {
	set := *slot
	if set.Spec.Replicas == nil || *set.Spec.Replicas != size {
		return true, update(f, slot, func(set *appsv1.ReplicaSet) { set.Spec.Replicas = new(size) })
	}
	if s := set.Status; s.Replicas == pods && s.ReadyReplicas == ready &&
		s.ObservedGeneration == set.Generation {
		return false, nil
	}
	return true, update(f, slot, func(set *appsv1.ReplicaSet) {
		set.Status.ObservedGeneration = set.Generation
		set.Status.Replicas, set.Status.FullyLabeledReplicas = pods, pods
		set.Status.ReadyReplicas, set.Status.AvailableReplicas = ready, ready
	})
}

// count returns the number of pods of a replica set, or of all for nil, and how many are ready.
func (a *app) count(set *appsv1.ReplicaSet) (pods, ready int32) {
	for _, pod := range a.pods {
		if set != nil && !metav1.IsControlledBy(pod, set) {
			continue
		}
		pods++
		if isReady(pod) {
			ready++
		}
	}
	return pods, ready
}

// fitSize creates or deletes one pod. At most one pod more than wanted exists at a time.
func (f *Fleet) fitSize(a *app, _ time.Time) (bool, error) {
	current, _ := a.count(a.set)
	switch want := wanted(a.deployment); {
	case current < want && len(a.pods) <= int(want):
		pod := f.newPod(a.set)
		err := create(f, &pod)
		if err == nil {
			a.pods = append(a.pods, pod)
		}
		return true, err
	case len(a.pods) > int(want):
		old := slices.IndexFunc(a.pods,
			func(pod *corev1.Pod) bool { return !metav1.IsControlledBy(pod, a.set) })
		if old < 0 {
			old = len(a.pods) - 1
		}
		return true, f.removePod(a, old)
	}
	return false, nil
}

func (f *Fleet) removePod(a *app, i int) error {
	pod := a.pods[i]
	a.pods = slices.Delete(a.pods, i, i+1)
	return remove(f, pod)
}

// failOver completes the failover of a database.
func (f *Fleet) failOver(a *app, now time.Time) (bool, error) {
	if a.database == nil {
		return false, nil
	}
	phase, _, _ := unstructured.NestedString(a.database.Object, "status", "phase")
	if phase == "Ready" {
		return false, nil
	}
	return true, update(f, &a.database, func(u *unstructured.Unstructured) {
		setPhase(u, "Ready", now)
		setPrimary(u, f.rng.Int64N(3))
	})
}

func sameImages(set *appsv1.ReplicaSet, d *appsv1.Deployment) bool {
	return slices.EqualFunc(set.Spec.Template.Spec.Containers, d.Spec.Template.Spec.Containers,
		func(a, b corev1.Container) bool { return a.Name == b.Name && a.Image == b.Image })
}
