package fleet

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/source"
)

// Options are the choices of a [Fleet].
type Options struct {
	// Seed starts the generator of random numbers.
	Seed uint64
	// Pods is the number of pods that Populate creates, and the approximate number later; less than
	// 1 means 1.
	Pods int
	// Namespaces is the number of namespaces that Populate creates; 0 means one for 250 pods.
	Namespaces int
	// Written reports the number of all writes where replicas run the controllers (see NewReplica);
	// nil means that Manager runs the controllers.
	Written func() uint64
	// Logger receives warnings and errors; nil is slog.Default().
	Logger *slog.Logger
}

// Fleet is a busy cluster on a simulated server.
type Fleet struct {
	o          Options
	server     *apisim.Server
	rng        *rand.Rand
	templates  templates
	namespaces []string
	nodes      []string // names of the nodes
	apps       []string // the keys of the deployments that Populate has created
	factory    *tidings.Factory
}

const (
	podsPerNamespace = 250
	podsPerNode      = 30
	maxNamespaces    = 200
	maxReplicas      = 24
	// streamOfSeed is the second half of the generator's seed, an arbitrary constant.
	streamOfSeed = 0x7469_6469_6e67_73
)

// New returns the fleet of a seed on a server. It writes nothing before Populate.
func New(server *apisim.Server, o Options) *Fleet {
	o.Pods, o.Logger = max(1, o.Pods), cmp.Or(o.Logger, slog.Default())
	return &Fleet{o: o, server: server, rng: rand.New(rand.NewPCG(o.Seed, streamOfSeed))}
}

// Namespace returns one of the fleet's namespaces. It may be called after Populate.
func (f *Fleet) Namespace() string { return f.namespaces[0] }

// Populate creates the objects, owners before their dependents. Their times are not before now.
func (f *Fleet) Populate(ctx context.Context, now time.Time) (err error) {
	now = now.Truncate(time.Second)
	if f.templates, err = readTemplates(); err != nil {
		return err
	}
	var objects []runtime.Object
	for i := range max(2, 1+f.o.Pods/podsPerNode) {
		node := f.newNode(i, now)
		f.nodes, objects = append(f.nodes, node.Name), append(objects, node)
	}
	for i := range cmp.Or(f.o.Namespaces, min(max(2, f.o.Pods/podsPerNamespace), maxNamespaces)) {
		namespace := f.newNamespace(i)
		f.namespaces = append(f.namespaces, namespace.Name)
		objects = append(objects, namespace)
	}
	if err := f.create(ctx, objects...); err != nil {
		return err
	}
	for i, pods := 0, 0; pods < f.o.Pods; i++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		size := min(1+f.rng.IntN(maxReplicas), f.o.Pods-pods)
		if err := f.createApp(ctx, i, int32(size), now); err != nil {
			return err
		}
		pods += size
	}
	return nil
}

func (f *Fleet) create(ctx context.Context, objects ...runtime.Object) error {
	for _, obj := range objects {
		if _, err := f.server.Create(ctx, obj); err != nil {
			return fmt.Errorf("fleet: create a %T: %w", obj, err)
		}
	}
	return nil
}

// createApp creates the deployment with index i, with running pods.
func (f *Fleet) createApp(ctx context.Context, i int, size int32, now time.Time) error {
	namespace := f.namespaces[i%len(f.namespaces)]
	d := f.newDeployment(namespace, numbered(appNames, i/len(f.namespaces)), size, now)
	f.apps = append(f.apps, source.Key(d.Namespace, d.Name))
	if err := f.create(ctx, f.newService(d), f.newConfig(d)); err != nil {
		return err
	}
	d, err := apisim.Create(ctx, f.server, d)
	if err != nil {
		return err
	}
	set := newReplicaSet(d, 1)
	set.Spec.Replicas = new(size)
	set.Status = appsv1.ReplicaSetStatus{
		ObservedGeneration: 1, Replicas: size, ReadyReplicas: size, FullyLabeledReplicas: size,
		AvailableReplicas: size,
	}
	if set, err = apisim.Create(ctx, f.server, set); err != nil {
		return err
	}
	for range size {
		pod := newPod(set)
		pod.Name = pod.GenerateName + randomName(f.rng, 5)
		pod.Spec.NodeName = f.nodes[f.rng.IntN(len(f.nodes))]
		setCondition(pod, corev1.PodScheduled, corev1.ConditionTrue, now)
		startContainers(pod, f.rng.Uint32(), now)
		if err := f.create(ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// Health describes the informers of the controllers. Call it after Manager.
func (f *Fleet) Health() []tidings.Health { return f.factory.Health() }

// Manager returns a manager of the cluster's controllers, unless replicas run them. While it runs,
// users write if there are fewer than perSecond writes a second, those of the controllers included;
// with 0 they do not. Call it after Populate. Run one such manager at a time.
func (f *Fleet) Manager(perSecond float64) (*controller.Manager, error) {
	c, err := newCluster(f.server.Config(), f.o.Logger, nil)
	if err != nil {
		return nil, err
	}
	f.factory = c.factory
	var runners []newRunner
	if f.o.Written == nil {
		runners = c.controllers()
	}
	if perSecond > 0 || f.o.Written != nil {
		runners = append(runners,
			func() (controller.Runner, error) { return newUsers(f, c, perSecond), nil })
	}
	return c.newManager(runners)
}

// NewReplica returns a manager of the cluster's controllers for the slots of one of several
// processes, and its factory. Slots are by namespace.
func NewReplica(
	config *rest.Config, logger *slog.Logger, slots *controller.Slots,
) (*controller.Manager, *tidings.Factory, error) {
	c, err := newCluster(config, logger, slots)
	if err != nil {
		return nil, nil, err
	}
	manager, err := c.newManager(c.controllers())
	return manager, c.factory, err
}

// newRunner makes one runner of a manager.
type newRunner func() (controller.Runner, error)

// controllers returns the controllers that may be divided among replicas.
func (c *cluster) controllers() []newRunner {
	return []newRunner{c.newDeployments, c.newReplicaSets, c.newPods}
}

func (c *cluster) newManager(runners []newRunner) (*controller.Manager, error) {
	manager, err := controller.NewManager(c.factory, controller.ManagerOptions{
		Guard: c.guard, Logger: c.logger,
	})
	if err != nil {
		return nil, err
	}
	for _, newRunner := range runners {
		runner, err := newRunner()
		if err == nil {
			err = manager.AddController(runner)
		}
		if err != nil {
			return nil, err
		}
	}
	return manager, nil
}
