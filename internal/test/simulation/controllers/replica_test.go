package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	planted "github.com/tidings-go/tidings/internal/test/secrets"
)

const (
	finalizer  = "simulation.test/secret"
	annotation = "simulation.test/done"
	noted      = "simulation.test/noted"
)

// replica is a process with the controllers.
type replica struct {
	*world
	name    string
	client  kubernetes.Interface
	secrets *tidings.Informer[*secretView]
	jobs    []*job
	eyes    eyes
	stop    context.CancelFunc
	ended   chan error
}

// job is a controller of a replica, with its term.
type job struct {
	*replica
	name      string
	reconcile func(context.Context, *keyLog, controller.Request[*corev1.ConfigMap]) error
	term      atomic.Pointer[controller.Term]

	mu    sync.Mutex // guards the rest, which is that of a run
	calls map[string]*keyLog
	// inherited has the versions that earlier terms wrote, by object. It is empty after a crash,
	// when a term need not show them at once.
	inherited map[string]string
}

// keyLog has the state of the calls of a key in a run.
type keyLog struct {
	running bool
	uid     types.UID
	gone    bool              // the last call was that for the end of the object
	wrote   map[string]string // the versions of its last writes, by object
}

// secretView is a view of Secrets, which are decoded whole.
type secretView struct {
	tidings.Meta `json:"metadata"`
	Data         map[string][]byte `json:"data"`
}

func (s *secretView) isControlledBy(uid types.UID) bool {
	return slices.ContainsFunc(s.OwnerReferences, func(ref metav1.OwnerReference) bool {
		return ref.UID == uid && ref.Controller != nil && *ref.Controller
	})
}

// inTerm is the runner of a controller, which tells the job its term.
type inTerm struct {
	controller.Runner
	j *job
}

func (i inTerm) RunTerm(ctx context.Context, t controller.Term) error {
	_, inOrder := t.(interface {
		HandOver() (map[string]string, bool)
	}).HandOver()
	i.j.mu.Lock()
	i.j.calls, i.j.inherited = map[string]*keyLog{}, i.j.takeOver(i.j.name, inOrder)
	i.j.mu.Unlock()
	i.j.term.Store(&t)
	return i.Runner.RunTerm(ctx, t)
}

// open reports whether the job's term is open.
func (r *job) open() bool {
	t := r.term.Load()
	return t != nil && (*t).Remaining() > 0
}

// sending is a transport below the guard: the requests that reach it are sent.
type sending struct {
	*replica
	next http.RoundTripper
}

func (s sending) RoundTrip(req *http.Request) (*http.Response, error) {
	if j, ok := req.Context().Value(callKey{}).(*job); ok && req.Method != http.MethodGet && !j.open() {
		s.Errorf("C10: %s of %s sends %s %s after its term", j.name, s.name, req.Method, req.URL.Path)
	}
	return s.next.RoundTrip(req)
}

// callKey is the key of the job in the context of its calls.
type callKey struct{}

func newReplica(w *world, name string) *replica {
	r := &replica{world: w, name: name, ended: make(chan error, 1)}
	config := w.server.Config()
	if len(w.instances) > 0 {
		config = w.server.Balance(w.instances...)
	}
	config.UserAgent, config.QPS, config.BearerToken = name, -1, planted.Token
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return sending{r, next} })
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{Logger: logger})
	w.must(err)
	guard, err := controller.NewGuard(config, controller.GuardOptions{
		QPS: -1, Timeout: pick(w, 0, time.Second, math.MaxInt64), RequirePreconditions: w.random.IntN(2) == 0,
	})
	w.must(err)
	r.client, err = kubernetes.NewForConfig(guard.Config())
	w.must(err)
	configMaps, err := tidings.For[*corev1.ConfigMap](factory, w.selection)
	w.must(err)
	r.secrets, err = tidings.View[*secretView, *corev1.Secret](factory, w.selection)
	w.must(err)
	r.jobs = []*job{{replica: r, name: "secrets"}}
	r.jobs[0].reconcile = r.jobs[0].reconcileSecret
	if w.notes != noNotes {
		r.jobs = append(r.jobs, &job{replica: r, name: "notes"})
		r.jobs[1].reconcile = r.jobs[1].reconcileNote
	}
	var managers []*controller.Manager
	for i, j := range r.jobs {
		c, err := controller.New(configMaps, controller.Options[*corev1.ConfigMap]{
			Name: j.name, Workers: pick(w, 1, 2, 3, 4, 1000), Guard: guard, Logger: logger, Tracer: tracer{},
			FirstDelay: pick(w, 0, time.Second), MaxDelay: pick(w, 0, time.Minute),
			Resync: pick(w, 0, time.Minute, math.MaxInt64), MaxStaleness: pick(w, 0, time.Minute, math.MaxInt64),
			StopGrace: pick[time.Duration](w, 0, 1, math.MaxInt64),
			Secondaries: []controller.Secondary{
				controller.Owns(r.secrets),
			},
		}, j.call)
		w.must(err)
		if i == 0 || w.notes == otherManager {
			m, err := controller.NewManager(factory, controller.ManagerOptions{
				Guard: guard, Logger: logger, OnStragglers: func(error) {},
				Election: &controller.Election{Namespace: "ops", Name: j.name, Identity: name},
			})
			w.must(err)
			managers = append(managers, m)
		}
		w.must(managers[len(managers)-1].AddController(inTerm{c, j}))
	}
	shown := []any{factory, guard}
	for _, m := range managers {
		shown = append(shown, m)
	}
	r.eyes = w.newEyes(shown...)
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	errs := make(chan error, len(managers))
	for _, m := range managers {
		go func() {
			defer stop() // the process ends with the first of them
			errs <- m.Run(ctx)
		}()
	}
	go func() {
		var all error
		for range managers {
			all = errors.Join(all, <-errs)
		}
		r.ended <- all
	}()
	return r
}

