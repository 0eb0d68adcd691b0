package controller_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/seeds"
)

var randomSeeds = seeds.New("controller", "TestC00_RandomWorlds", 100)

// TestC00_RandomWorlds has two controllers that write to the same objects and to objects that
// they own, while objects are changed, deleted and created again, requests fail, and controllers
// restart. Each call is checked, and at the end the states that the last calls have read.
func TestC00_RandomWorlds(t *testing.T) {
	for seed := range randomSeeds.All() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(w *world) { newRandomWorld(w, seed).run() })
		})
	}
}

// randomWorld is a world with random changes and faults.
type randomWorld struct {
	*world
	keys     []string
	faults   []*apisim.Injection
	subjects []*subject

	mu  sync.Mutex // guards rnd
	rnd *rand.Rand
}

// chance reports true once in n times.
func (w *randomWorld) chance(n int) bool { return w.number(n) == 0 }

func (w *randomWorld) number(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rnd.IntN(n)
}

func newRandomWorld(w *world, seed uint64) *randomWorld {
	r := &randomWorld{world: w, rnd: rand.New(rand.NewPCG(seed, 0))}
	for i := range 4 {
		r.keys = append(r.keys, fmt.Sprintf("%c/x%d", 'a'+i%2, i))
	}
	configMaps, secrets := informer[*corev1.ConfigMap](w), informer[*corev1.Secret](w)
	for i := range 2 {
		s := &subject{
			randomWorld: r, secrets: secrets, running: map[string]bool{}, lives: map[string]types.UID{},
			last: map[string]string{}, wrote: map[string]map[string]metav1.Object{},
		}
		s.reconcile = s.annotate
		if i == 1 {
			s.reconcile = s.copyToSecret
		}
		s.controller = control(w, configMaps, options{
			Name: fmt.Sprint("subject-", i), Workers: 2, MaxDelay: 10 * time.Second,
			Secondaries: []secondary{controller.Owns[*corev1.ConfigMap](secrets)},
		}, s.call)
		r.subjects = append(r.subjects, s)
	}
	return r
}

func (w *randomWorld) run() {
	for _, s := range w.subjects {
		s.restart()
	}
	for range 30 {
		w.step()
		time.Sleep(time.Duration(w.number(1500)) * time.Millisecond)
	}
	for _, f := range w.faults {
		f.Lift()
	}
	time.Sleep(10 * time.Minute)
	synctest.Wait()
	for _, s := range w.subjects {
		s.checkLast()
		fatal(w.T, s.stop())
	}
}

// step makes one random change.
func (w *randomWorld) step() {
	key := w.keys[w.number(len(w.keys))]
	s := w.subjects[w.number(len(w.subjects))]
	switch w.number(12) {
	case 0, 1, 2, 3:
		w.change(key)
	case 4:
		w.remove(key)
		w.change(key)
	case 5:
		w.remove(key)
	case 6, 7, 8:
		w.disturb()
	case 9:
		fatal(w.T, s.controller.SetWorkers(1+w.number(3)))
	case 10:
		s.restart()
	case 11:
		if n := w.number(len(w.faults) + 1); n < len(w.faults) {
			w.faults[n].Lift()
		}
	}
}

// object returns an object of the server, or nil.
func object[T tidings.Object](w *world, key string) (object T, ok bool) {
	namespace, name := key[:1], key[2:]
	object, err := apisim.Get[T](w.ctx, w.server, namespace, name)
	if !apierrors.IsNotFound(err) {
		fatal(w.T, err)
	}
	return object, err == nil
}

func (w *randomWorld) change(key string) {
	state := fmt.Sprint(w.number(1000))
	if cm, ok := object[*corev1.ConfigMap](w.world, key); ok {
		update(w.world, withState(cm, state))
	} else {
		create(w.world, withState(configMap(key[:1], key[2:]), state))
	}
}

