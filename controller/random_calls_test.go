package controller_test

import (
	"context"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
)

// subject is a controller whose calls are checked.
type subject struct {
	*randomWorld
	controller *controller.Controller[*corev1.ConfigMap]
	byNode     secondary
	hasNodes   atomic.Bool
	history    atomic.Int64 // the number of times that the server was set back
	end        func() error

	mu      sync.Mutex // guards the rest
	running map[string]bool
	lives   map[string]types.UID // of this run, by key: called, and not ended
	wrote   map[string][]wrote   // by the key whose calls have written
	last    map[string]view      // of the last call, by key
	asked   map[string]time.Time // the last Enqueue, by key
}

// wrote is a write that was answered.
type wrote struct {
	of      schema.GroupVersionResource
	key     string
	uid     types.UID
	version string
	gone    bool
	how     string
}

// view is what a call has read.
type view struct {
	version string // of the object, "gone" at its end
	others  []string
	at      time.Time
}

func newSubject(w *randomWorld, name string) *subject {
	s := &subject{randomWorld: w, running: map[string]bool{}, lives: map[string]types.UID{},
		wrote: map[string][]wrote{}, last: map[string]view{}, asked: map[string]time.Time{}}
	s.hasNodes.Store(true)
	s.byNode = controller.Maps(w.nodes, func(node *nodeView) iter.Seq[string] {
		if w.chance(40) && !w.quiet.Load() {
			panic("in Maps")
		}
		return keysOf(node.Annotations)
	})
	accounts := controller.References(w.accounts, func(cm *corev1.ConfigMap) []string {
		return slices.DeleteFunc(strings.Split(cm.Data["accounts"], ","), func(key string) bool { return key == "" })
	})
	if w.chance(3) {
		accounts = accounts.Optional()
	}
	o := options{
		Name: name, Workers: 1 + w.number(4), MaxDelay: 10 * time.Second, StopGrace: time.Second,
		Secondaries: []secondary{controller.Owns(w.secrets), accounts, s.byNode},
	}
	if w.chance(3) {
		o.Resync = 7 * time.Minute
	}
	if w.chance(3) {
		o.Timeout = 3 * time.Second
	}
	if w.chance(3) {
		o.MaxStaleness = 5 * time.Minute
	}
	s.controller = control(w.world, w.configMaps, o, s.call)
	return s
}

func (s *subject) stop() error {
	s.mu.Lock()
	end := s.end
	s.mu.Unlock()
	return end()
}

// restart begins another run. A call may outlast the run before.
func (s *subject) restart() {
	if s.end != nil {
		if err := s.stop(); err != nil && !strings.Contains(err.Error(), "still running") {
			s.Errorf("the run ended with %v", err)
		}
	}
	s.mu.Lock()
	clear(s.lives)
	clear(s.asked)
	s.mu.Unlock()
	s.end = start(s.world, s.controller)
}

func (s *subject) enqueue(key string) {
	s.mu.Lock()
	s.asked[key] = time.Now()
	s.mu.Unlock()
	s.controller.Enqueue(key)
}

// changeNodes adds the secondary of nodes, or removes it.
func (s *subject) changeNodes() {
	if s.hasNodes.Load() {
		s.hasNodes.Store(false)
		fatal(s.T, s.controller.RemoveSecondary(s.nodes))
		return
	}
	fatal(s.T, s.controller.AddSecondary(s.byNode))
	s.hasNodes.Store(true)
}

// forget forgets the writes before the server was set back.
func (s *subject) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.Add(1)
	clear(s.wrote)
}

// call checks a call, and ends it in one of all ways.
func (s *subject) call(ctx context.Context, r request) (result controller.Result, err error) {
	history := s.history.Load()
	s.begin(ctx, r)
	isOver := false
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running[r.Key] = false
		if isOver && r.Gone {
			delete(s.lives, r.Key)
		}
	}()
	if s.quiet.Load() {
		isOver = true
		return result, nil
	}
	if s.chance(8) {
		time.Sleep(time.Duration(s.number(1500)) * time.Millisecond)
	}
	for range s.number(4) {
		if err := s.write(ctx, r, history); err != nil && s.chance(2) {
			return result, err
		}
	}
	switch s.number(24) {
	case 0:
		return result, errLater
	case 1:
		isOver = true
		return result, controller.Terminal(errLater)
	case 2:
		return result, controller.RetryAfter(errLater, 2*time.Second)
	case 3:
		panic("in the call")
	case 4:
		runtime.Goexit()
	case 5, 6:
		return controller.Result{RequeueAfter: time.Duration(1+s.number(3000)) * time.Millisecond}, nil
	}
	isOver = true
	return result, nil
}

