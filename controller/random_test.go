package controller_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller/objects"
	"github.com/tidings-go/tidings/internal/test/seeds"
)

var (
	randomSeeds = seeds.New("controller", "TestC00_RandomWorlds", 10)

	configMapsOf = corev1.SchemeGroupVersion.WithResource("configmaps")
	secretsOf    = corev1.SchemeGroupVersion.WithResource("secrets")
	accountsOf   = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	nodesOf      = corev1.SchemeGroupVersion.WithResource("nodes")
)

// TestC00_RandomWorlds has two controllers of the same objects, with secondaries of every kind, that write in
// every way, while objects change and go, namespaces, secondaries and definitions come and go, the server is
// set back, requests fail in several ways at once, and controllers restart. Each call is checked, and at the
// end what the last calls have read.
func TestC00_RandomWorlds(t *testing.T) {
	for seed := range randomSeeds.All() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			inWorld(t, func(w *world) { newRandomWorld(w, seed).run() })
		})
	}
}

// metadataView is a view with metadata alone, which the server is asked for then.
type metadataView struct {
	AnnotatedMeta `json:"metadata"`
}

// nodeView is a view of nodes.
type nodeView struct {
	AnnotatedMeta `json:"metadata"`
	Spec          struct {
		Unschedulable bool `json:"unschedulable"`
	} `json:"spec"`
}

// AnnotatedMeta is metadata with annotations.
type AnnotatedMeta struct {
	tidings.Meta `json:",inline"`
	Annotations  map[string]string `json:"annotations"`
}

