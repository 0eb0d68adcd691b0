package fleet

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/tidings-go/tidings/apisim"
)

// Options are the choices of a [Fleet].
type Options struct {
	// Seed starts the generator of random numbers.
	Seed uint64
	// Pods is how many pods Populate creates, and about how many there are later; less than 1
	// means 1.
	Pods int
	// OnWrite is called after every write of Step and Answer; nil means no call.
	OnWrite func(Change)
}

// Change is one write.
type Change struct {
	// Began is the time before the write.
	Began time.Time
	// Object is the state after the write, or the last state of a deleted object.
	Object Object
}

// Fleet is a model of the cluster's objects.
type Fleet struct {
	o          Options
	server     *apisim.Server
	rng        *rand.Rand
	templates  templates
	namespaces []string
	nodes      []*corev1.Node
	apps       []*app
	busy       []*app   // to be reconciled
	urgent     []*app   // to be reconciled first, because another client has changed them
	leftovers  []Object // without an owner, to be deleted first

	mu      sync.Mutex      // guards touched
	touched map[string]bool // namespaces to list; "" for the nodes
}

// app is one application: a deployment and its dependents.
type app struct {
	deployment *appsv1.Deployment
	set        *appsv1.ReplicaSet // of the current revision; nil if there is none
	previous   *appsv1.ReplicaSet // of the revision before; nil if there is none
	pods       []*corev1.Pod
	config     *corev1.ConfigMap          // nil if there is none
	database   *unstructured.Unstructured // nil if there is none
	foreign    bool                       // another client decides its size and its image
}

const (
	podsPerNamespace = 250
	podsPerNode      = 30
	maxNamespaces    = 200
	maxReplicas      = 24
	// appsPerDatabase is how many applications there are for one with a database.
	appsPerDatabase = 3
	// maxBusy is how many applications are busy at once, unless other clients make more so.
	maxBusy = 8
	// heartbeatOdds and configOdds are how many of a thousand steps are the heartbeat of a node
	// and a changed configuration.
	heartbeatOdds, configOdds = 150, 30
	// answersPerSecond is how often Run calls Answer if it makes no changes of its own.
	answersPerSecond = 100
	// streamOfSeed is the second half of the generator's seed, any fixed number.
	streamOfSeed = 0x7469_6469_6e67_73
)

// New returns the fleet of a seed on a server. It writes nothing before Populate.
func New(server *apisim.Server, o Options) *Fleet {
	o.Pods = max(1, o.Pods)
	return &Fleet{
		o: o, server: server, rng: rand.New(rand.NewPCG(o.Seed, streamOfSeed)),
		touched: make(map[string]bool),
	}
}

// Namespace returns one of the fleet's namespaces. It may be called after Populate.
func (f *Fleet) Namespace() string { return f.namespaces[0] }

// Populate creates the objects, owners before their dependents. No time in them is before now.
func (f *Fleet) Populate(ctx context.Context, now time.Time) (err error) {
	now = now.Truncate(time.Second)
	if f.templates, err = readTemplates(); err != nil {
		return err
	}
	report := f.o.OnWrite
	f.o.OnWrite = nil
	defer func() { f.o.OnWrite = report }()
	if err := create(f, &f.templates.definition); err != nil {
		return err
	}
	for i := range max(2, 1+f.o.Pods/podsPerNode) {
		f.nodes = append(f.nodes, f.newNode(i, now))
		if err := create(f, &f.nodes[i]); err != nil {
			return err
		}
	}
	for i := range min(max(2, f.o.Pods/podsPerNamespace), maxNamespaces) {
		namespace := f.newNamespace(i)
		f.namespaces = append(f.namespaces, namespace.Name)
		if err := create(f, &namespace); err != nil {
			return err
		}
	}
	for pods := 0; pods < f.o.Pods; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		replicas := min(1+f.rng.IntN(maxReplicas), f.o.Pods-pods)
		if err := f.createApp(len(f.apps), int32(replicas), now); err != nil {
			return err
		}
		pods += replicas
	}
	return nil
}

