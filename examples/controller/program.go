package main

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/recorder"
	"github.com/tidings-go/tidings/metrics"
)

// options are the options of the command line.
type options struct {
	leaseNamespace string
	workers        int
	logger         *slog.Logger // nil is slog.Default()
}

// program is a manager of one controller, the recorder of its events, and the handler of probes
// and metrics.
type program struct {
	*controller.Manager
	events  *recorder.Recorder
	handler http.Handler
}

// Run runs the controller until ctx ends.
func (p *program) Run(ctx context.Context) error {
	defer p.events.Close()
	return p.Manager.Run(ctx)
}

// newProgram makes all parts: factory, informers, client, controller, manager.
func newProgram(config *rest.Config, o options) (*program, error) {
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{Logger: o.logger})
	if err != nil {
		return nil, err
	}
	deployments, err := tidings.For[*appsv1.Deployment](factory, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	sets, err := tidings.For[*appsv1.ReplicaSet](factory, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	configMaps, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
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
	r := &rollout{client: client.AppsV1(), sets: sets, configMaps: configMaps}
	c, err := controller.New(deployments, controller.Options[*appsv1.Deployment]{
		Name: name, Workers: o.workers, Guard: guard, Logger: o.logger,
		Secondaries: []controller.Secondary{
			controller.Owns(sets),
			controller.References(configMaps, mentioned),
		},
	}, r.reconcile)
	if err != nil {
		return nil, err
	}
	manager, err := controller.NewManager(factory, controller.ManagerOptions{
		Guard: guard, Logger: o.logger,
		Election: &controller.Election{Namespace: o.leaseNamespace, Name: name},
	})
	if err != nil {
		return nil, err
	}
	if err := manager.AddController(c); err != nil {
		return nil, err
	}
	handler, err := newHandler(factory, manager)
	if err != nil {
		return nil, err
	}
	r.events, err = recorder.New(guard.Config(), name, recorder.Options{})
	return &program{manager, r.events, handler}, err
}

// newHandler returns a handler of /livez, /readyz and /metrics.
func newHandler(factory *tidings.Factory, manager *controller.Manager) (http.Handler, error) {
	collector := metrics.New(metrics.Options{})
	if err := collector.Add(factory, manager); err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(collector); err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/", manager.Handler())
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return mux, nil
}