// pick returns one of several values.
func pick[T any](w *world, values ...T) T { return values[w.random.IntN(len(values))] }

// call is a call of the controller, with its checks.
func (r *job) call(
	ctx context.Context, request controller.Request[*corev1.ConfigMap],
) (controller.Result, error) {
	log := r.begin(request)
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		log.running = false
	}()
	if secret, err := controller.Read(ctx, r.secrets).Get(request.Key); err == nil {
		r.fresh(log, "secret", request, secret)
	}
	if request.Gone {
		return controller.Result{}, nil
	}
	r.fresh(log, "configmap", request, request.Object)
	return controller.Result{}, r.reconcile(context.WithValue(ctx, callKey{}, r), log, request)
}

// begin checks that a call may begin now.
func (r *job) begin(request controller.Request[*corev1.ConfigMap]) *keyLog {
	for _, other := range r.replicas() {
		for _, j := range other.jobs {
			if j.name == r.name && other != r.replica && j.open() && r.open() {
				r.Errorf("C1: a call of %s of %s in the term of %s", r.name, r.replica.name, other.name)
			}
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
	known := request.Object
	if request.Gone {
		known = request.Last
	}
	uid := known.UID
	if log.uid != "" && log.uid != uid && !log.gone {
		r.Errorf("C6: %s: a call for %s came without one for the end of %s", request.Key, uid, log.uid)
	}
	log.running, log.uid, log.gone = true, uid, request.Gone
	r.totals.calls.Add(1)
	return log
}

// fresh checks that a cached object is not older than the last write of the run, or of the terms
// before.
func (r *job) fresh(
	log *keyLog, kind string, request controller.Request[*corev1.ConfigMap], cached tidings.Object,
) {
	id := kind + string(cached.GetUID())
	wrote := cmp.Or(log.wrote[id], r.inherited[id])
	if wrote != "" && older(cached.GetResourceVersion(), wrote) {
		r.Errorf("C3: %s: a call saw the %s at %s after a write at %s (reasons: %v)", request.Key,
			kind, cached.GetResourceVersion(), wrote, request.Reasons)
	}
}

// note records a write that was answered.
func (r *job) note(log *keyLog, kind string, made metav1.Object) {
	id := kind + string(made.GetUID())
	log.wrote[id] = made.GetResourceVersion()
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	r.wrote[r.name][id] = made.GetResourceVersion()
}

func older(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// reconcileNote notes in an annotation of a ConfigMap what it wants.
func (r *job) reconcileNote(
	ctx context.Context, log *keyLog, request controller.Request[*corev1.ConfigMap],
) error {
	cm := request.Object
	if cm.DeletionTimestamp != nil || cm.Annotations[noted] == cm.Data["want"] {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, cm.UID, noted, cm.Data["want"])
	made, err := r.client.CoreV1().ConfigMaps(cm.Namespace).Patch(ctx, cm.Name, types.MergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	if err == nil {
		r.note(log, "configmap", made)
	}
	return err
}

// reconcileSecret brings the Secret of a ConfigMap into the state that is wanted.
func (r *job) reconcileSecret(
	ctx context.Context, log *keyLog, request controller.Request[*corev1.ConfigMap],
) error {
	cm := request.Object
	secret, err := controller.Read(ctx, r.secrets).Get(request.Key)
	exists := err == nil
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
	var written *corev1.Secret
	err = nil
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
	case !secret.isControlledBy(cm.UID):
		return fmt.Errorf("the secret is of another object")
	case string(secret.Data["want"]) != want:
		changed := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name: secret.Name, UID: secret.UID, ResourceVersion: secret.ResourceVersion,
			OwnerReferences: secret.OwnerReferences,
		}}
		changed.Data = map[string][]byte{"want": []byte(want)}
		written, err = secrets.Update(ctx, changed, metav1.UpdateOptions{})
	}
	if err != nil {
		return err
	}
	if written != nil {
		r.note(log, "secret", written)
	}
	if cm.Annotations[annotation] != want {
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		next.Annotations[annotation] = want
		made, err := configMaps.Update(ctx, next, metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		r.note(log, "configmap", made)
	}
	return nil
}
