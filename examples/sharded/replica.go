package main

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/debug"
	"github.com/tidings-go/tidings/metrics"
	"github.com/tidings-go/tidings/shard"
)

// name is the name of the controller, and of the group of its replicas.
const name = "checksums"

// options are the command-line options of a replica.
type options struct {
	namespace  string        // of the Leases
	identity   string        // begins the names of the replica's Leases
	generation string        // of the program, as in shard.Options
	lease      time.Duration // 0 is 15 s
}

// replica is a manager of one controller, which has a part of the objects.
type replica struct {
	options
	config  *rest.Config
	factory *tidings.Factory
	slots   *controller.Slots
	manager *controller.Manager
}

func newReplica(config *rest.Config, o options) (*replica, error) {
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
	if err != nil {
		return nil, err
	}
	slots := controller.NewSlots(controller.ByNamespace)
	configMaps, err := tidings.For[*corev1.ConfigMap](factory,
		tidings.Selection{Labels: selector, Slots: slots.Held()})
	if err != nil {
		return nil, err
	}
	guard, err := controller.NewGuard(config, controller.GuardOptions{})
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(guard.Config())
	if err != nil {
		return nil, err
	}
	c, err := controller.New(configMaps, controller.Options[*corev1.ConfigMap]{
		Name: name, Workers: 4, Guard: guard, Slots: slots,
	}, checksums{client.CoreV1(), o.identity}.reconcile)
	if err != nil {
		return nil, err
	}
	// Without an election: the controller runs on each replica.
	manager, err := controller.NewManager(factory, controller.ManagerOptions{Guard: guard})
	if err != nil {
		return nil, err
	}
	return &replica{o, config, factory, slots, manager}, manager.AddController(c)
}

// Run makes this process a member of the group, and runs the controller, until ctx ends. Then the
// slots are handed over, and the Lease is released. serve serves pages, probes and metrics while run runs.
// After an error that wraps shard.ErrStragglers, calls still run: end the process.
func (r *replica) Run(
	ctx context.Context, serve func(h http.Handler, run func(context.Context) error) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, err := shard.Join(ctx, r.config, r.slots, shard.Options{
		Namespace: r.namespace, Name: name, Identity: r.identity, Generation: r.generation,
		Duration: r.lease,
	})
	if err != nil {
		return err
	}
	pages := debug.New(debug.Options{})
	defer pages.Close()
	if err := pages.Add(r.factory, r.manager, group); err != nil {
		return err
	}
	numbers, err := r.metrics(group)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	mux.Handle("/livez", r.manager.Handler())
	mux.Handle("/readyz", r.manager.Handler())
	mux.Handle("/metrics", numbers)
	return serve(mux, r.manager.Run)
}

func (r *replica) metrics(group *shard.Group) (http.Handler, error) {
	collector := metrics.New(metrics.Options{})
	if err := collector.Add(r.factory, r.manager, group); err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(collector); err != nil {
		return nil, err
	}
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), nil
}
