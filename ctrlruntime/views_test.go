package ctrlruntime_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/ctrlruntime"
)

// podView is what the controller of TestV4_PodsAsAView reads of a Pod.
type podView struct {
	tidings.Meta `json:"metadata"`
	Status       struct {
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

// owners yields the requests for the ReplicaSets that control an object.
func owners(pod *podView) iter.Seq[reconcile.Request] {
	return func(yield func(reconcile.Request) bool) {
		for _, ref := range pod.OwnerReferences {
			name := types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name}
			if ref.Kind == "ReplicaSet" && !yield(reconcile.Request{NamespacedName: name}) {
				return
			}
		}
	}
}

// counting reconciles ReplicaSets, whole objects, and counts their running pods, which are a view.
type counting struct {
	pods    *tidings.Informer[*podView]
	running chan int
}

// Reconcile counts the running pods of a ReplicaSet.
func (c *counting) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	n := 0
	for _, pod := range c.pods.Lister().Namespace(r.Namespace).All() {
		if pod.Status.Phase == corev1.PodRunning && pod.OwnerReferences[0].Name == r.Name {
			n++
		}
	}
	select {
	case c.running <- n:
	case <-ctx.Done():
	}
	return reconcile.Result{}, nil
}

// TestV4_PodsAsAView has a manager with a controller whose primaries are whole objects of its
// cache, and whose pods are a view beside it.
func TestV4_PodsAsAView(t *testing.T) {
	server := apisim.Start(t)
	mgr, err := ctrl.NewManager(server.Config(), ctrl.Options{
		NewCache: ctrlruntime.NewCache, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, // the test may run twice
	})
	noError(t, err)
	factory, err := ctrlruntime.NewFactory(mgr, tidings.FactoryOptions{Logger: slog.New(slog.DiscardHandler)})
	noError(t, err)
	pods, err := tidings.View[*podView, *corev1.Pod](factory, tidings.Selection{})
	noError(t, err)
	c := &counting{pods, make(chan int)}
	noError(t, ctrl.NewControllerManagedBy(mgr).For(&appsv1.ReplicaSet{}).
		WatchesRawSource(ctrlruntime.Source(pods, owners)).Complete(c))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()

	expect := func(what string, want int) {
		t.Helper()
		for deadline := time.After(30 * time.Second); ; {
			select {
			case n := <-c.running:
				if n == want {
					return
				}
			case <-deadline:
				t.Fatalf("%s: no call has seen %d running pods", what, want)
			}
		}
	}
	rs := createOn(t, server, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
	expect("a ReplicaSet", 0)
	for i := range 2 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: fmt.Sprint("web-", i),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: rs.UID, Controller: new(true),
			}},
		}}
		pod.Status.Phase = corev1.PodRunning
		createOn(t, server, pod)
	}
	expect("its pods", 2)
	_, err = server.Delete(t.Context(), corev1.SchemeGroupVersion.WithResource("pods"), "default", "web-0")
	noError(t, err)
	expect("a pod less", 1)
	stop()
	noError(t, <-ended)
	if err := pods.Run(t.Context()); err == nil {
		t.Error("the informer runs after the end of the manager")
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func createOn[T interface {
	metav1.Object
	runtime.Object
}](t *testing.T, server *apisim.Server, object T) T {
	t.Helper()
	made, err := apisim.Create(t.Context(), server, object)
	noError(t, err)
	return made
}
