package fleet

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is what a cluster holds.
type Object interface {
	metav1.Object
	runtime.Object
}

// Cluster is where the objects of a fleet live. Each call returns the object as it
// is stored; Delete returns the last state, with the resource version of the
// deletion.
type Cluster interface {
	Create(ctx context.Context, obj Object) (Object, error)
	Update(ctx context.Context, obj Object) (Object, error)
	Delete(ctx context.Context, obj Object) (Object, error)
}

// Change is one write.
type Change struct {
	// Began is when the write was sent.
	Began time.Time
	// Object is the state that it left, or the last one of what it deleted.
	Object Object
}

// Options are the choices of a [Fleet].
type Options struct {
	// Seed starts the generator of random numbers.
	Seed uint64
	// Pods is how many pods there are in the beginning, and about how many there
	// are later; less than 1 means 1.
	Pods int
	// Made is told of every write of Step, on its goroutine; nil means nobody.
	Made func(Change)
}

// Fleet is the model of a cluster's objects.
type Fleet struct {
	o          Options
	cluster    Cluster
	rng        *rand.Rand
	namespaces []*corev1.Namespace
	nodes      []*corev1.Node
	apps       []*app
	pods       int // in all apps
	stories    []*story
}

const (
	podsPerNamespace = 250
	maxReplicas      = 24
	// streamOfSeed is the second half of the generator's seed, any fixed number.
	streamOfSeed = 0x7469_6469_6e67_73
)

// New returns the fleet of a seed. Nothing is written before Populate.
func New(cluster Cluster, o Options) *Fleet {
	o.Pods = max(1, o.Pods)
	if o.Made == nil {
		o.Made = func(Change) {}
	}
	return &Fleet{o: o, cluster: cluster, rng: rand.New(rand.NewPCG(o.Seed, streamOfSeed))}
}

// build makes the model, with times before now.
func (f *Fleet) build(now time.Time) {
	for i := range max(2, 1+f.o.Pods/podsPerNode) {
		f.nodes = append(f.nodes, newNode(f.rng, i, now))
	}
	count := min(max(2, f.o.Pods/podsPerNamespace), 200)
	for i := range count {
		f.namespaces = append(f.namespaces, newNamespace(numbered(namespaceNames, i)))
	}
	for i := 0; f.pods < f.o.Pods; i++ {
		namespace := f.namespaces[i%count].Name
		replicas := min(1+f.rng.IntN(maxReplicas), f.o.Pods-f.pods)
		a := newApp(f.rng, namespace, appName(i/count), int32(replicas))
		for range replicas {
			pod := newPod(f.rng, a.set)
			started := now.Add(-time.Duration(f.rng.IntN(72*3600)) * time.Second)
			schedule(pod, f.someNode(), started)
			startContainers(f.rng, pod, started)
			a.pods = append(a.pods, &member{pod})
		}
		f.pods += replicas
		f.apps = append(f.apps, a)
	}
}

func (f *Fleet) someNode() string { return f.nodes[f.rng.IntN(len(f.nodes))].Name }

// Populate makes the objects and creates them, owners before what they own.
func (f *Fleet) Populate(ctx context.Context, now time.Time) error {
	f.build(now.Truncate(time.Second))
	for i := range f.nodes {
		if err := store(ctx, f, &f.nodes[i]); err != nil {
			return err
		}
	}
	for i := range f.namespaces {
		if err := store(ctx, f, &f.namespaces[i]); err != nil {
			return err
		}
	}
	for _, a := range f.apps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := f.populateApp(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fleet) populateApp(ctx context.Context, a *app) error {
	if err := errors.Join(store(ctx, f, &a.config), store(ctx, f, &a.service), store(ctx, f, &a.deployment)); err != nil {
		return err
	}
	a.set.OwnerReferences[0].UID = a.deployment.UID
	if err := store(ctx, f, &a.set); err != nil {
		return err
	}
	for _, m := range a.pods {
		m.pod.OwnerReferences[0].UID = a.set.UID
		if err := store(ctx, f, &m.pod); err != nil {
			return err
		}
	}
	return nil
}

// Objects yields every object of the model, owners before what they own.
func (f *Fleet) Objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		for _, node := range f.nodes {
			if !yield(node) {
				return
			}
		}
		for _, namespace := range f.namespaces {
			if !yield(namespace) {
				return
			}
		}
		for _, a := range f.apps {
			for _, obj := range a.objects() {
				if !yield(obj) {
					return
				}
			}
		}
	}
}

func (a *app) objects() []Object {
	objects := []Object{a.config, a.service, a.deployment}
	if a.previous != nil {
		objects = append(objects, a.previous)
	}
	objects = append(objects, a.set)
	for _, m := range a.pods {
		objects = append(objects, m.pod)
	}
	return objects
}