func (w *randomWorld) remove(key string) {
	_, err := w.server.Delete(w.ctx, corev1.SchemeGroupVersion.WithResource("configmaps"), key[:1], key[2:])
	if !apierrors.IsNotFound(err) {
		fatal(w.T, err)
	}
}

// disturb makes a few of the next requests fail.
func (w *randomWorld) disturb() {
	verbs := []string{"create", "update", "delete", "get"}
	m := apisim.Match{Verb: verbs[w.number(len(verbs))], Times: 1 + w.number(3)}
	faults := []apisim.Fault{
		apisim.RefuseApplied(500), apisim.Refuse(500, 0), apisim.Refuse(429, time.Second),
		apisim.CutBefore(0), apisim.Drop(), apisim.Stall(0, time.Second), apisim.Delay(time.Second),
		apisim.ApplyLater(2*time.Second, 504),
	}
	fault := faults[w.number(len(faults))]
	if w.chance(3) {
		m.Verb = "watch"
		fault = apisim.CutLater(time.Second)
		if w.chance(2) {
			w.server.CutConnections()
			fault = apisim.Stall(apisim.EachFrame, 300*time.Millisecond)
		}
	}
	w.faults = append(w.faults, w.server.Inject(m, fault))
}

// subject is a controller whose calls are checked.
type subject struct {
	*randomWorld
	controller *controller.Controller[*corev1.ConfigMap]
	secrets    *tidings.Informer[*corev1.Secret]
	reconcile  func(context.Context, request) error
	end        func() error

	mu      sync.Mutex // guards the rest
	running map[string]bool
	lives   map[string]types.UID                // of this run, by key: called, and not ended
	last    map[string]string                   // version of the last successful call, by key
	wrote   map[string]map[string]metav1.Object // the last writes of each key, by kind
}

func (s *subject) stop() error {
	s.mu.Lock()
	end := s.end
	s.mu.Unlock()
	return end()
}

func (s *subject) restart() {
	if s.end != nil {
		fatal(s.T, s.stop())
	}
	s.mu.Lock()
	clear(s.lives)
	s.mu.Unlock()
	s.end = start(s.world, s.controller)
}

// call checks a call and makes it.
func (s *subject) call(ctx context.Context, r request) (result controller.Result, err error) {
	s.begin(ctx, r)
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running[r.Key] = false
		if err != nil {
			return
		}
		s.last[r.Key] = r.Object.ResourceVersion
		if r.Gone {
			delete(s.lives, r.Key)
		}
	}()
	if s.chance(10) {
		time.Sleep(time.Duration(s.number(500)) * time.Millisecond)
	}
	if err := s.reconcile(ctx, r); err != nil {
		return result, err
	}
	if s.chance(20) {
		return result, errLater
	}
	return result, nil
}

func (s *subject) begin(ctx context.Context, r request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[r.Key] {
		s.Errorf("two calls of %s at once (C1)", r.Key)
	}
	s.running[r.Key] = true
	life, called := s.lives[r.Key]
	switch {
	case r.Gone && life != r.Object.UID:
		s.Errorf("the end of %s %s came after calls of %q (C6)", r.Key, r.Object.UID, life)
	case !r.Gone && called && life != r.Object.UID:
		s.Errorf("a call of %s %s came before the end of %s (C6)", r.Key, r.Object.UID, life)
	}
	s.lives[r.Key] = r.Object.UID
	if wrote := s.wrote[r.Key]["ConfigMap"]; wrote != nil && !r.Gone {
		s.checkFresh(r, "ConfigMap", wrote, r.Object)
	}
	if wrote := s.wrote[r.Key]["Secret"]; wrote != nil {
		var seen metav1.Object
		if cached, err := controller.Read(ctx, s.secrets).Get(r.Key); err == nil {
			seen = cached
		}
		s.checkFresh(r, "Secret", wrote, seen)
	}
}

