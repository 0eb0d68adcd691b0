package main

import (
	"fmt"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
)

// options are the options of the command line.
type options struct {
	controllers    controller.Names
	workers        int           // of each controller
	podTTL         time.Duration // of pods that have ended
	leaseNamespace string
	logger         *slog.Logger // nil is slog.Default()
}

// shared has the common parts of the controllers.
type shared struct {
	options
	factory *tidings.Factory
	guard   *controller.Guard
	client  kubernetes.Interface
}

// newManager returns a manager with the table of the controllers.
func newManager(config *rest.Config, o options) (*controller.Manager, error) {
	if o.podTTL < 0 {
		return nil, fmt.Errorf("--pod-ttl is %v: use 0 or more", o.podTTL)
	}
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{Logger: o.logger})
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
	m, err := controller.NewManager(factory, controller.ManagerOptions{
		Controllers: o.controllers, Guard: guard, Logger: o.logger,
		Election: &controller.Election{Namespace: o.leaseNamespace, Name: "examples-manager"},
	})
	if err != nil {
		return nil, err
	}
	s := &shared{o, factory, guard, client}
	return m, m.Add(
		controller.Descriptor{
			Name: "budgets", Aliases: []string{"pdb"}, New: s.newBudgets,
			Requires: []schema.GroupVersionResource{
				policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"),
			},
		},
		controller.Descriptor{Name: "podgc", DefaultOff: true, New: s.newPodGC},
		controller.Descriptor{Name: "teams", New: s.newTeams},
	)
}

// deploymentOptions are those of a controller of Deployments.
func (s *shared) deploymentOptions(
	name string, secondary controller.Secondary[*appsv1.Deployment],
) controller.Options[*appsv1.Deployment] {
	return controller.Options[*appsv1.Deployment]{
		Name: name, Workers: s.workers, Guard: s.guard, Logger: s.logger,
		Secondaries: []controller.Secondary[*appsv1.Deployment]{secondary},
	}
}