// begin checks that a call may begin, and what it reads.
func (s *subject) begin(ctx context.Context, r request) {
	secrets, accounts := controller.Read(ctx, s.secrets), controller.Read(ctx, s.accounts)
	var nodes iter.Seq2[string, *nodeView] = func(func(string, *nodeView) bool) {}
	func() {
		defer func() { _ = recover() }() // it may just have been removed
		if s.hasNodes.Load() {
			nodes = controller.Read(ctx, s.nodes).All()
		}
	}()
	version := func(key string) string {
		account, err := accounts.Get(key)
		if err != nil {
			return "none"
		}
		return account.ResourceVersion
	}
	now := view{version: known(r).ResourceVersion, at: time.Now()}
	var cm *corev1.ConfigMap
	if cm = known(r); r.Gone {
		now.version, cm = "gone", nil
	}
	now.others = s.viewOf(r.Key, cm, secrets.All(), version, nodes)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[r.Key] {
		s.Errorf("two calls of %s at once (C1)", r.Key)
	}
	s.running[r.Key] = true
	life, called := s.lives[r.Key]
	switch {
	case r.Gone && life != known(r).UID:
		s.Errorf("the end of %s %s came after calls of %q (C6)", r.Key, known(r).UID, life)
	case !r.Gone && called && life != known(r).UID:
		s.Errorf("a call of %s %s came before the end of %s (C6)", r.Key, known(r).UID, life)
	}
	s.lives[r.Key], s.last[r.Key] = known(r).UID, now
	stored, exists := stored[*corev1.ConfigMap](s.randomWorld, r.Key)
	if r.Gone && !r.Left && exists && stored.UID == known(r).UID && !s.rewinds {
		s.Errorf("%s %s is said to be gone, and exists (C6)", r.Key, known(r).UID)
	}
	if r.Unshown {
		delete(s.wrote, r.Key)
	}
	for _, w := range s.wrote[r.Key] {
		if w.of == secretsOf {
			seen, err := secrets.Get(w.key)
			s.checkFresh(r, w, seen, err == nil, secrets.Snapshot().Version())
		} else {
			lister := controller.Read(ctx, s.configMaps)
			seen, err := lister.Get(w.key)
			s.checkFresh(r, w, seen, err == nil, lister.Snapshot().Version())
		}
	}
}

// checkFresh compares what a call reads with a write of an earlier call of its key (C3). Before an informer has
// found that the server was set back, it cannot be told.
func (s *subject) checkFresh(r request, w wrote, seen metav1.Object, exists bool, reached string) {
	switch {
	case s.rewinds && s.history.Load() > 0:
	case w.gone && exists && seen.GetUID() == w.uid:
		s.Errorf("a call of %s sees %s %s after its %s (C3)", r.Key, w.of.Resource, w.key, w.how)
	case w.gone || isOlder(w.version, reached) || w.version == reached:
	case !exists:
		var present metav1.Object
		var ok bool
		if w.of == secretsOf {
			present, ok = stored[*corev1.Secret](s.randomWorld, w.key)
		} else {
			present, ok = stored[*corev1.ConfigMap](s.randomWorld, w.key)
		}
		isHidden := w.of == configMapsOf && (s.divided || s.selects && present.GetLabels()["selected"] != "yes")
		if ok && present.GetUID() == w.uid && !isHidden {
			s.Errorf("a call of %s does not see %s %s at %s after its %s of version %s (C3)", r.Key, w.of.Resource,
				w.key, reached, w.how, w.version)
		}
	case seen.GetUID() == w.uid && isOlder(seen.GetResourceVersion(), w.version):
		s.Errorf("a call of %s sees %s %s of version %s at %s after its %s of version %s (C3)", r.Key, w.of.Resource,
			w.key, seen.GetResourceVersion(), reached, w.how, w.version)
	}
}

