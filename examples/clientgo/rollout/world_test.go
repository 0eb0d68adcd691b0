package rollout_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/apisim"
	tidings "github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/examples/clientgo/rollout"
)

var (
	deploymentsResource = appsv1.SchemeGroupVersion.WithResource("deployments")
	setsResource        = appsv1.SchemeGroupVersion.WithResource("replicasets")
	podsResource        = corev1.SchemeGroupVersion.WithResource("pods")
)

const (
	// bearer is what the controller shows the server.
	bearer = "controller"
	// patience is how long the controller may take, in virtual time, when nothing is
	// wrong any more: the longest pause between two attempts, of informers and of the
	// controller, several times.
	patience = 5 * time.Minute
)

// newFactory is the constructor of client-go's informer factories, and of Tidings'.
type newFactory func(kubernetes.Interface, time.Duration) informers.SharedInformerFactory

// world is a server, the users and the kubelet beside it, and the controller.
type world struct {
	t      *testing.T
	server *apisim.Server
	make   newFactory
	stop   func() // stops the controller and the kubelet; nil before they run
	lossy  bool   // empty replica sets may be lost, and are not looked at

	mu      sync.Mutex // guards the rest
	created int        // pods that the controller created
	writes  int        // requests of the controller that changed something
	limit   int        // how many pods a replica set may have; 0 is any
	least   int        // how many pods must be ready at any time
	errors  []error    // the newest that the controller reported
}

// inWorlds runs a test with the informers of client-go and with those of Tidings.
func inWorlds(t *testing.T, test func(w *world)) {
	t.Helper()
	for name, factory := range map[string]newFactory{
		"client-go": informers.NewSharedInformerFactory,
		"tidings":   tidings.NewSharedInformerFactory,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{t: t, make: factory}
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
	controller, err := rollout.New(client, factory, rollout.Options{Report: w.reported})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	factory.StartWithContext(ctx)
	var running sync.WaitGroup
	running.Go(func() { controller.Run(ctx) })
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

// observe sees every request that no fault has kept from the server.
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

// written checks, right after a write, what must hold at any time.
func (w *world) written(r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if r.Method == http.MethodPost && r.URL.Path == "/api/v1/namespaces/default/pods" {
		w.created++
	}
	ready := 0
	active := map[string]int{}
	selectors := map[string]labels.Selector{}
	for _, set := range list[*appsv1.ReplicaSet](w, setsResource) {
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		if err != nil {
			w.t.Error(err)
			continue
		}
		selectors[string(set.UID)] = selector
	}
	for _, pod := range list[*corev1.Pod](w, podsResource) {
		owner := metav1.GetControllerOf(pod)
		if owner == nil || selectors[string(owner.UID)] == nil || !selectors[string(owner.UID)].Matches(labels.Set(pod.Labels)) {
			continue
		}
		if active[owner.Name]++; w.limit > 0 && active[owner.Name] > w.limit {
			w.t.Errorf("after %s %s replica set %s has %d pods, and %d are wanted at most", r.Method, r.URL.Path, owner.Name, active[owner.Name], w.limit)
		}
		if pod.Status.Phase == corev1.PodRunning {
			ready++
		}
	}
	if ready < w.least {
		w.t.Errorf("after %s %s %d pods are ready, and %d are wanted at least", r.Method, r.URL.Path, ready, w.least)
	}
}

// reported keeps the newest of what the controller reports.
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

// list returns what the server has of a resource, nothing while it does not know it.
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

func get[T runtime.Object](w *world, resource schema.GroupVersionResource, name string) T {
	w.t.Helper()
	obj, err := w.server.Get(w.t.Context(), resource, "default", name)
	if err != nil {
		w.t.Fatal(err)
	}
	return obj.(T)
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

// edit changes an object, again if somebody else did at once.
func edit[T interface {
	runtime.Object
	DeepCopy() T
}](w *world, resource schema.GroupVersionResource, name string, change func(T)) {
	w.t.Helper()
	for {
		changed := get[T](w, resource, name).DeepCopy()
		change(changed)
		_, err := w.server.Update(w.t.Context(), changed)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			w.t.Fatal(err)
		}
	}
}
