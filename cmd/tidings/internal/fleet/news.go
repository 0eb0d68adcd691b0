package fleet

import (
	"context"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// news is the newest that was heard of an object.
type news struct {
	obj     Object
	deleted bool
	// certain says that somebody else has written, whatever the version.
	certain bool
}

// Hear tells the fleet what became of an object, from any goroutine. What it wrote itself
// it recognises, and what is none of its business it leaves alone: it takes care of
// deployments, also of those that others create, of their replica sets and pods. The next
// Step acts on it.
func (f *Fleet) Hear(obj Object, deleted bool) { f.hear(obj, deleted, false) }

func (f *Fleet) hear(obj Object, deleted, certain bool) {
	var key string
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		key = "deployment "
	case *appsv1.ReplicaSet:
		if !deleted {
			return
		}
		key = "replicaset "
	case *corev1.Pod:
		if !deleted && obj.DeletionTimestamp == nil {
			return
		}
		key = "pod "
	default:
		return
	}
	key += keyOf(obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.news[key] = news{obj, deleted, certain || f.news[key].certain}
}

func keyOf(obj Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// attend looks at what was heard, and inspects the applications to which somebody else
// has done something.
func (f *Fleet) attend(ctx context.Context) error {
	for _, n := range f.takeNews() {
		switch obj := n.obj.(type) {
		case *appsv1.Deployment:
			f.attendDeployment(obj, n)
		case *appsv1.ReplicaSet:
			if a := f.ofSet(obj.Namespace, obj.Name); a != nil && a.owns(obj) {
				f.surprised[a] = true
			}
		case *corev1.Pod:
			if a := f.ownerOf(obj); a != nil && a.has(obj) {
				f.surprised[a] = true
			}
		}
	}
	for a := range f.surprised {
		delete(f.surprised, a)
		if f.byName[keyOf(a.deployment)] != a {
			continue // it is being collected
		}
		if err := f.inspect(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// takeNews returns what was heard since the last time, and leaves none.
func (f *Fleet) takeNews() map[string]news {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.news) == 0 {
		return nil // those who hear go on with the map
	}
	heard := f.news
	f.news = make(map[string]news)
	return heard
}

func (f *Fleet) attendDeployment(d *appsv1.Deployment, n news) {
	a, known := f.byName[keyOf(d)]
	switch {
	case !known && !n.deleted && d.DeletionTimestamp == nil && d.Spec.Selector != nil:
		a = &app{deployment: d, kept: true}
		f.apps, f.byName[keyOf(d)] = append(f.apps, a), a
		f.surprised[a] = true
	case known && n.deleted && d.UID == a.deployment.UID:
		f.surprised[a] = true
	case known && !n.deleted && (n.certain || newer(d, a.deployment)):
		a.kept = true
		f.surprised[a] = true
	}
}

// newer reports whether a state is later than another of the same object.
func newer(a, b Object) bool {
	one, errOne := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	other, errOther := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errOne == nil && errOther == nil && one > other
}

// ownerOf returns the application that a pod belongs to, by the name of its replica set.
func (f *Fleet) ownerOf(pod *corev1.Pod) *app {
	if len(pod.OwnerReferences) == 0 {
		return nil
	}
	return f.ofSet(pod.Namespace, pod.OwnerReferences[0].Name)
}

// ofSet returns the application of a replica set, whose name is that of the deployment
// and a hash.
func (f *Fleet) ofSet(namespace, name string) *app {
	return f.byName[namespace+"/"+name[:max(0, strings.LastIndexByte(name, '-'))]]
}

// owns reports whether a replica set is one of the application's, as far as the model
// goes.
func (a *app) owns(set *appsv1.ReplicaSet) bool {
	return a.set != nil && a.set.UID == set.UID || a.previous != nil && a.previous.UID == set.UID
}

// has reports whether a pod is one of the application's, as far as the model goes.
func (a *app) has(pod *corev1.Pod) bool {
	for _, m := range a.pods {
		if m.pod.UID == pod.UID {
			return true
		}
	}
	return false
}
