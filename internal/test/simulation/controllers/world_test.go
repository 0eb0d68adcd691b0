package controllers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller/election"
	planted "github.com/tidings-go/tidings/internal/test/secrets"
	"github.com/tidings-go/tidings/internal/test/seeds"
)

var (
	hours = seeds.New("controllers", "TestHours", 10)

	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	configMaps    = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	secrets       = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces    = []string{"a", "b"}
)

const (
	maxReplicas, names = 3, 5
	// settling is the time in which the replicas have to finish once all faults are lifted.
	settling = 5 * time.Minute
)

// TestMain discards the logs of client-go about intended failures.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the worlds are small and many
	klog.SetLogger(logr.Discard())
	slog.SetDefault(logger)
	os.Exit(m.Run())
}

// totals are the figures of all hours.
type totals struct{ calls, writes, faults, stops, restarts atomic.Int64 }

// world is the hour of one seed.
type world struct {
	*testing.T
	random *rand.Rand // of the schedule, which is one goroutine
	server *apisim.Server
	// instances are the servers behind the load balancer of the replicas; none means server.
	instances []*apisim.Instance
	totals    *totals
	faults    []*apisim.Injection
	made      int
	selection tidings.Selection // of the informers
	notes     placeOfNotes

	mu    sync.Mutex // guards the rest
	all   []*replica
	wrote map[string]map[string]string // the versions of the last writes, by job and by object
}

// placeOfNotes is the manager of the second controller.
type placeOfNotes int

const (
	noNotes      placeOfNotes = iota // nothing is noted
	sameManager                      // that of the first controller
	otherManager                     // one with an election of its own, on the same factory and guard
)

// logger is searched. At lower levels client-go prints the bodies of requests, in the lines of the
// calls that make them.
var logger = slog.New(slog.NewTextHandler(&printed, &slog.HandlerOptions{Level: slog.LevelDebug}))

// TestHours runs an hour of virtual time for each seed.
func TestHours(t *testing.T) {
	var all totals
	for seed := range hours.All() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runHour(t, seed, &all) })
		})
	}
	t.Logf("%d calls, %d writes of users, %d faults, %d stops of replicas and %d of their own accord",
		all.calls.Load(), all.writes.Load(), all.faults.Load(), all.stops.Load(), all.restarts.Load())
}

func runHour(t *testing.T, seed uint64, all *totals) {
	w := &world{T: t, random: rand.New(rand.NewPCG(seed, 0)), totals: all}
	w.wrote = map[string]map[string]string{"secrets": {}, "notes": {}}
	var err error
	w.server, err = apisim.New(apisim.Options{Seed: seed, BookmarkInterval: time.Minute})
	w.must(err)
	for _, name := range append([]string{"ops"}, namespaces...) {
		_, err := w.server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		w.must(err)
	}
	for range []int{0, 2, 3}[w.random.IntN(3)] {
		w.instances = append(w.instances, w.server.AddInstance())
	}
	if w.random.IntN(3) == 0 {
		w.selection.Namespaces = namespaces
	}
	w.notes = placeOfNotes(w.random.IntN(3))
	for began := time.Now(); time.Since(began) < time.Hour && !t.Failed(); {
		w.step()
	}
	w.settle()
	for len(w.replicas()) > 0 {
		w.look(w.replicas()[0].eyes)
		w.stopReplica(0)
	}
	w.must(w.server.Close())
	printed.Check(t, 100_000)
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) replicas() []*replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.all)
}

// step does something, and lets some time pass.
func (w *world) step() {
	w.restartEnded()
	switch n := w.random.IntN(100); {
	case n < 60:
		w.write()
	case n < 75:
		w.inject()
	case n < 85 && len(w.faults) > 0:
		w.lift(w.random.IntN(len(w.faults)))
	case n < 88:
		w.collectGarbage()
	case n < 91 && len(w.instances) > 0:
		w.disturbInstance(w.instances[w.random.IntN(len(w.instances))])
	case n < 94 && len(w.replicas()) < maxReplicas:
		w.startReplica()
	case n == 96 && len(w.replicas()) > 0:
		w.look(pick(w, w.replicas()...).eyes)
	case n >= 97 && len(w.replicas()) > 0:
		w.stopReplica(w.random.IntN(len(w.replicas())))
	}
	time.Sleep(time.Duration(w.random.Int64N(int64([]time.Duration{
		time.Millisecond, time.Second, 20 * time.Second}[w.random.IntN(3)]))))
}

