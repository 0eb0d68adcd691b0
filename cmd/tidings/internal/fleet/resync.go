package fleet

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Touch announces that another client has written in a namespace, or, for "", to an object
// without one. It may be called from any goroutine.
func (f *Fleet) Touch(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touched[namespace] = true
}

func (f *Fleet) takeTouched() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.touched) == 0 {
		return nil
	}
	touched := f.touched
	f.touched = make(map[string]bool)
	return touched
}

// resync rebuilds the model of a namespace from the server's objects.
func (f *Fleet) resync(namespace string) error {
	if namespace == "" {
		return f.resyncNodes()
	}
	deployments, err := list(f, new(appsv1.Deployment), namespace)
	if err != nil {
		return err
	}
	sets, err := list(f, new(appsv1.ReplicaSet), namespace)
	if err != nil {
		return err
	}
	pods, err := list(f, new(corev1.Pod), namespace)
	if err != nil {
		return err
	}
	apps := f.resyncApps(namespace, deployments)
	owners := make(map[types.UID]*app) // by the UID of the replica set
	for _, set := range sets {
		owner := metav1.GetControllerOf(set)
		if owner == nil || owner.Kind != "Deployment" {
			continue
		}
		a := apps[owner.UID]
		if a == nil {
			f.leftovers = append(f.leftovers, set)
			continue
		}
		owners[set.UID] = a
		if replaced := a.adopt(set); replaced != nil {
			f.leftovers = append(f.leftovers, replaced)
		}
	}
	for _, pod := range pods {
		owner := metav1.GetControllerOf(pod)
		if owner == nil || owner.Kind != "ReplicaSet" {
			continue
		}
		if a := owners[owner.UID]; a != nil {
			a.pods = append(a.pods, pod)
		} else {
			f.leftovers = append(f.leftovers, pod)
		}
	}
	return f.resyncDependents(namespace)
}

// resyncApps brings the applications of a namespace to its deployments, without dependents. It
// returns them by the UIDs of their deployments.
func (f *Fleet) resyncApps(namespace string, deployments []*appsv1.Deployment) map[types.UID]*app {
	f.leftovers = slices.DeleteFunc(f.leftovers,
		func(obj Object) bool { return obj.GetNamespace() == namespace })
	known := make(map[types.UID]*app)
	f.apps = slices.DeleteFunc(f.apps, func(a *app) bool {
		if a.deployment.Namespace == namespace {
			known[a.deployment.UID] = a
			f.forget(a)
		}
		return known[a.deployment.UID] == a
	})
	apps := make(map[types.UID]*app)
	for _, d := range deployments {
		if d.DeletionTimestamp != nil || d.Spec.Selector == nil {
			continue
		}
		a := known[d.UID]
		if a == nil {
			a = &app{deployment: d, foreign: true}
		}
		if d.ResourceVersion != a.deployment.ResourceVersion {
			a.deployment, a.foreign = d, true
		}
		a.set, a.previous, a.pods = nil, nil, nil
		apps[d.UID] = a
		f.apps, f.urgent = append(f.apps, a), append(f.urgent, a)
	}
	return apps
}

// adopt takes a replica set of the server into the model: as the current one if it has the images
// of the deployment, otherwise as the previous one. It returns a set that is neither, or nil.
func (a *app) adopt(set *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	switch {
	case a.set == nil && sameImages(set, a.deployment):
		a.set = set
		return nil
	case a.previous != nil && revision(a.previous) >= revision(set):
		return set
	}
	replaced := a.previous
	a.previous = set
	return replaced
}

// resyncDependents reads the other objects of the applications of a namespace.
func (f *Fleet) resyncDependents(namespace string) error {
	for _, a := range f.apps {
		if a.deployment.Namespace != namespace {
			continue
		}
		if a.config != nil {
			if found, err := get(f, &a.config); err != nil {
				return err
			} else if !found {
				a.config = nil
			}
		}
		if a.database != nil {
			if found, err := get(f, &a.database); err != nil {
				return err
			} else if !found {
				a.database = nil
			}
		}
	}
	return nil
}

// resyncNodes reads the nodes. Deleted nodes register again.
func (f *Fleet) resyncNodes() error {
	for i, node := range f.nodes {
		found, err := get(f, &f.nodes[i])
		if err == nil && !found {
			node = node.DeepCopy()
			node.ResourceVersion, node.UID = "", ""
			f.nodes[i] = node
			err = create(f, &f.nodes[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}
