package fleet

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

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

// Fleet makes the writes of a busy cluster.
type Fleet struct {
	o          Options
	server     *apisim.Server
	rng        *rand.Rand
	templates  templates
	namespaces []string
	nodes      []string               // their names
	size       int                    // objects on the server after Populate
	busy       []types.NamespacedName // deployments to be reconciled
	specs      map[types.UID]int64    // newest generations of the deployments that the fleet wrote
	populated  bool                   // OnWrite is called

	writing chan struct{}   // has an element during a write of Run, and from Pause to Resume
	wake    chan struct{}   // has an element after a Touch
	mu      sync.Mutex      // guards touched
	touched map[string]bool // namespaces in which other clients have written
}

const (
	podsPerNamespace = 250
	podsPerNode      = 30
	maxNamespaces    = 200
	maxReplicas      = 24
	// appsPerDatabase is how many deployments there are for one with a database.
	appsPerDatabase = 3
	// maxBusy is how many deployments are busy at once.
	maxBusy = 8
	// heartbeatOdds and configOdds are how many of a thousand steps are the heartbeat of a node
	// and a changed configuration.
	heartbeatOdds, configOdds = 150, 30
	// answerPeriod is the time between two writes of Run that answer other clients.
	answerPeriod = 4 * time.Millisecond
	// maxDelay is how much time Run makes up for if steps take long.
	maxDelay = 100 * time.Millisecond
	// never is the time between the steps of a Run without any.
	never = time.Duration(math.MaxInt64)
	// streamOfSeed is the second half of the generator's seed, any fixed number.
	streamOfSeed = 0x7469_6469_6e67_73
)

// New returns the fleet of a seed on a server. It writes nothing before Populate.
func New(server *apisim.Server, o Options) *Fleet {
	o.Pods = max(1, o.Pods)
	return &Fleet{
		o: o, server: server, rng: rand.New(rand.NewPCG(o.Seed, streamOfSeed)),
		specs: make(map[types.UID]int64), touched: make(map[string]bool),
		wake: make(chan struct{}, 1), writing: make(chan struct{}, 1),
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
	objects := []Object{f.templates.definition}
	for i := range max(2, 1+f.o.Pods/podsPerNode) {
		node := f.newNode(i, now)
		f.nodes, objects = append(f.nodes, node.Name), append(objects, node)
	}
	for i := range min(max(2, f.o.Pods/podsPerNamespace), maxNamespaces) {
		namespace := f.newNamespace(i)
		f.namespaces = append(f.namespaces, namespace.Name)
		objects = append(objects, namespace)
	}
	if err := f.createAll(objects...); err != nil {
		return err
	}
	for i, pods := 0, 0; pods < f.o.Pods; i++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		replicas := min(1+f.rng.IntN(maxReplicas), f.o.Pods-pods)
		if err := f.createApp(i, int32(replicas), now); err != nil {
			return err
		}
		pods += replicas
	}
	f.size, f.populated = f.server.Snapshot().Objects(), true
	return nil
}

// createAll creates objects in their order.
func (f *Fleet) createAll(objects ...Object) error {
	for _, obj := range objects {
		if _, err := create(f, obj); err != nil {
			return err
		}
	}
	return nil
}

// createApp creates the deployment with an index, with running pods.
func (f *Fleet) createApp(i int, replicas int32, now time.Time) error {
	namespace := f.namespaces[i%len(f.namespaces)]
	d := f.newDeployment(namespace, numbered(appNames, i/len(f.namespaces)), replicas, now)
	objects := []Object{f.newService(d), f.newConfig(d)}
	if i%appsPerDatabase == 0 {
		objects = append(objects, f.newDatabase(d, now))
	}
	if err := f.createAll(objects...); err != nil {
		return err
	}
	d, err := create(f, d)
	if err != nil {
		return err
	}
	f.specs[d.UID] = d.Generation
	set := f.newReplicaSet(&app{deployment: d})
	set.Status = appsv1.ReplicaSetStatus{
		ObservedGeneration: 1, Replicas: replicas, ReadyReplicas: replicas,
		FullyLabeledReplicas: replicas, AvailableReplicas: replicas,
	}
	if set, err = create(f, set); err != nil {
		return err
	}
	for range replicas {
		pod := f.newPod(set)
		schedule(pod, f.randomNode(), now)
		f.startContainers(pod, now)
		if _, err := create(f, pod); err != nil {
			return err
		}
	}
	return nil
}