// randomWorld is a world with random changes and faults.
type randomWorld struct {
	*world
	dynamic  dynamic.Interface
	keys     []string
	faults   []*apisim.Injection
	subjects []*subject
	quiet    atomic.Bool // calls only read
	selects  bool        // the objects are selected by a label
	divided  bool        // informers are of several namespaces
	rewinds  bool        // the server is set back
	snapshot *apisim.Snapshot

	configMaps *tidings.Informer[*corev1.ConfigMap]
	secrets    *tidings.Informer[*corev1.Secret]
	accounts   *tidings.Informer[*metadataView]
	nodes      *tidings.Informer[*nodeView]

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

func (w *randomWorld) text() string { return fmt.Sprint(w.number(1000)) }

// place returns a random key in the namespaces.
func (w *randomWorld) place(name string) string {
	return fmt.Sprintf("%c/%s%d", 'a'+w.number(3), name, w.number(2))
}

func newRandomWorld(w *world, seed uint64) *randomWorld {
	r := &randomWorld{world: w, rnd: rand.New(rand.NewPCG(seed, 7))}
	create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
	for i := range 6 {
		r.keys = append(r.keys, fmt.Sprintf("%c/x%d", 'a'+i%3, i/3))
	}
	r.selects, r.divided, r.rewinds = r.chance(3), r.chance(3), r.chance(5)
	var err error
	r.dynamic, err = dynamic.NewForConfig(w.guard.Config())
	fatal(w.T, err)
	all := tidings.Selection{}
	if r.divided {
		all.Namespaces = []string{"a", "b", "c"}
	}
	selected := all
	if r.selects {
		selected.Labels = "selected=yes"
	}
	r.configMaps, err = tidings.For[*corev1.ConfigMap](w.factory, selected)
	fatal(w.T, err)
	r.secrets, err = tidings.For[*corev1.Secret](w.factory, all)
	fatal(w.T, err)
	r.accounts, err = tidings.View[*metadataView, *corev1.ServiceAccount](w.factory, all)
	fatal(w.T, err)
	r.nodes, err = tidings.View[*nodeView, *corev1.Node](w.factory, tidings.Selection{})
	fatal(w.T, err)
	for i := range 2 {
		r.subjects = append(r.subjects, newSubject(r, fmt.Sprint("subject-", i)))
	}
	return r
}

func (w *randomWorld) run() {
	for _, s := range w.subjects {
		s.restart()
	}
	for range 60 {
		w.step()
		if !w.chance(3) {
			time.Sleep(time.Duration(w.number([]int{5, 300, 3000}[w.number(3)])) * time.Millisecond)
		}
	}
	for _, f := range w.faults {
		f.Lift()
	}
	w.quiet.Store(true)
	time.Sleep(15 * time.Minute)
	if w.rewinds {
		time.Sleep(time.Hour)
	}
	synctest.Wait()
	for _, s := range w.subjects {
		s.checkRest()
		s.checkLast()
		fatal(w.T, s.stop())
	}
}

// step makes one random change.
func (w *randomWorld) step() {
	s, key := w.subjects[w.number(2)], w.keys[w.number(len(w.keys))]
	switch n := w.number(25); n {
	case 0, 1, 2, 3:
		w.change(key)
	case 4:
		for range 1 + w.number(2) {
			w.remove(configMapsOf, key)
			w.change(key)
		}
	case 5:
		w.remove(configMapsOf, key)
	case 6, 7:
		w.changeAccount(w.place("account"))
	case 8, 9:
		w.changeNode(fmt.Sprint("node", w.number(2)))
	case 10, 11:
		w.moveSecret(w.place("shared"))
	case 12, 13, 14, 15:
		w.disturb()
	case 16:
		fatal(w.T, s.controller.SetWorkers(1+w.number(4)))
	case 17:
		s.restart()
	case 18:
		if n := w.number(len(w.faults) + 1); n < len(w.faults) {
			w.faults[n].Lift()
		}
	case 19:
		s.enqueue(key)
	case 20:
		s.changeNodes()
	case 21:
		w.setBack()
	case 22:
		w.changeNamespace(key[:1])
	default:
		resource := []schema.GroupVersionResource{secretsOf, accountsOf}[n-23]
		w.server.RemoveResource(resource)
		time.Sleep(time.Duration(w.number(5000)) * time.Millisecond)
		w.server.RestoreResource(resource)
	}
}

// stored returns an object of the server.
func stored[T objects.Object](w *randomWorld, key string) (object T, ok bool) {
	namespace, name, isNamespaced := strings.Cut(key, "/")
	if !isNamespaced {
		namespace, name = "", key
	}
	object, err := apisim.Get[T](w.ctx, w.server, namespace, name)
	return object, err == nil
}

// store creates an object, or updates it. Writes of calls may come in between.
func store[T objects.Object](w *randomWorld, object T, exists bool) {
	var err error
	if exists {
		_, err = apisim.Update(w.ctx, w.server, object)
	} else {
		_, err = apisim.Create(w.ctx, w.server, object)
	}
	if err != nil && !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
		w.Error(err)
	}
}

func (w *randomWorld) remove(of schema.GroupVersionResource, key string) {
	namespace, name, ok := strings.Cut(key, "/")
	if !ok {
		namespace, name = "", key
	}
	if _, err := w.server.Delete(w.ctx, of, namespace, name); err != nil && !apierrors.IsNotFound(err) {
		w.Error(err)
	}
}

func (w *randomWorld) change(key string) {
	cm, ok := stored[*corev1.ConfigMap](w, key)
	if !ok {
		cm = configMap(key[:1], key[2:])
	}
	cm = withState(cm.DeepCopy(), w.text())
	cm.Labels = map[string]string{"selected": "yes"}
	if w.selects && w.chance(3) {
		cm.Labels["selected"] = "no"
	}
	if w.chance(3) {
		cm.Data["accounts"] = fmt.Sprintf("%s/account%d,%s/account%d", key[:1], w.number(2), key[:1], w.number(2))
	}
	store(w, cm, ok)
}

func (w *randomWorld) changeAccount(key string) {
	account, ok := stored[*corev1.ServiceAccount](w, key)
	if ok && w.chance(3) {
		w.remove(accountsOf, key)
		return
	}
	if !ok {
		account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key[:1], Name: key[2:]}}
	}
	account = account.DeepCopy()
	account.Annotations = map[string]string{"state": w.text()}
	store(w, account, ok)
}