// disturbInstance makes an API server lag, stand still or end for a while, or ends that.
func (w *world) disturbInstance(i *apisim.Instance) {
	w.totals.faults.Add(1)
	switch w.random.IntN(6) {
	case 0:
		i.SetPaused(true)
	case 1:
		i.SetAvailable(false)
	case 2:
		i.SetLag(apisim.Frozen)
	case 3:
		i.SetLag(time.Duration(w.random.Int64N(int64(time.Minute))))
	default:
		heal(i)
	}
}

// heal ends all disturbances of an API server.
func heal(i *apisim.Instance) {
	i.SetPaused(false)
	i.SetAvailable(true)
	i.SetLag(0)
}

// takeOver returns the versions of the last writes of a job, or forgets them.
func (w *world) takeOver(job string, inOrder bool) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !inOrder {
		clear(w.wrote[job])
	}
	return maps.Clone(w.wrote[job])
}

func (w *world) startReplica() {
	w.made++
	r := newReplica(w, fmt.Sprint("replica-", w.made))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, r)
}

// stopReplica stops a replica, and lets it stop even if it cannot reach the server.
func (w *world) stopReplica(n int) {
	r := w.replicas()[n]
	r.stop()
	w.leave(r, <-r.ended)
}

// restartEnded starts another replica for each that has ended by itself, as a kubelet does.
func (w *world) restartEnded() {
	for _, r := range w.replicas() {
		select {
		case err := <-r.ended:
			r.stop()
			w.leave(r, err)
			w.startReplica()
			w.totals.restarts.Add(1)
		default:
		}
	}
}

// leave takes a replica out that has ended with an error. It may be one that it has to end with:
// the first request for the Lease was refused, or calls did not end in time.
func (w *world) leave(r *replica, err error) {
	if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) &&
		!errors.Is(err, election.ErrStragglers) {
		w.Errorf("%s ended with %v", r.name, err)
	}
	w.totals.stops.Add(1)
	r.eyes.pages.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = slices.DeleteFunc(w.all, func(other *replica) bool { return other == r })
}

// write changes an object as a user may.
func (w *world) write() {
	w.totals.writes.Add(1)
	ctx := context.Background()
	namespace, name := namespaces[w.random.IntN(2)], fmt.Sprint("n", w.random.IntN(names))
	kind := configMaps
	if w.random.IntN(5) == 0 {
		kind = secrets
	}
	obj, err := w.server.Get(ctx, kind, namespace, name)
	want := fmt.Sprint(planted.Content, w.random.IntN(1000))
	switch {
	case apierrors.IsNotFound(err) && kind == configMaps:
		_, err = w.server.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Data:       map[string]string{"want": want},
		})
	case apierrors.IsNotFound(err):
		return
	case err == nil && w.random.IntN(4) == 0:
		_, err = w.server.Delete(ctx, kind, namespace, name)
	case err == nil && kind == configMaps:
		obj.(*corev1.ConfigMap).Data = map[string]string{"want": want}
		_, err = w.server.Update(ctx, obj)
	case err == nil:
		obj.(*corev1.Secret).Data = map[string][]byte{"want": []byte(want)}
		_, err = w.server.Update(ctx, obj)
	}
	if err != nil && !apierrors.IsConflict(err) {
		w.Error(err)
	}
}

