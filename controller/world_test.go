package controller_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/objects"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// world is a server, a factory and a guarded client.
type world struct {
	*testing.T
	ctx     context.Context
	server  *apisim.Server
	factory *tidings.Factory
	guard   *controller.Guard
	client  kubernetes.Interface
}

// inWorld runs a test in a bubble with a world. Everything that was started ends with it.
func inWorld(t *testing.T, test func(*world)) {
	synctest.Test(t, func(t *testing.T) {
		server := apisim.Start(t)
		config := server.Config()
		config.QPS = -1
		factory, err := tidings.NewFactory(config, tidings.FactoryOptions{Logger: slog.New(slog.DiscardHandler)})
		fatal(t, err)
		guard, err := controller.NewGuard(config, controller.GuardOptions{})
		fatal(t, err)
		client, err := kubernetes.NewForConfig(guard.Config())
		fatal(t, err)
		ctx, stop := context.WithCancel(t.Context())
		w := &world{t, ctx, server, factory, guard, client}
		for _, name := range []string{"a", "b"} {
			create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		defer func() {
			stop()
			fatal(t, w.factory.Shutdown(context.Background()))
			synctest.Wait()
		}()
		test(w)
	})
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// informer returns an informer of all objects of a type.
func informer[T tidings.Object](w *world) *tidings.Informer[T] {
	w.Helper()
	i, err := tidings.For[T](w.factory, tidings.Selection{})
	fatal(w.T, err)
	return i
}

// start starts the factory and runs a controller, and returns a function that stops it and
// returns the error of Run.
func start[T tidings.Object](w *world, c *controller.Controller[T]) (stop func() error) {
	w.Helper()
	fatal(w.T, w.factory.Start(w.ctx))
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// create writes an object past the clients.
func create[T objects.Object](w *world, obj T) T {
	w.Helper()
	made, err := apisim.Create(w.ctx, w.server, obj)
	fatal(w.T, err)
	return made
}

// fill warms slots, and waits until the events of their objects were handled. Without the wait, an
// event may come after the call that the slot's owner makes at its beginning, and lead to one more.
func fill(ctx context.Context, t *testing.T, s *controller.Slots, slots slot.Set) {
	t.Helper()
	fatal(t, s.Warm(ctx, slots))
	synctest.Wait()
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func deployment(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
}

// calls is a log of calls.
type calls struct {
	mu  sync.Mutex
	log []string
}

func (c *calls) add(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf(format, args...))
}

// take returns the log, and empties it.
func (c *calls) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.log
	c.log = nil
	return log
}

var (
	getNow    metav1.GetOptions
	deleteNow metav1.DeleteOptions
	updateNow metav1.UpdateOptions
	discard   = slog.New(slog.DiscardHandler)
)

// delayWatches makes every event of a watch late, but no list. Call it before asking for
// informers.
func delayWatches(w *world, resource string, d time.Duration) {
	w.Helper()
	var err error
	w.factory, err = tidings.NewFactory(w.server.Config(), tidings.FactoryOptions{
		Logger: discard, Transport: tidings.Transport{NoStreamedLists: true},
	})
	fatal(w.T, err)
	w.server.Inject(apisim.Match{Verb: "watch", Resource: resource}, apisim.Stall(apisim.EachFrame, d))
}

// page is the answer of a proxy that does not know the path, not of the API server.
var page = apisim.Answer(func(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "<html>default backend - 404</html>", http.StatusNotFound)
})