func isOlder(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }

// viewOf describes the objects that concern a key.
func (s *subject) viewOf(
	key string, cm *corev1.ConfigMap, secrets iter.Seq2[string, *corev1.Secret],
	account func(key string) string, nodes iter.Seq2[string, *nodeView],
) (parts []string) {
	for name, secret := range secrets {
		owner := metav1.GetControllerOfNoCopy(secret)
		if owner != nil && owner.Kind == "ConfigMap" && secret.Namespace+"/"+owner.Name == key {
			parts = append(parts, "secret "+name+"@"+secret.ResourceVersion)
		}
	}
	if cm != nil && cm.Data["accounts"] != "" {
		for name := range strings.SplitSeq(cm.Data["accounts"], ",") {
			parts = append(parts, "account "+name+"@"+account(name))
		}
	}
	if s.hasNodes.Load() {
		for name, node := range nodes {
			if slices.Contains(slices.Collect(keysOf(node.Annotations)), key) {
				parts = append(parts, "node "+name+"@"+node.ResourceVersion)
			}
		}
	}
	slices.Sort(parts)
	return parts
}

// checkRest checks that no key waits for anything.
func (s *subject) checkRest() {
	if h := s.controller.Health(); h.Queued.Sum()+h.BackingOff+h.ParkedKeys+h.RunningCalls > 0 {
		s.Errorf("%s is not at rest: %+v\n%+v", h.Name, h, s.configMaps.Health())
	}
}

// checkLast checks that the last calls have read the states of the server (C2), and that each called object
// that is gone has had its last call (C6). What a server that was set back has lost need not show (P16).
func (s *subject) checkLast() {
	if s.history.Load() > 0 {
		return
	}
	account := func(key string) string {
		account, ok := stored[*corev1.ServiceAccount](s.randomWorld, key)
		if !ok {
			return "none"
		}
		return account.ResourceVersion
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.keys {
		cm, exists := stored[*corev1.ConfigMap](s.randomWorld, key)
		exists = exists && (!s.selects || cm.Labels["selected"] == "yes") &&
			(!s.divided || slices.Contains(s.configMaps.Namespaces(), key[:1]))
		if life, called := s.lives[key]; !exists && called {
			s.Errorf("%s: the end of %s had no call (C6)", key, life)
		}
		if !exists {
			continue
		}
		want := s.viewOf(key, cm, everyStored[*corev1.Secret](s, secretsOf), account, s.storedNodes())
		got := s.last[key]
		if !s.hasNodes.Load() { // they were removed after that call
			got.others = slices.DeleteFunc(got.others, func(part string) bool { return strings.HasPrefix(part, "node ") })
		}
		if got.version != cm.ResourceVersion || !slices.Equal(got.others, want) {
			s.Errorf("%s: the last call, %v ago, read %s %q, the server has %s %q (C2)", key, time.Since(got.at),
				got.version, got.others, cm.ResourceVersion, want)
		}
		if at, ok := s.asked[key]; ok && got.at.Before(at) {
			s.Errorf("%s: Enqueue has led to no call (C2)", key)
		}
	}
}

// storedNodes yields the nodes of the server as views.
func (s *subject) storedNodes() iter.Seq2[string, *nodeView] {
	return func(yield func(string, *nodeView) bool) {
		for key, node := range everyStored[*corev1.Node](s, nodesOf) {
			view := &nodeView{}
			view.ResourceVersion, view.Annotations = node.ResourceVersion, node.Annotations
			if !yield(key, view) {
				return
			}
		}
	}
}

// everyStored yields the objects of the server by their keys.
func everyStored[T tidings.Object](s *subject, of schema.GroupVersionResource) iter.Seq2[string, T] {
	list, _, err := s.server.List(s.ctx, of, "")
	fatal(s.T, err)
	return func(yield func(string, T) bool) {
		for _, object := range list {
			o := object.(T)
			if !yield(strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"), o) {
				return
			}
		}
	}
}