// changeNode changes the keys that a node concerns, in a burst.
func (w *randomWorld) changeNode(name string) {
	for range 1 + w.number(3) {
		node, ok := stored[*corev1.Node](w, name)
		if ok && w.chance(4) {
			w.remove(nodesOf, name)
			return
		}
		if !ok {
			node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		}
		node = node.DeepCopy()
		node.Annotations = map[string]string{"for": w.keys[w.number(6)] + "," + w.keys[w.number(6)]}
		store(w, node, ok)
	}
}

// keysOf yields the keys that a node concerns.
func keysOf(annotations map[string]string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for key := range strings.SplitSeq(annotations["for"], ",") {
			if key != "" && !yield(key) {
				return
			}
		}
	}
}

// moveSecret gives a secret other owners, in a burst.
func (w *randomWorld) moveSecret(key string) {
	for range 1 + w.number(4) {
		s, ok := stored[*corev1.Secret](w, key)
		if ok && w.chance(4) {
			w.remove(secretsOf, key)
			continue
		}
		if !ok {
			s = secret(key[:1], key[2:])
		}
		s = s.DeepCopy()
		s.OwnerReferences = nil
		if !w.chance(5) {
			owner := configMap(key[:1], fmt.Sprint("x", w.number(2)))
			owner.UID = "not known"
			s = ownedBy(s, owner, "v1", "ConfigMap")
		}
		store(w, s, ok)
	}
}

// setBack sets the server back to an earlier state.
func (w *randomWorld) setBack() {
	switch {
	case !w.rewinds:
	case w.snapshot == nil:
		w.snapshot = w.server.Snapshot()
	default:
		w.server.Rewind(w.snapshot)
		w.snapshot = nil
		for _, s := range w.subjects {
			s.forget()
		}
	}
}

func (w *randomWorld) changeNamespace(name string) {
	if !w.divided {
		return
	}
	var err error
	if has := w.configMaps.Namespaces(); slices.Contains(has, name) && len(has) > 1 && w.chance(3) {
		err = w.configMaps.RemoveNamespace(name)
	} else {
		err = w.configMaps.AddNamespace(name)
	}
	fatal(w.T, err)
}

// disturb makes some of the next requests fail.
func (w *randomWorld) disturb() {
	verbs := []string{"create", "update", "delete", "get", "patch", "deletecollection", "list", ""}
	m := apisim.Match{Verb: verbs[w.number(len(verbs))], Times: 1 + w.number(4)}
	if w.chance(4) { // as without rights there
		m.Namespace, m.Times = string(rune('a'+w.number(3))), 0
	}
	faults := []apisim.Fault{
		apisim.RefuseApplied(500), apisim.RefuseApplied(504), apisim.RefuseApplied(502), apisim.Refuse(403, 0),
		apisim.Refuse(500, 0), apisim.Refuse(429, time.Second), apisim.Refuse(409, 0), page,
		apisim.CutBefore(0), apisim.CutWithin(1), apisim.Truncate(1), apisim.Drop(), apisim.Stall(0, time.Second),
		apisim.Delay(time.Duration(w.number(4000)) * time.Millisecond),
		apisim.ApplyLater(time.Duration(w.number(30_000))*time.Millisecond, 504),
	}
	if w.chance(3) {
		m = apisim.Match{Verb: "watch", Resource: []string{"", "secrets", "configmaps"}[w.number(3)], Times: 1 + w.number(3)}
		faults = []apisim.Fault{
			apisim.CutLater(time.Second), apisim.Fail(1, 410), apisim.Lag(), apisim.DropBookmarks(), page,
			apisim.Stall(apisim.EachFrame, time.Duration(w.number(2000))*time.Millisecond),
			apisim.Stall(1, time.Duration(1+w.number(60))*time.Second),
		}
		if w.chance(2) {
			w.server.CutConnections()
		}
	}
	w.faults = append(w.faults, w.server.Inject(m, faults[w.number(len(faults))]))
}
