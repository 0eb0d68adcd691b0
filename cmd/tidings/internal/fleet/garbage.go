package fleet

import (
	"context"
	"iter"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/source"
)

// garbage deletes objects of type T whose owner, of type O, is gone.
type garbage[T, O tidings.Object] struct {
	*cluster
	dependents *tidings.Informer[T]
	owners     *tidings.Informer[O]
	kind       string                      // of the owners
	resource   schema.GroupVersionResource // of the owners
	client     func(namespace string) deleter
}

func (c *cluster) newGarbageOfDeployments() (controller.Runner, error) {
	g := &garbage[*appsv1.ReplicaSet, *appsv1.Deployment]{
		cluster: c, dependents: c.sets, owners: c.deployments, kind: "Deployment",
		resource: appsv1.SchemeGroupVersion.WithResource("deployments"),
		client:   func(namespace string) deleter { return c.client.AppsV1().ReplicaSets(namespace) },
	}
	return g.newController("garbage-of-deployments")
}

func (c *cluster) newGarbageOfReplicaSets() (controller.Runner, error) {
	g := &garbage[*corev1.Pod, *appsv1.ReplicaSet]{
		cluster: c, dependents: c.pods, owners: c.sets, kind: "ReplicaSet",
		resource: appsv1.SchemeGroupVersion.WithResource("replicasets"),
		client:   func(namespace string) deleter { return c.client.CoreV1().Pods(namespace) },
	}
	return g.newController("garbage-of-replicasets")
}

func (g *garbage[T, O]) newController(name string) (controller.Runner, error) {
	if err := g.dependents.IndexOwners(); err != nil {
		return nil, err
	}
	o := options(g.cluster, name, controller.Maps[T](g.owners, g.orphans))
	o.Ignore = func(old, new T) bool { return g.ownerOf(old).UID == g.ownerOf(new).UID }
	return controller.New(g.dependents, o, g.reconcile)
}

// ownerOf returns the reference to the owner of an object, and an empty one if an owner of another
// kind controls it.
func (g *garbage[T, O]) ownerOf(obj T) metav1.OwnerReference {
	ref := metav1.GetControllerOfNoCopy(obj)
	if ref == nil || ref.Kind != g.kind {
		return metav1.OwnerReference{}
	}
	return *ref
}

// isCached reports whether the cache has an owner.
func (g *garbage[T, O]) isCached(in tidings.Lister[O], of metav1.Object) bool {
	owner, err := in.Get(source.Key(of.GetNamespace(), of.GetName()))
	return err == nil && owner.GetUID() == of.GetUID()
}

// orphans returns the keys of the dependents of an owner that is gone, and none of one that has
// only changed.
func (g *garbage[T, O]) orphans(owner O) iter.Seq[string] {
	return func(yield func(string) bool) {
		if g.isCached(g.owners.Lister(), owner) {
			return
		}
		for key := range g.dependents.Lister().Controlled(owner.GetUID()) {
			if !yield(key) {
				return
			}
		}
	}
}

// reconcile deletes an object if its owner is gone. The informer of the owners may be behind that
// of the dependents, so that the server has the last word.
func (g *garbage[T, O]) reconcile(
	ctx context.Context, r controller.Request[T],
) (done controller.Result, err error) {
	ref := g.ownerOf(r.Object)
	if !isAlive(r) || ref.UID == "" {
		return done, nil
	}
	owner := &metav1.ObjectMeta{Namespace: r.Namespace(), Name: ref.Name, UID: ref.UID}
	if g.isCached(controller.Read(ctx, g.owners), owner) {
		return done, nil
	}
	exists, err := g.guard.Exists(ctx, g.resource, owner)
	if err != nil || exists {
		return done, err
	}
	return done, remove(ctx, g.client(r.Namespace()), r.Object, metav1.DeleteOptions{})
}
