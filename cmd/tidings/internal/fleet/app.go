package fleet

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// app is a deployment and its dependents, as the server has them.
type app struct {
	deployment *appsv1.Deployment
	set        *appsv1.ReplicaSet   // has the deployment's template; nil before chooseSet
	old        []*appsv1.ReplicaSet // the others, by revision
	pods       []*corev1.Pod
}

// apps returns the deployments of a namespace, and the replica sets and pods that deleted ones
// have left behind.
func (f *Fleet) apps(namespace string) (apps []*app, orphans []Object, err error) {
	deployments, err := list(f, new(appsv1.Deployment), namespace)
	sets, setsErr := list(f, new(appsv1.ReplicaSet), namespace)
	pods, podsErr := list(f, new(corev1.Pod), namespace)
	if err := errors.Join(err, setsErr, podsErr); err != nil {
		return nil, nil, err
	}
	owners := make(map[types.UID]*app)
	adopt := func(obj Object, kind string) *app {
		owner := metav1.GetControllerOf(obj)
		if owner == nil || owner.Kind != kind {
			return nil
		}
		a := owners[owner.UID]
		if a == nil {
			orphans = append(orphans, obj)
		}
		return a
	}
	for _, d := range deployments {
		if d.DeletionTimestamp == nil && d.Spec.Selector != nil {
			owners[d.UID] = &app{deployment: d}
			apps = append(apps, owners[d.UID])
		}
	}
	for _, set := range sets {
		if a := adopt(set, "Deployment"); a != nil {
			a.old, owners[set.UID] = append(a.old, set), a
		}
	}
	for _, pod := range pods {
		if a := adopt(pod, "ReplicaSet"); a != nil {
			a.pods = append(a.pods, pod)
		}
	}
	for _, a := range apps {
		slices.SortStableFunc(a.old, func(x, y *appsv1.ReplicaSet) int {
			return cmp.Compare(revision(x), revision(y))
		})
	}
	return apps, orphans, nil
}

// app returns the deployment of a name, or nil.
func (f *Fleet) app(name types.NamespacedName) (*app, error) {
	apps, _, err := f.apps(name.Namespace)
	if i := slices.IndexFunc(apps, func(a *app) bool { return a.name() == name }); i >= 0 {
		return apps[i], err
	}
	return nil, err
}

func (a *app) name() types.NamespacedName {
	return types.NamespacedName{Namespace: a.deployment.Namespace, Name: a.deployment.Name}
}

// chooseSet finds the replica set of the deployment's template. It leaves set nil for a new
// template.
func (a *app) chooseSet() {
	if i := slices.IndexFunc(a.old, a.isCurrent); i >= 0 && a.set == nil {
		a.set = a.old[i]
		a.old = slices.Delete(a.old, i, i+1)
	}
}

// isCurrent reports whether a replica set runs the template of the deployment.
func (a *app) isCurrent(set *appsv1.ReplicaSet) bool {
	template := set.Spec.Template
	template.Labels = maps.Clone(template.Labels)
	delete(template.Labels, hashLabel)
	return equality.Semantic.DeepEqual(template, a.deployment.Spec.Template)
}

// revision returns the revision that the replica set of the deployment's template has to have: the
// newest of all. An old template that comes back gets a new revision.
func (a *app) revision() int {
	newest := 0
	if len(a.old) > 0 {
		newest = revision(a.old[len(a.old)-1])
	}
	if a.set != nil {
		return max(revision(a.set), newest+1)
	}
	return newest + 1
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

// maxWanted bounds the pods of a deployment, whatever its spec says.
const maxWanted = 500

// wanted returns how many pods a deployment is to have.
func wanted(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return min(max(0, *d.Spec.Replicas), maxWanted)
}
