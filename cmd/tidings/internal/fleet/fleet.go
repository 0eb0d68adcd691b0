package fleet

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is what a cluster holds.
type Object interface {
	metav1.Object
	runtime.Object
}

// Cluster is where the objects of a fleet live. Each call returns the object as it
// is stored; Delete returns the last state, with the resource version of the
// deletion. Get returns the newest state of an object of that type and name. Errors are
// those of the API.
type Cluster interface {
	Get(ctx context.Context, obj Object) (Object, error)
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
	definition *unstructured.Unstructured
	namespaces []*corev1.Namespace
	nodes      []*corev1.Node
	apps       []*app
	byName     map[string]*app // by the namespace/name of the deployment
	pods       int             // in all apps
	stories    []*story
	surprised  map[*app]bool // those to which somebody else has done something

	mu   sync.Mutex      // guards the rest
	news map[string]news // heard since the last step, by what it is of
}

const (
	podsPerNamespace = 250
	maxReplicas      = 24
	// appsPerDatabase is how many applications there are for one with a database.
	appsPerDatabase = 3
	// streamOfSeed is the second half of the generator's seed, any fixed number.
	streamOfSeed = 0x7469_6469_6e67_73
)

// New returns the fleet of a seed. Nothing is written before Populate.
func New(cluster Cluster, o Options) *Fleet {
	o.Pods = max(1, o.Pods)
	if o.Made == nil {
		o.Made = func(Change) {}
	}
	return &Fleet{
		o: o, cluster: cluster, rng: rand.New(rand.NewPCG(o.Seed, streamOfSeed)), definition: definition(),
		byName: make(map[string]*app), surprised: make(map[*app]bool), news: make(map[string]news),
	}
}

// build makes the model of a fleet that runs since now: the server gives its objects no
// earlier time of creation.
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
		if i%appsPerDatabase == 0 {
			a.database = newDatabase(f.rng, namespace, a.deployment.Name, a.deployment.Labels, now)
		}
		for range replicas {
			pod := newPod(f.rng, a.set)
			schedule(pod, f.someNode(), now)
			startContainers(f.rng, pod, now)
			a.pods = append(a.pods, &member{pod})
		}
		f.pods += replicas
		f.apps, f.byName[keyOf(a.deployment)] = append(f.apps, a), a
	}
}

func (f *Fleet) someNode() string { return f.nodes[f.rng.IntN(len(f.nodes))].Name }

// Populate makes the objects and creates them, owners before what they own.
func (f *Fleet) Populate(ctx context.Context, now time.Time) error {
	f.build(now.Truncate(time.Second))
	if err := store(ctx, f, &f.definition); err != nil {
		return err
	}
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
	if a.database != nil {
		if err := store(ctx, f, &a.database); err != nil {
			return err
		}
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

// Namespace returns the name of one of the fleet's namespaces, which Populate has made.
func (f *Fleet) Namespace() string { return f.namespaces[0].Name }

// Objects yields every object of the model, owners before what they own.
func (f *Fleet) Objects() iter.Seq[Object] {
	return func(yield func(Object) bool) {
		if !yield(f.definition) {
			return
		}
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
	objects := []Object{a.deployment}
	if a.config != nil {
		objects = append(objects, a.config)
	}
	if a.service != nil {
		objects = append(objects, a.service)
	}
	if a.database != nil {
		objects = append(objects, a.database)
	}
	for _, set := range []*appsv1.ReplicaSet{a.previous, a.set} {
		if set != nil {
			objects = append(objects, set)
		}
	}
	for _, m := range a.pods {
		objects = append(objects, m.pod)
	}
	return objects
}
