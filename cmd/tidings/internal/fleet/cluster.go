package fleet

import (
	"context"
	"errors"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1client "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
)

const (
	// UserAgent is the user agent of the controllers and the users.
	UserAgent = "tidings-fleet"
	// workers is the number of concurrent calls of each controller.
	workers = 4
	// longestWait bounds the time until a failed call or watch is tried again. The cluster then
	// proceeds soon after its server has come back.
	longestWait = 2 * time.Second
)

// cluster has the clients and informers that the controllers and the users share.
type cluster struct {
	logger  *slog.Logger
	factory *tidings.Factory
	guard   *controller.Guard
	slots   *controller.Slots // nil if the controllers are not divided
	appsV1  appsv1client.AppsV1Interface
	coreV1  corev1client.CoreV1Interface

	nodes       *tidings.Informer[*corev1.Node]
	deployments *tidings.Informer[*appsv1.Deployment]
	sets        *tidings.Informer[*appsv1.ReplicaSet]
	pods        *tidings.Informer[*corev1.Pod]
}

// newCluster makes the clients and the informers for a server. With slots, the informers hold the
// objects of these slots, and all nodes.
func newCluster(
	config *rest.Config, logger *slog.Logger, slots *controller.Slots,
) (*cluster, error) {
	config = rest.CopyConfig(config)
	config.UserAgent, config.QPS = UserAgent, -1
	o := tidings.FactoryOptions{Logger: logger}
	o.Transport.Backoff.Max = longestWait
	factory, err := tidings.NewFactory(config, o)
	if err != nil {
		return nil, err
	}
	guard, err := controller.NewGuard(config, controller.GuardOptions{QPS: -1})
	if err != nil {
		return nil, err
	}
	typed := guard.Config()
	typed.ContentType = runtime.ContentTypeProtobuf
	client, err := rest.HTTPClientFor(typed)
	if err != nil {
		return nil, err
	}
	// With a whole clientset the program would contain the methods of all groups, which take 9 MB.
	appsV1, err := appsv1client.NewForConfigAndClient(typed, client)
	if err != nil {
		return nil, err
	}
	coreV1, err := corev1client.NewForConfigAndClient(typed, client)
	if err != nil {
		return nil, err
	}
	c := &cluster{
		logger: logger, factory: factory, guard: guard, slots: slots,
		appsV1: appsV1, coreV1: coreV1,
	}
	var held tidings.Selection
	if slots != nil {
		held.Slots = slots.Held()
	}
	var errs [4]error
	c.nodes, errs[0] = tidings.For[*corev1.Node](factory, tidings.Selection{})
	c.deployments, errs[1] = tidings.For[*appsv1.Deployment](factory, held)
	c.sets, errs[2] = tidings.For[*appsv1.ReplicaSet](factory, held)
	c.pods, errs[3] = tidings.For[*corev1.Pod](factory, held)
	return c, errors.Join(errs[:]...)
}

func options[T tidings.Object](
	c *cluster, name string, secondaries ...controller.Secondary,
) controller.Options[T] {
	return controller.Options[T]{
		Name: name, Workers: workers, Guard: c.guard, Logger: c.logger, Slots: c.slots,
		Secondaries: secondaries, MaxDelay: longestWait,
	}
}

// isAlive reports whether the object of a request exists and is not being deleted.
func isAlive[T tidings.Object](r controller.Request[T]) bool {
	return !r.Gone && r.Object.GetDeletionTimestamp() == nil
}

// deleter is the method of typed clients, of one resource and namespace, that deletes objects.
type deleter interface {
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// remove deletes an object, but not a later one with its name. It returns no error for an object
// that does not exist.
func remove(
	ctx context.Context, client deleter, obj metav1.Object, o metav1.DeleteOptions,
) error {
	o.Preconditions = metav1.NewUIDPreconditions(string(obj.GetUID()))
	err := client.Delete(ctx, obj.GetName(), o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