// inject makes some requests fail.
func (w *world) inject() {
	if len(w.faults) >= 3 {
		w.lift(0)
	}
	codes := []int{401, 403, 409, 429, 500, 503, 504}
	code := codes[w.random.IntN(len(codes))]
	d := time.Duration(w.random.Int64N(int64(40 * time.Second)))
	writes := []string{"create", "update", "delete", ""}
	m := apisim.Match{
		Verb:     writes[w.random.IntN(len(writes))],
		Resource: []string{"", "configmaps", "secrets", "leases.coordination.k8s.io"}[w.random.IntN(4)],
	}
	if all := w.replicas(); len(all) > 0 && w.random.IntN(2) == 0 {
		m.UserAgent = all[w.random.IntN(len(all))].name
	}
	if w.random.IntN(2) == 0 {
		m.Probability = 0.5
	}
	if w.random.IntN(4) == 0 { // with 403, as without rights there
		m.Namespace = namespaces[w.random.IntN(2)]
	}
	watch := m
	watch.Verb = "watch"
	made := []func() *apisim.Injection{
		func() *apisim.Injection { return w.server.Inject(m, apisim.Refuse(code, 0)) },
		func() *apisim.Injection { return w.server.Inject(m, apisim.RefuseApplied(code)) },
		func() *apisim.Injection { return w.server.Inject(m, apisim.ApplyLater(d, code)) },
		func() *apisim.Injection { return w.server.Inject(m, apisim.Delay(d)) },
		func() *apisim.Injection { return w.server.Inject(m, apisim.Drop()) },
		func() *apisim.Injection { return w.server.Inject(m, apisim.CutBefore(1)) },
		func() *apisim.Injection { return w.server.Inject(m, apisim.Answer(page)) },
		func() *apisim.Injection { return w.server.Inject(m, apisim.CutWithin(1)) },
		func() *apisim.Injection { return w.server.Inject(watch, apisim.Stall(apisim.EachFrame, d/10)) },
		func() *apisim.Injection { return w.server.Inject(watch, apisim.Fail(1, 410)) },
		func() *apisim.Injection { return w.server.Inject(watch, apisim.CutLater(d)) },
	}
	w.totals.faults.Add(1)
	w.faults = append(w.faults, made[w.random.IntN(len(made))]())
	if w.random.IntN(3) == 0 {
		w.server.CutConnections()
	}
}

// page is the answer of a proxy that does not know the path.
func page(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "<html>default backend - 404</html>", http.StatusNotFound)
}

func (w *world) lift(n int) {
	w.faults[n].Lift()
	w.faults = slices.Delete(w.faults, n, n+1)
}

// settle lifts the faults, and checks the result of the controller.
func (w *world) settle() {
	for len(w.faults) > 0 {
		w.lift(0)
	}
	for _, i := range w.instances {
		heal(i)
	}
	if len(w.replicas()) == 0 {
		w.startReplica()
	}
	for n := range int(settling / time.Second) {
		w.restartEnded()
		time.Sleep(time.Second)
		if n%60 == 0 {
			w.collectGarbage() // Secrets of writes that were applied after the end of their owner
		}
	}
	wanted := map[string]string{}
	for _, obj := range w.list(configMaps) {
		cm := obj.(*corev1.ConfigMap)
		wanted[cm.Namespace+"/"+cm.Name] = cm.Data["want"]
		if cm.DeletionTimestamp != nil || cm.Annotations[annotation] != cm.Data["want"] {
			w.Errorf("ConfigMap %s/%s is not reconciled: %v, deleted %v, wants %s", cm.Namespace, cm.Name,
				cm.Annotations, cm.DeletionTimestamp, cm.Data["want"])
		}
		if w.notes != noNotes && cm.Annotations[noted] != cm.Data["want"] {
			w.Errorf("ConfigMap %s/%s is not noted: %v, wants %s", cm.Namespace, cm.Name, cm.Annotations, cm.Data["want"])
		}
	}
	for _, obj := range w.list(secrets) {
		s := obj.(*corev1.Secret)
		key := s.Namespace + "/" + s.Name
		if want, ok := wanted[key]; !ok || string(s.Data["want"]) != want {
			w.Errorf("Secret %s has %q, its ConfigMap wants %q (exists: %v)", key, s.Data["want"], want, ok)
		}
		delete(wanted, key)
	}
	for key := range wanted {
		w.Errorf("Secret %s is missing", key)
	}
}

// collectGarbage deletes the Secrets whose owners are gone, as Kubernetes does.
func (w *world) collectGarbage() {
	alive := map[types.UID]bool{}
	for _, obj := range w.list(configMaps) {
		alive[obj.(*corev1.ConfigMap).UID] = true
	}
	for _, obj := range w.list(secrets) {
		s := obj.(*corev1.Secret)
		if !alive[s.OwnerReferences[0].UID] {
			_, err := w.server.Delete(context.Background(), secrets, s.Namespace, s.Name)
			w.must(err)
		}
	}
}

func (w *world) list(kind schema.GroupVersionResource) []runtime.Object {
	objects, _, err := w.server.List(context.Background(), kind, "")
	w.must(err)
	return objects
}
