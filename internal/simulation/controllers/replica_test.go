package controllers

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
)

const (
	finalizer  = "simulation.test/secret"
	annotation = "simulation.test/done"
)

// replica is a process with the controller.
type replica struct {
	*world
	name    string
	client  kubernetes.Interface
	secrets *tidings.Informer[*corev1.Secret]
	stop    context.CancelFunc
	ended   chan error
	term    atomic.Pointer[controller.Term]

	mu    sync.Mutex // guards the rest, which is that of a run
	calls map[string]*keyLog
	// inherited has the versions that earlier terms wrote, by object. It is empty after a crash, when a term
	// need not show them at once.
	inherited map[string]string
}

// keyLog has the state of the calls of a key in a run.
type keyLog struct {
	running bool
	uid     types.UID
	gone    bool              // the last call was that for the end of the object
	wrote   map[string]string // the versions of its last writes, by object
}

// inTerm is the runner of a controller, which tells the replica its term.
type inTerm struct {
	controller.Runner
	r *replica
}

func (i inTerm) RunTerm(ctx context.Context, t controller.Term) error {
	_, inOrder := t.(interface {
		HandOver() (map[string]string, bool)
	}).HandOver()
	i.r.mu.Lock()
	i.r.calls, i.r.inherited = map[string]*keyLog{}, i.r.takeOver(inOrder)
	i.r.mu.Unlock()
	i.r.term.Store(&t)
	return i.Runner.RunTerm(ctx, t)
}

// open reports whether the replica's term is open.
func (r *replica) open() bool {
	t := r.term.Load()
	return t != nil && (*t).Remaining() > 0
}

// sending is a transport below the guard: the requests that reach it are sent.
type sending struct {
	*replica
	next http.RoundTripper
}

func (s sending) RoundTrip(req *http.Request) (*http.Response, error) {
	isCall := req.Context().Value(callKey{}) != nil
	if req.Method != http.MethodGet && isCall && !s.open() {
		s.Errorf("C10: %s sends %s %s after its term", s.name, req.Method, req.URL.Path)
	}
	return s.next.RoundTrip(req)
}

// callKey marks the context of calls.
type callKey struct{}

func newReplica(w *world, name string) *replica {
	r := &replica{world: w, name: name, ended: make(chan error, 1), calls: map[string]*keyLog{}}
	config := w.server.Config()
	if len(w.instances) > 0 {
		config = w.server.Balance(w.instances...)
	}
	config.UserAgent, config.QPS = name, -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return sending{r, next} })
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
	w.must(err)
	guard, err := controller.NewGuard(config, controller.GuardOptions{QPS: -1})
	w.must(err)
	r.client, err = kubernetes.NewForConfig(guard.Config())
	w.must(err)
	configMaps, err := tidings.For[*corev1.ConfigMap](factory, w.selection)
	w.must(err)
	r.secrets, err = tidings.For[*corev1.Secret](factory, w.selection)
	w.must(err)
	c, err := controller.New(configMaps, controller.Options[*corev1.ConfigMap]{
		Name: "secrets", Workers: 1 + w.random.IntN(4), Guard: guard,
		Secondaries: []controller.Secondary[*corev1.ConfigMap]{
			controller.Owns[*corev1.ConfigMap](r.secrets),
		},
	}, r.call)
	w.must(err)
	m, err := controller.NewManager(factory, controller.ManagerOptions{
		Guard: guard, Election: &controller.Election{Namespace: "ops", Name: "secrets", Identity: name},
	})
	w.must(err)
	w.must(m.AddController(inTerm{c, r}))
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	go func() { r.ended <- m.Run(ctx) }()
	return r
}