// checkFresh compares the states that a call reads with the last writes of the calls of its key
// (C3). A write without a version is a delete.
func (s *subject) checkFresh(r request, kind string, wrote, seen metav1.Object) {
	switch {
	case seen == nil || seen.GetUID() != wrote.GetUID():
		current, ok := object[*corev1.Secret](s.world, r.Key)
		if kind == "Secret" && ok && wrote.GetResourceVersion() != "" && current.UID == wrote.GetUID() {
			s.Errorf("a call of %s does not see the %s of version %s (C3)", r.Key, kind, wrote.GetResourceVersion())
		}
	case wrote.GetResourceVersion() == "":
		s.Errorf("a call of %s sees the %s that was deleted (C3)", r.Key, kind)
	case number(seen) < number(wrote) && !r.Unshown:
		s.Errorf("a call of %s sees the %s of version %s, after %s (C3)", r.Key, kind,
			seen.GetResourceVersion(), wrote.GetResourceVersion())
	}
}

func number(o metav1.Object) int {
	n, _ := strconv.Atoi(o.GetResourceVersion())
	return n
}

// note records a write that was answered.
func (s *subject) note(key, kind string, o metav1.Object, err error) error {
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.wrote[key] == nil {
			s.wrote[key] = map[string]metav1.Object{}
		}
		s.wrote[key][kind] = o
	}
	return err
}

// annotate writes the state into an annotation.
func (s *subject) annotate(ctx context.Context, r request) error {
	if r.Gone || r.Object.Annotations["seen"] == r.Object.Data["state"] {
		return nil
	}
	next := r.Object.DeepCopy()
	next.Annotations = map[string]string{"seen": r.Object.Data["state"]}
	made, err := s.client.CoreV1().ConfigMaps(next.Namespace).Update(ctx, next, updateNow)
	return s.note(r.Key, "ConfigMap", made, err)
}

// copyToSecret writes the state into a secret.
func (s *subject) copyToSecret(ctx context.Context, r request) error {
	client := s.client.CoreV1().Secrets(r.Namespace())
	have, err := controller.Read(ctx, s.secrets).Get(r.Key)
	switch {
	case err != nil && r.Gone:
		return nil
	case err != nil:
		want := ownedBy(secret(r.Namespace(), r.Name()), r.Object, "v1", "ConfigMap")
		want.Labels = map[string]string{"state": r.Object.Data["state"]}
		made, err := client.Create(ctx, want, createNow)
		return s.note(r.Key, "Secret", made, err)
	case r.Gone || have.OwnerReferences[0].UID != r.Object.UID:
		return s.deleteSecret(ctx, r, have)
	case have.Labels["state"] != r.Object.Data["state"]:
		next := have.DeepCopy()
		next.Labels = map[string]string{"state": r.Object.Data["state"]}
		made, err := client.Update(ctx, next, updateNow)
		return s.note(r.Key, "Secret", made, err)
	}
	return nil
}

func (s *subject) deleteSecret(ctx context.Context, r request, have *corev1.Secret) error {
	err := s.client.CoreV1().Secrets(r.Namespace()).Delete(ctx, have.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &have.UID},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return s.note(r.Key, "Secret", &metav1.ObjectMeta{UID: have.UID}, err)
}

// checkLast checks that the last calls have read the states of the server (C2), and that each
// called object that is gone has had its last call (C6).
func (s *subject) checkLast() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.keys {
		cm, exists := object[*corev1.ConfigMap](s.world, key)
		life, called := s.lives[key]
		switch {
		case !exists && called:
			s.Errorf("%s: the end of %s had no call (C6)", key, life)
		case exists && s.last[key] != cm.ResourceVersion:
			s.Errorf("%s: the last call read version %s of %s (C2)\n%+v", key, s.last[key],
				cm.ResourceVersion, s.controller.Health())
		case exists && cm.Annotations["seen"] != cm.Data["state"]:
			s.Errorf("%s: the annotation is %q", key, cm.Annotations["seen"])
		}
		copied, ok := object[*corev1.Secret](s.world, key)
		if exists && (!ok || copied.Labels["state"] != cm.Data["state"]) {
			s.Errorf("%s: the secret is %v", key, copied)
		}
	}
}