// Run makes so many steps a second until ctx ends or a write fails. It answers the writes of other
// clients at once, whatever the number of steps.
func (f *Fleet) Run(ctx context.Context, perSecond float64) error {
	next, period := time.Now(), never
	if perSecond > 0 {
		period = time.Duration(float64(time.Second) / perSecond)
	} else {
		next = next.Add(never)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		now, act := time.Now(), f.Answer
		if !now.Before(next) {
			act, next = f.Step, next.Add(period)
			if late := now.Add(-maxDelay); next.Before(late) {
				next = late
			}
		}
		f.Pause()
		err := act(now)
		f.Resume()
		if err != nil {
			return err
		}
		wait := time.Until(next)
		if f.isTouched() {
			wait = min(wait, answerPeriod)
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-f.wake:
		}
	}
	return nil
}

// Pause keeps Run from writing until Resume. It may be called from any goroutine.
func (f *Fleet) Pause() { f.writing <- struct{}{} }

// Resume lets Run write again after Pause.
func (f *Fleet) Resume() { <-f.writing }

// Step makes one write, or none if another client has changed the object meanwhile. Times in
// objects are now, in seconds.
func (f *Fleet) Step(now time.Time) error {
	now = now.Truncate(time.Second)
	if wrote, err := f.answer(now); wrote || err != nil {
		return err
	}
	roll := f.rng.IntN(1000)
	if roll < heartbeatOdds {
		return f.heartbeat(now)
	}
	if wrote, err := f.disturb(roll < heartbeatOdds+configOdds, now); wrote || err != nil {
		return err
	}
	for len(f.busy) > 0 {
		i := f.rng.IntN(len(f.busy))
		a, err := f.app(f.busy[i])
		if err != nil {
			return err
		}
		if a != nil {
			if wrote, err := f.reconcile(a, now); wrote || err != nil {
				return err
			}
		}
		f.busy = slices.Delete(f.busy, i, i+1)
	}
	return f.heartbeat(now)
}

// Touch announces that another client has written in a namespace. It may be called from any
// goroutine.
func (f *Fleet) Touch(namespace string) {
	f.touch(namespace)
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// TouchAll announces that the objects of all namespaces of the fleet may have changed, such as
// after a restored backup. It may be called from any goroutine after Populate.
func (f *Fleet) TouchAll() {
	for _, namespace := range f.namespaces {
		f.Touch(namespace)
	}
}

func (f *Fleet) touch(namespace string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.touched[namespace] = true
}

func (f *Fleet) isTouched() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.touched) > 0
}

// takeTouched returns a namespace that was touched since it was last returned.
func (f *Fleet) takeTouched() (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for namespace := range f.touched {
		delete(f.touched, namespace)
		return namespace, true
	}
	return "", false
}

// Answer makes the next write that the writes of other clients require, if there is one.
func (f *Fleet) Answer(now time.Time) error {
	_, err := f.answer(now.Truncate(time.Second))
	return err
}

// answer does the same and reports whether it made a write.
func (f *Fleet) answer(now time.Time) (bool, error) {
	for namespace, ok := f.takeTouched(); ok; namespace, ok = f.takeTouched() {
		wrote, err := f.settle(namespace, now)
		if wrote {
			f.touch(namespace) // it may need more
		}
		if wrote || err != nil {
			return wrote, err
		}
	}
	return false, nil
}

// settle makes the next write that a namespace needs. It reports whether it made one.
func (f *Fleet) settle(namespace string, now time.Time) (bool, error) {
	apps, orphans, err := f.apps(namespace)
	if err != nil {
		return false, err
	}
	for _, orphan := range orphans {
		if wrote, err := remove(f, orphan); wrote || err != nil {
			return wrote, err
		}
	}
	slices.SortStableFunc(apps, func(a, b *app) int { return f.urgency(b) - f.urgency(a) })
	for _, a := range apps {
		if wrote, err := f.reconcile(a, now); wrote || err != nil {
			return wrote, err
		}
	}
	return false, nil
}

// urgency returns 0 for a deployment that the fleet itself has made busy, and 1 for one that
// another client may have made so.
func (f *Fleet) urgency(a *app) int {
	if slices.Contains(f.busy, a.name()) && f.isOwn(a.deployment) {
		return 0
	}
	return 1
}

// isOwn reports whether no other client has written the spec of a deployment. A restored backup may
// bring back an older generation.
func (f *Fleet) isOwn(d *appsv1.Deployment) bool { return f.specs[d.UID] >= d.Generation }

func (f *Fleet) randomNode() string { return f.nodes[f.rng.IntN(len(f.nodes))] }