// call is a call of the controller, with its checks.
func (r *replica) call(
	ctx context.Context, request controller.Request[*corev1.ConfigMap],
) (controller.Result, error) {
	log := r.begin(request)
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		log.running = false
	}()
	secret, err := controller.Read(ctx, r.secrets).Get(request.Key)
	exists := err == nil
	if exists {
		r.fresh(log, "secret", request, secret)
	}
	if request.Gone {
		return controller.Result{}, nil
	}
	r.fresh(log, "configmap", request, request.Object)
	ctx = context.WithValue(ctx, callKey{}, true)
	return controller.Result{}, r.reconcile(ctx, log, request.Object, secret, exists)
}

// begin checks that a call may begin now.
func (r *replica) begin(request controller.Request[*corev1.ConfigMap]) *keyLog {
	for _, other := range r.replicas() {
		if other != r && other.open() && r.open() {
			r.Errorf("C1: a call of %s in the term of %s", r.name, other.name)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.calls[request.Key]
	if log == nil {
		log = &keyLog{wrote: map[string]string{}}
		r.calls[request.Key] = log
	}
	if log.running {
		r.Errorf("C1: two calls of %s", request.Key)
	}
	uid := request.Object.UID
	if log.uid != "" && log.uid != uid && !log.gone {
		r.Errorf("C6: %s: a call for %s came without one for the end of %s", request.Key, uid, log.uid)
	}
	log.running, log.uid, log.gone = true, uid, request.Gone
	r.totals.calls.Add(1)
	return log
}

// fresh checks that a cached object is not older than the last write of the run, or of the terms before.
func (r *replica) fresh(
	log *keyLog, kind string, request controller.Request[*corev1.ConfigMap], cached metav1.Object,
) {
	id := kind + string(cached.GetUID())
	wrote := cmp.Or(log.wrote[id], r.inherited[id])
	if wrote != "" && older(cached.GetResourceVersion(), wrote) {
		r.Errorf("C3: %s: a call saw the %s at %s after a write at %s (reasons: %v)", request.Key,
			kind, cached.GetResourceVersion(), wrote, request.Reasons)
	}
}

// note records a write that was answered.
func (r *replica) note(log *keyLog, kind string, made metav1.Object) {
	id := kind + string(made.GetUID())
	log.wrote[id] = made.GetResourceVersion()
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	r.wrote[id] = made.GetResourceVersion()
}

func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// reconcile brings the Secret of a ConfigMap into the state that is wanted.
func (r *replica) reconcile(
	ctx context.Context, log *keyLog, cm *corev1.ConfigMap, secret *corev1.Secret, exists bool,
) error {
	configMaps := r.client.CoreV1().ConfigMaps(cm.Namespace)
	secrets := r.client.CoreV1().Secrets(cm.Namespace)
	next := cm.DeepCopy()
	if cm.DeletionTimestamp != nil {
		if exists {
			err := secrets.Delete(ctx, cm.Name, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &secret.UID},
			})
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
		next.Finalizers = nil
		_, err := configMaps.Update(ctx, next, metav1.UpdateOptions{})
		return err
	}
	want := cm.Data["want"]
	if len(cm.Finalizers) == 0 {
		next.Finalizers = []string{finalizer}
		made, err := configMaps.Update(ctx, next, metav1.UpdateOptions{})
		if err == nil {
			r.note(log, "configmap", made)
		}
		return err
	}
	written, err := secret, error(nil)
	switch {
	case !exists:
		written, err = secrets.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Name:            cm.Name,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cm, configMapKind)},
			},
			StringData: map[string]string{"want": want},
			Data:       map[string][]byte{"want": []byte(want)},
		}, metav1.CreateOptions{})
	case !metav1.IsControlledBy(secret, cm):
		return fmt.Errorf("the secret is of another object")
	case string(secret.Data["want"]) != want:
		changed := secret.DeepCopy()
		changed.Data = map[string][]byte{"want": []byte(want)}
		written, err = secrets.Update(ctx, changed, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	if written != secret {
		r.note(log, "secret", written)
	}
	if cm.Annotations[annotation] != want {
		next.Annotations = map[string]string{annotation: want}
		made, err := configMaps.Update(ctx, next, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		r.note(log, "configmap", made)
	}
	return nil
}