// createApp creates the application with an index, with running pods.
func (f *Fleet) createApp(i int, replicas int32, now time.Time) error {
	namespace := f.namespaces[i%len(f.namespaces)]
	a := f.newApp(namespace, numbered(appNames, i/len(f.namespaces)), replicas)
	f.apps = append(f.apps, a)
	service := f.newService(a)
	if err := create(f, &service); err != nil {
		return err
	}
	if err := create(f, &a.config); err != nil {
		return err
	}
	if i%appsPerDatabase == 0 {
		a.database = f.newDatabase(a, now)
		if err := create(f, &a.database); err != nil {
			return err
		}
	}
	if err := create(f, &a.deployment); err != nil {
		return err
	}
	a.set = f.newReplicaSet(a.deployment)
	a.set.Status = appsv1.ReplicaSetStatus{
		ObservedGeneration: 1, Replicas: replicas, FullyLabeledReplicas: replicas,
		ReadyReplicas: replicas, AvailableReplicas: replicas,
	}
	if err := create(f, &a.set); err != nil {
		return err
	}
	for range replicas {
		pod := f.newPod(a.set)
		schedule(pod, f.randomNode(), now)
		f.startContainers(pod, now)
		a.pods = append(a.pods, pod)
		if err := create(f, &a.pods[len(a.pods)-1]); err != nil {
			return err
		}
	}
	return nil
}

// Run makes so many steps a second until ctx ends or a write fails. With 0 it only answers the
// writes of other clients.
func (f *Fleet) Run(ctx context.Context, perSecond float64) error {
	step := f.Step
	if perSecond <= 0 {
		step, perSecond = f.Answer, answersPerSecond
	}
	limiter := flowcontrol.NewTokenBucketRateLimiter(float32(perSecond), 1+int(perSecond/100))
	for limiter.Wait(ctx) == nil {
		if err := step(time.Now()); err != nil {
			return err
		}
	}
	<-ctx.Done() // the limiter gives up before the deadline
	return nil
}

// Step makes one write, or none if a write of another client conflicts with it. Times in objects
// are now, in seconds.
func (f *Fleet) Step(now time.Time) error {
	now = now.Truncate(time.Second)
	if answered, err := f.answer(now); answered || err != nil {
		return err
	}
	switch roll := f.rng.IntN(1000); {
	case roll < heartbeatOdds:
		return f.heartbeat(now)
	case roll < heartbeatOdds+configOdds:
		if a := f.idleApp(); a != nil && a.config != nil {
			return f.tolerate(a, f.changeConfig(a))
		}
	}
	if len(f.busy) < maxBusy {
		if a := f.idleApp(); a != nil {
			f.busy = append(f.busy, a)
			if wrote, err := f.disturb(a, now); wrote || err != nil {
				return f.tolerate(a, err)
			}
		}
	}
	for len(f.busy) > 0 {
		i := f.rng.IntN(len(f.busy))
		a := f.busy[i]
		if wrote, err := f.reconcile(a, now); wrote || err != nil {
			return f.tolerate(a, err)
		}
		f.busy = slices.Delete(f.busy, i, i+1)
	}
	return f.heartbeat(now)
}

// Answer makes the next write that the writes of other clients require, if there is one.
func (f *Fleet) Answer(now time.Time) error {
	_, err := f.answer(now.Truncate(time.Second))
	return err
}

// answer does the same and reports whether it made a write.
func (f *Fleet) answer(now time.Time) (bool, error) {
	for namespace := range f.takeTouched() {
		if err := f.resync(namespace); err != nil {
			return false, err
		}
	}
	if last := len(f.leftovers) - 1; last >= 0 {
		obj := f.leftovers[last]
		f.leftovers = f.leftovers[:last]
		return true, remove(f, obj)
	}
	for len(f.urgent) > 0 {
		a := f.urgent[0]
		if wrote, err := f.reconcile(a, now); wrote || err != nil {
			return true, f.tolerate(a, err)
		}
		f.urgent = f.urgent[1:]
	}
	return false, nil
}

// idleApp returns a random application that is not busy, nil if a few tries find none.
func (f *Fleet) idleApp() *app {
	for range min(20, len(f.apps)) {
		if a := f.apps[f.rng.IntN(len(f.apps))]; !slices.Contains(f.busy, a) {
			return a
		}
	}
	return nil
}

func (f *Fleet) randomNode() string { return f.nodes[f.rng.IntN(len(f.nodes))].Name }

// pods returns the number of pods of all applications.
func (f *Fleet) pods() int {
	count := 0
	for _, a := range f.apps {
		count += len(a.pods)
	}
	return count
}
