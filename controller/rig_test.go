package controller_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/objects"
)

type (
	request   = controller.Request[*corev1.ConfigMap]
	options   = controller.Options[*corev1.ConfigMap]
	secondary = controller.Secondary

	secretsSecondary = controller.SecondaryOf[*corev1.Secret]
)

// known returns the cached object, or its last state if it is gone.
func known[T tidings.Object](r controller.Request[T]) T {
	if r.Gone {
		return r.Last
	}
	return r.Object
}

// newController returns a guarded controller of ConfigMaps.
func newController(
	w *world, o options, f func(context.Context, request) (controller.Result, error),
) *controller.Controller[*corev1.ConfigMap] {
	w.Helper()
	return control(w, informer[*corev1.ConfigMap](w), o, f)
}

func control[T tidings.Object](
	w *world, i *tidings.Informer[T], o controller.Options[T], f controller.Func[T],
) *controller.Controller[T] {
	w.Helper()
	if o.Name == "" {
		o.Name = "test"
	}
	o.Guard = w.guard
	if o.Logger == nil {
		o.Logger = discard
	}
	c, err := controller.New(i, o, f)
	fatal(w.T, err)
	return c
}

// isCalled returns a function that logs the keys of its calls.
func isCalled(log *calls) func(context.Context, request) (controller.Result, error) {
	return func(_ context.Context, r request) (controller.Result, error) {
		switch {
		case r.Left:
			log.add("%s left", r.Key)
		case r.Gone:
			log.add("%s gone", r.Key)
		default:
			log.add("%s", r.Key)
		}
		return controller.Result{}, nil
	}
}

// expect compares the calls since the last time.
func (c *calls) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := c.take(); !slices.Equal(got, want) {
		t.Errorf("calls: %q\nwant:  %q", got, want)
	}
}

// update changes an object past the clients.
func update[T objects.Object](w *world, obj T) T {
	w.Helper()
	made, err := apisim.Update(w.ctx, w.server, obj)
	fatal(w.T, err)
	return made
}

func secret(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// ownedBy gives an object an owner.
func ownedBy[T objects.Object](obj T, owner metav1.Object, apiVersion, kind string) T {
	obj.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true),
	}})
	return obj
}

// testTerm is a term that a test ends.
type testTerm struct {
	ctx     context.Context
	end     context.CancelCauseFunc
	left    map[string]string
	ok      bool
	mu      sync.Mutex
	reached map[string]string
}

func newTerm() *testTerm {
	t := &testTerm{}
	t.ctx, t.end = context.WithCancelCause(context.Background())
	return t
}

func (t *testTerm) Done() <-chan struct{} { return t.ctx.Done() }
func (t *testTerm) Err() error            { return context.Cause(t.ctx) }
func (t *testTerm) Remaining() time.Duration {
	if t.ctx.Err() != nil {
		return 0
	}
	return time.Hour
}

// handingTerm is a term that hands versions over.
type handingTerm struct{ *testTerm }

func (t handingTerm) HandOver() (map[string]string, bool) { return t.left, t.ok }
func (t handingTerm) Reached(versions map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reached = versions
}

// startTerm runs a controller in a term.
func startTerm[T tidings.Object](w *world, c *controller.Controller[T], t controller.Term) (stop func() error) {
	w.Helper()
	fatal(w.T, w.factory.Start(w.ctx))
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.RunTerm(ctx, t) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// lateSecrets creates the ConfigMap a/x, and returns a synced informer of Secrets whose events are late.
func lateSecrets(w *world, late time.Duration) *tidings.Informer[*corev1.Secret] {
	w.Helper()
	create(w, configMap("a", "x"))
	delayWatches(w, "secrets", late)
	secrets := informer[*corev1.Secret](w)
	fatal(w.T, w.factory.Start(w.ctx))
	fatal(w.T, secrets.WaitForSync(w.ctx))
	return secrets
}

// twoNamespaces creates a ConfigMap with a state in each of two namespaces, and returns an informer that
// watches them separately, and the one in a.
func twoNamespaces(w *world) (*tidings.Informer[*corev1.ConfigMap], *corev1.ConfigMap) {
	w.Helper()
	first := create(w, withState(configMap("a", "x"), "1"))
	create(w, withState(configMap("b", "y"), "other"))
	i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Namespaces: []string{"a", "b"}})
	fatal(w.T, err)
	return i, first
}
