package fleet

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings/apisim"
)

// object is an object of a test.
type object interface {
	metav1.Object
	runtime.Object
}

// rig is a fleet on a server to which the test writes too.
type rig struct {
	*testing.T
	fleet  *Fleet
	server *apisim.Server
	writes int // after Populate
	stop   func()
}

// inCluster runs a test in virtual time, with a fleet that was populated.
func inCluster(t *testing.T, seed uint64, pods int, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { // it has a Context of its own
		r := &rig{T: t, stop: func() {}}
		r.server = apisim.Options{
			Seed: seed + 1, OnWrite: func(schema.GroupVersionResource, string) { r.writes++ },
		}.Start(t)
		r.fleet = New(r.server, Options{
			Seed: seed, Pods: pods, Logger: slog.New(slog.DiscardHandler),
		})
		r.fatal(r.fleet.Populate(t.Context(), time.Now()))
		r.writes = 0
		test(r)
		r.stop()
	})
}

func (r *rig) fatal(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// run runs the fleet in the place of an earlier run.
func (r *rig) run(perSecond float64) {
	r.Helper()
	r.stop()
	ctx, cancel := context.WithCancel(r.Context())
	manager, err := r.fleet.Manager(perSecond)
	r.fatal(err)
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	r.stop = func() {
		r.Helper()
		for _, c := range manager.Health().Controllers {
			if c.Panics > 0 {
				r.Errorf("%d calls of the controller %s panicked: %v", c.Panics, c.Name, c.LastError)
			}
		}
		cancel()
		r.fatal(<-ended)
		r.stop = func() {}
	}
	r.pass(0)
}

// pass lets virtual time pass.
func (r *rig) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// settle gives the controllers time to react, and checks the cluster.
func (r *rig) settle() {
	r.Helper()
	r.pass(time.Minute)
	r.checkSettled()
}

// resourceOf returns the resource of an object. The names of the tests' resources are regular.
func (r *rig) resourceOf(obj runtime.Object) schema.GroupVersionResource {
	r.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	r.fatal(err)
	resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
	return resource
}

// all returns the objects of a type.
func all[T object](r *rig, of T) (objects []T) {
	r.Helper()
	items, _, err := r.server.List(r.Context(), r.resourceOf(of), "")
	r.fatal(err)
	for _, item := range items {
		objects = append(objects, item.(T))
	}
	return objects
}

func (r *rig) deployments() []*appsv1.Deployment { return all(r, new(appsv1.Deployment)) }
func (r *rig) pods() []*corev1.Pod               { return all(r, new(corev1.Pod)) }

// write changes an object as another client does.
func write[T object](r *rig, obj T, change func(T)) {
	r.Helper()
	next := obj.DeepCopyObject().(T)
	change(next)
	_, err := r.server.Update(r.Context(), next)
	r.fatal(err)
}

// drop deletes an object as another client does.
func (r *rig) drop(obj object) {
	r.Helper()
	_, err := r.server.Delete(r.Context(), r.resourceOf(obj), obj.GetNamespace(), obj.GetName())
	r.fatal(err)
}

// parts are a deployment and its dependents, as the server has them.
type parts struct {
	deployment *appsv1.Deployment
	set        *appsv1.ReplicaSet   // that of the template; nil without one
	old        []*appsv1.ReplicaSet // the others, by revision
	pods       []*corev1.Pod
	ready      int32 // of those of set
}

// parts returns those of all deployments, and the replica sets and pods without an owner.
func (r *rig) parts() (found map[types.NamespacedName]*parts, orphans []object) {
	r.Helper()
	found = make(map[types.NamespacedName]*parts)
	owners := make(map[types.UID]*parts)
	for _, d := range r.deployments() {
		p := &parts{deployment: d}
		found[types.NamespacedName{Namespace: d.Namespace, Name: d.Name}], owners[d.UID] = p, p
	}
	for _, set := range all(r, new(appsv1.ReplicaSet)) {
		p := owners[metav1.GetControllerOf(set).UID]
		switch {
		case p == nil:
			orphans = append(orphans, set)
			continue
		case set.Name == setName(p.deployment):
			p.set = set
		default:
			p.old = append(p.old, set)
		}
		owners[set.UID] = p
	}
	for _, pod := range r.pods() {
		owner := metav1.GetControllerOf(pod)
		p := owners[owner.UID]
		if p == nil {
			orphans = append(orphans, pod)
			continue
		}
		p.pods = append(p.pods, pod)
		if p.set != nil && owner.UID == p.set.UID && isReady(pod) {
			p.ready++
		}
	}
	for _, p := range found {
		slices.SortFunc(p.old, func(a, b *appsv1.ReplicaSet) int {
			return cmp.Compare(revision(a), revision(b))
		})
	}
	return found, orphans
}

// checkSettled checks that every deployment has the pods that it asks for, and that nothing is
// left of deleted ones.
func (r *rig) checkSettled() {
	r.Helper()
	found, orphans := r.parts()
	for _, orphan := range orphans {
		r.Errorf("%T %s has no owner", orphan, orphan.GetName())
	}
	for name, p := range found {
		want, keeps := replicas(p.deployment.Spec.Replicas), 10
		if limit := p.deployment.Spec.RevisionHistoryLimit; limit != nil {
			keeps = int(*limit)
		}
		if p.ready != want || len(p.pods) != int(want) || len(p.old) > keeps ||
			p.deployment.Status.ReadyReplicas != want ||
			p.deployment.Status.ObservedGeneration != p.deployment.Generation {
			r.Errorf("%s has %d pods, %d of them ready, and %d old replica sets; want %d: %+v",
				name, len(p.pods), p.ready, len(p.old), want, p.deployment.Status)
		}
	}
}
