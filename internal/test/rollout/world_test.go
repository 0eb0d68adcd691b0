package rollout

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/apisim"
	tidings "github.com/tidings-go/tidings/clientgo/informers"
)

var (
	setsResource = appsv1.SchemeGroupVersion.WithResource("replicasets")
	podsResource = corev1.SchemeGroupVersion.WithResource("pods")
)

const (
	// bearer is the token of the controller.
	bearer = "controller"
	// maxWait bounds the wait for the controller, in virtual time, after the end of a fault:
	// several times the longest pause between two attempts.
	maxWait = 5 * time.Minute
)

// newFactory is the constructor of client-go's informer factories, and of Tidings'.
type newFactory func(kubernetes.Interface, time.Duration) informers.SharedInformerFactory

// world is a server, the users and the kubelet beside it, and the controller.
type world struct {
	t      *testing.T
	server *apisim.Server
	make   newFactory
	stop   func() // stops the controller and the kubelet; nil before they run

	mu      sync.Mutex // guards the rest
	created int        // pods that the controller created
	writes  int        // requests of the controller that changed something
	limit   int        // how many pods the replica set may have; 0 is any
	least   int        // how many pods must be ready at any time
	errors  []error    // the newest that the controller reported
}

var full = flag.Bool("rollout.full", os.Getenv("TIDINGS_ROLLOUT_FULL") != "",
	"lead a replica set through the faults with client-go's informers too (TIDINGS_ROLLOUT_FULL)")

var stacks = map[string]newFactory{
	"client-go": informers.NewSharedInformerFactory,
	"tidings":   tidings.NewSharedInformerFactory,
}

// inWorlds runs a test with the informers of some stacks, each in a bubble beside other tests.
func inWorlds(t *testing.T, names []string, test func(w *world)) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, make: stacks[name]}
				w.server = apisim.Options{Seed: 1, Middleware: w.observe}.Start(t)
				test(w)
			})
		})
	}
}

// start starts the controller and the kubelet, which the end of the test stops.
func (w *world) start() {
	w.t.Helper()
	config := w.server.Config()
	config.BearerToken = bearer
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	factory := w.make(client, 0)
	controller, err := newController(client, factory, w.reported)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	factory.StartWithContext(ctx)
	var running sync.WaitGroup
	running.Go(func() { controller.run(ctx) })
	running.Go(func() { w.kubelet(ctx) })
	w.stop = sync.OnceFunc(func() {
		stop()
		running.Wait()
		factory.Shutdown()
	})
	w.t.Cleanup(w.stop)
}

// kubelet makes pods ready, some time after they were made.
func (w *world) kubelet(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, pod := range list[*corev1.Pod](w, podsResource) {
			if pod.Status.Phase != corev1.PodPending {
				continue
			}
			changed := pod.DeepCopy()
			changed.Status.Phase = corev1.PodRunning
			changed.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			_, err := w.server.Update(ctx, changed)
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				w.t.Error(err)
			}
		}
	}
}

// observe counts and checks the writes that reach the server.
func (w *world) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			next.ServeHTTP(rw, r)
			return
		}
		answer := &answered{ResponseWriter: rw}
		defer func() { // also when the connection breaks in the middle of the answer
			if answer.code < 300 {
				w.written(r)
			}
		}()
		next.ServeHTTP(answer, r)
	})
}

// answered knows the status of an answer that is not streamed.
type answered struct {
	http.ResponseWriter
	code int
}

func (a *answered) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

// written counts a write, and checks the bounds right after it.
func (w *world) written(r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if r.Method == http.MethodPost && r.URL.Path == "/api/v1/namespaces/default/pods" {
		w.created++
	}
	ready, active := 0, 0
	sets := list[*appsv1.ReplicaSet](w, setsResource)
	for _, pod := range list[*corev1.Pod](w, podsResource) {
		owner := metav1.GetControllerOf(pod)
		if len(sets) == 0 || owner == nil || owner.UID != sets[0].UID || pod.Labels["app"] != "web" {
			continue
		}
		active++
		if pod.Status.Phase == corev1.PodRunning {
			ready++
		}
	}
	if w.limit > 0 && active > w.limit {
		w.t.Errorf("after %s %s the replica set has %d pods, want %d at most", r.Method, r.URL.Path, active, w.limit)
	}
	if ready < w.least {
		w.t.Errorf("after %s %s %d pods are ready, want %d at least", r.Method, r.URL.Path, ready, w.least)
	}
}

// reported keeps the newest errors of the controller.
func (w *world) reported(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errors = append(w.errors, fmt.Errorf("%s %w", time.Now().Format(time.TimeOnly), err))
	w.errors = w.errors[max(0, len(w.errors)-10):]
}

// bounds sets how many pods a replica set may have, and how many must be ready, from now
// on.
func (w *world) bounds(limit, least int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit, w.least = limit, least
}

// count returns how many pods the controller has created, and how often it wrote.
func (w *world) count() (created, writes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.created, w.writes
}

// list returns the objects of a resource on the server, none while it does not serve it.
func list[T runtime.Object](w *world, resource schema.GroupVersionResource) []T {
	objects, _, err := w.server.List(context.Background(), resource, "default")
	if err != nil {
		if !apierrors.IsNotFound(err) {
			w.t.Error(err)
		}
		return nil
	}
	typed := make([]T, len(objects))
	for i, obj := range objects {
		typed[i] = obj.(T)
	}
	return typed
}

func (w *world) create(objects ...runtime.Object) {
	w.t.Helper()
	for _, obj := range objects {
		if _, err := w.server.Create(w.t.Context(), obj); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) delete(resource schema.GroupVersionResource, name string) {
	w.t.Helper()
	if _, err := w.server.Delete(w.t.Context(), resource, "default", name); err != nil {
		w.t.Fatal(err)
	}
}

// edit changes an object, again after a conflict.
func edit[T interface {
	runtime.Object
	DeepCopy() T
}](w *world, resource schema.GroupVersionResource, name string, change func(T)) {
	w.t.Helper()
	for {
		obj, err := w.server.Get(w.t.Context(), resource, "default", name)
		if err != nil {
			w.t.Fatal(err)
		}
		changed := obj.(T).DeepCopy()
		change(changed)
		_, err = w.server.Update(w.t.Context(), changed)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			w.t.Fatal(err)
		}
	}
}

func TestMain(m *testing.M) {
	// client-go's informers log each of thousands of intended failures.
	klog.SetLogger(logr.Discard())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	// The other handlers of utilruntime delay frequent errors by the clock of the process:
	// from within a bubble of virtual time that can be decades.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	os.Exit(m.Run())
}
