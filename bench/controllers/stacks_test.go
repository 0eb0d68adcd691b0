package controllers

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	crcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
)

// object is an object of a type that client-go knows.
type object = crclient.Object

// stack is a library for controllers, with the main function of its programs.
type stack struct {
	name string
	main func(ctx context.Context, c *rest.Config, p program) error
}

// start runs a program in a world.
func (s stack) start(w *world, p program) *process {
	config := w.config(p.name)
	r := start(w.T, p, func(ctx context.Context, p program) error { return s.main(ctx, config, p) })
	r.crash = func() {
		r.dead.Store(true)
		w.server.Inject(apisim.Match{Host: hostOf(p.name)}, apisim.Drop())
	}
	return r
}

var (
	ours = stack{
		"Tidings",
		func(ctx context.Context, c *rest.Config, p program) error {
			return tidingsMain(ctx, c, p, newTypedClient)
		},
	}
	controllerRuntime = stack{
		"controller-runtime",
		func(ctx context.Context, c *rest.Config, p program) error {
			return runtimeMain(ctx, c, p, false)
		},
	}
	// consistent is controller-runtime with its experimental client.
	consistent = stack{
		"controller-runtime, read-your-writes",
		func(ctx context.Context, c *rest.Config, p program) error {
			return runtimeMain(ctx, c, p, true)
		},
	}
	clientGo = stack{"client-go", clientGoMain}
)

// typedClient writes with client-go's typed client.
type typedClient struct{ kubernetes.Interface }

func (c typedClient) update(
	ctx context.Context, d *appsv1.Deployment,
) (*appsv1.Deployment, error) {
	return c.AppsV1().Deployments(d.Namespace).Update(ctx, d, metav1.UpdateOptions{})
}

func (c typedClient) updateStatus(
	ctx context.Context, d *appsv1.Deployment,
) (*appsv1.Deployment, error) {
	return c.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, d, metav1.UpdateOptions{})
}

func newTypedClient(c *rest.Config) (client, error) {
	made, err := kubernetes.NewForConfig(c)
	return typedClient{made}, err
}

// tidingsMain is a program of this repository, which writes with a client for the guard's
// configuration.
func tidingsMain(
	ctx context.Context, restConfig *rest.Config, p program,
	newClient func(*rest.Config) (client, error),
) error {
	silent := slog.New(slog.DiscardHandler)
	factory, err := tidings.NewFactory(restConfig, tidings.FactoryOptions{Logger: silent})
	if err != nil {
		return err
	}
	guard, err := controller.NewGuard(restConfig, controller.GuardOptions{})
	if err != nil {
		return err
	}
	writer, err := newClient(guard.Config())
	if err != nil {
		return err
	}
	deployments, err := tidings.For[*appsv1.Deployment](factory, tidings.Selection{})
	if err != nil {
		return err
	}
	c, err := controller.New(deployments, controller.Options[*appsv1.Deployment]{
		Name: p.name, Workers: p.workers, Guard: guard, Logger: silent, StopGrace: 30 * time.Second,
	}, func(
		ctx context.Context, r controller.Request[*appsv1.Deployment],
	) (controller.Result, error) {
		after, err := p.call(ctx, r.Key, r.Object, writer)
		return controller.Result{RequeueAfter: after}, err
	})
	if err != nil {
		return err
	}
	o := controller.ManagerOptions{Guard: guard, Logger: silent}
	if p.elected {
		o.Election = &controller.Election{
			Namespace: opsNamespace, Name: leaseName, Identity: p.name, Duration: leaseDuration,
			Grace: 70 * time.Second,
		}
	}
	manager, err := controller.NewManager(factory, o)
	if err != nil {
		return err
	}
	if err := manager.AddController(c); err != nil {
		return err
	}
	return manager.Run(ctx)
}

// runtimeClient writes with controller-runtime's client.
type runtimeClient struct{ crclient.Client }

func (c runtimeClient) update(
	ctx context.Context, d *appsv1.Deployment,
) (*appsv1.Deployment, error) {
	d = d.DeepCopy()
	return d, c.Update(ctx, d)
}

func (c runtimeClient) updateStatus(
	ctx context.Context, d *appsv1.Deployment,
) (*appsv1.Deployment, error) {
	d = d.DeepCopy()
	return d, c.Status().Update(ctx, d)
}

// runtimeOptions are those of a manager without servers and log.
func runtimeOptions() ctrl.Options {
	return ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
		Logger:  logr.Discard(),
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
			return mapper, nil
		},
		Controller: config.Controller{
			SkipNameValidation: new(true), // of several programs in one process
		},
	}
}

// runtimeMain is a program of controller-runtime.
func runtimeMain(ctx context.Context, c *rest.Config, p program, readYourWrites bool) error {
	o := runtimeOptions()
	o.LeaderElection, o.LeaderElectionID = p.elected, leaseName
	o.LeaderElectionNamespace, o.LeaderElectionReleaseOnCancel = opsNamespace, p.releases
	if readYourWrites {
		o.Client.Cache = &crclient.CacheOptions{EnableReadYourWritesConsistency: new(true)}
	}
	manager, err := ctrl.NewManager(c, o)
	if err != nil {
		return err
	}
	client := manager.GetClient()
	err = builder.ControllerManagedBy(manager).Named(p.name).For(&appsv1.Deployment{}).
		WithOptions(crcontroller.Options{MaxConcurrentReconciles: p.workers}).
		Complete(reconcile.Func(func(
			ctx context.Context, r reconcile.Request,
		) (reconcile.Result, error) {
			d := &appsv1.Deployment{}
			if err := client.Get(ctx, r.NamespacedName, d); apierrors.IsNotFound(err) {
				d = nil
			} else if err != nil {
				return reconcile.Result{}, err
			}
			after, err := p.call(ctx, r.String(), d, runtimeClient{client})
			return reconcile.Result{RequeueAfter: after}, err
		}))
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}
