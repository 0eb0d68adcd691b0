package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/secrets"
)

const (
	day   = 24 * time.Hour
	token = secrets.Token
	// informers that live together: those of a fixed selection, and those whose slots or namespaces
	// change.
	fixedPerDay, dividedPerDay = 3, 2
	// steps between two audits, and objects of a name in a namespace.
	stepsPerAudit, names = 30, 6
)

var namespaces = []string{"a", "b", "c"}

// world is the day of one seed.
type world struct {
	*testing.T
	seed   uint64
	random *rand.Rand // of the schedule, which is one goroutine
	server *apisim.Server
	// instances are the servers behind the load balancer of the informers; none means server.
	instances []*apisim.Instance
	writeLog  writeLog
	subjects  []*subject
	active    []*activeFault
	backup    *backup
	// clusterScoped is set while widgets have no namespaces.
	clusterScoped bool
	adding        []chan error // calls of Add of slots that have not returned
	written       int
	touched       int
	joined        int
	history       []string
	totals        *totals
	printed       secrets.Output // logs, health and recordings of Secrets
}

// runDay runs the day of a seed and counts it.
func runDay(t *testing.T, seed uint64, all *totals) {
	w := &world{T: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), totals: newTotals()}
	defer w.save()
	began := time.Now()
	w.begin()
	for time.Since(began) < day && !w.Failed() {
		for range stepsPerAudit {
			w.step()
		}
		w.audit(w.random.IntN(3) == 0)
	}
	w.end()
	w.totals.lived = time.Since(began)
	w.totals.counts["seeds"], w.totals.counts["writes"] = 1, w.written
	all.add(w.totals)
}

// begin starts a server with some objects, and informers of all kinds.
func (w *world) begin() {
	o := apisim.Options{
		Seed: w.seed, HistoryLimit: 20 + w.random.IntN(500), BookmarkInterval: w.between(60, 1800),
		ShardedListAndWatch: w.random.IntN(3) == 0, ManagedFieldsOptOut: w.random.IntN(2) == 0,
	}
	w.note("server with %+v", o)
	var err error
	if w.server, err = apisim.New(o); err != nil {
		w.Fatal(err)
	}
	w.define()
	for _, namespace := range namespaces {
		w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	w.create(newObject(configMaps, "a", "touched", "touched-0"))
	w.writeLog.reset()
	for range w.random.IntN(20) {
		w.write()
	}
	w.allow()
	w.addInstances()
	w.subjects = append(w.some(fixedPerDay, w.fixedSubjects()), w.some(dividedPerDay, w.dividedSubjects())...)
	for _, s := range w.subjects {
		w.start(s)
	}
}

// some returns n of the subjects.
func (w *world) some(n int, all []*subject) []*subject {
	w.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:n]
}

// print searches the health of an informer, and its recording of Secrets. Fakes read through
// client-go's clients, whose errors quote answers.
func (w *world) print(s *subject) {
	if !s.fakes {
		w.printed.PrintHealth(s.Health())
	}
	if s.recorder != nil && s.scope.resource == secretsOf {
		w.printed.PrintRecording(w.T, s.recorder)
	}
}

// end stops all informers. The bubble fails the test if a goroutine is left.
func (w *world) end() {
	for _, s := range w.subjects {
		if s.Informer != nil {
			w.stop(s)
		}
	}
	if err := w.server.Close(); err != nil {
		w.Errorf("closing the server: %v", err)
	}
	w.printed.Check(w.T, 1000)
}

// between returns a random duration of so many seconds.
func (w *world) between(least, most int) time.Duration {
	return time.Duration(1000*least+w.random.IntN(1000*(most-least))) * time.Millisecond
}

func (w *world) config(userAgent string) *rest.Config {
	config := w.server.Config()
	if len(w.instances) > 0 {
		config = w.server.Balance(w.instances...)
	}
	config.QPS, config.UserAgent, config.BearerToken = -1, userAgent, token
	return config
}

func (w *world) note(format string, args ...any) {
	w.history = append(w.history,
		time.Now().Format("02 15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// save keeps the history of a seed that failed.
func (w *world) save() {
	if !w.Failed() {
		return
	}
	file := filepath.Join(w.ArtifactDir(), fmt.Sprintf("history-%d.txt", w.seed))
	if err := os.WriteFile(file, []byte(strings.Join(w.history, "\n")+"\n"), 0o600); err != nil {
		w.Error(err)
	}
	w.Logf("repeat it with: go test ./internal/test/simulation -sim.seed=%d\n"+
		"its history is in %s (-artifacts keeps it), and ends with\n%s", w.seed, file,
		strings.Join(w.history[max(0, len(w.history)-100):], "\n"))
}

// step does one random thing, and lets some time pass.
func (w *world) step() {
	switch n := w.random.IntN(100); {
	case n < 39:
		w.burst()
	case n < 45:
		w.divide(w.subjects[fixedPerDay+w.random.IntN(dividedPerDay)])
	case n < 65:
		w.fault()
	case n < 75:
		w.lift(w.random.IntN(1 + len(w.active)))
	case n < 82:
		w.outage()
	case n < 86:
		w.join(w.anySubject())
	case n < 93:
		w.disturb()
	case n < 94:
		w.expire()
	case n < 96:
		w.failUserCode()
	case n < 98:
		w.restart(w.anySubject())
	default:
		w.special()
	}
	switch n := w.random.IntN(20); {
	case n < 2:
		synctest.Wait()
	case n < 12:
		time.Sleep(w.between(0, 10))
	case n < 18:
		time.Sleep(w.between(10, 600))
	default:
		// Faults that last for hours mostly repeat the same failure.
		if w.random.IntN(5) > 0 {
			w.liftAll()
		}
		time.Sleep(w.between(600, 4*3600))
	}
}

// burst writes a few times.
func (w *world) burst() {
	for range 1 + w.random.IntN(12) {
		w.write()
		switch w.random.IntN(4) {
		case 0:
			synctest.Wait()
		case 1:
			time.Sleep(w.between(0, 3))
		}
	}
}

// write makes one random change.
func (w *world) write() {
	w.writeTo(w.anyObject())
}

// anyObject returns the resource, the namespace and the name of an object that may be there.
func (w *world) anyObject() (resource schema.GroupVersionResource, namespace, name string) {
	resource, namespace = configMaps, namespaces[w.random.IntN(len(namespaces))]
	switch n := w.random.IntN(6); {
	case n < 2 && !w.isActive("RemoveResource"):
		resource = widgets
		if w.clusterScoped {
			namespace = ""
		}
	case n == 2:
		resource = secretsOf
	}
	return resource, namespace, fmt.Sprint("object-", w.random.IntN(names))
}

// writeTo makes a random change of an object.
func (w *world) writeTo(resource schema.GroupVersionResource, namespace, name string) {
	w.written++
	n := fmt.Sprint("n", w.written)
	if w.random.IntN(6) == 0 {
		n = hidden
	}
	before, err := w.server.Get(context.Background(), resource, namespace, name)
	switch {
	case err != nil:
		w.note("create %s %s/%s %s", resource.Resource, namespace, name, n)
		w.create(newObject(resource, namespace, name, n))
	case w.random.IntN(3) == 0:
		w.note("delete %s %s/%s", resource.Resource, namespace, name)
		w.remove(resource, before.(metav1.Object))
	default:
		w.note("update %s %s/%s %s", resource.Resource, namespace, name, n)
		w.update(resource, before, n)
	}
}

// expire deletes the objects of a namespace with one version.
func (w *world) expire() {
	namespace := namespaces[w.random.IntN(len(namespaces))]
	objects, _, err := w.server.List(context.Background(), configMaps, namespace)
	if err != nil {
		w.Fatal(err)
	}
	var expired []string
	for _, obj := range objects {
		m := obj.(metav1.Object)
		if m.GetName() == "touched" {
			continue
		}
		expired = append(expired, m.GetName())
		w.entry(obj, new(m.GetLabels()["n"]), nil)
	}
	w.note("expire configmaps of %s: %v", namespace, expired)
	w.met("Expire", 1)
	if err := w.server.Expire(context.Background(), configMaps, namespace, expired...); err != nil {
		w.Fatal(err)
	}
}

func newObject(
	resource schema.GroupVersionResource, namespace, name, n string,
) runtime.Object {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"n": n}}
	switch resource {
	case configMaps:
		data := map[string]string{"n": n, "content": secrets.Content}
		return &corev1.ConfigMap{ObjectMeta: m, Data: data}
	case secretsOf:
		data := map[string][]byte{"content": []byte(secrets.Content)}
		return &corev1.Secret{ObjectMeta: m, Data: data}
	}
	spec := map[string]any{"n": n, "content": secrets.Content}
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(widgets.GroupVersion().WithKind("Widget"))
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{"n": n})
	return u
}

// create, update and remove write to the server and to the writeLog.
func (w *world) create(obj runtime.Object) {
	w.Helper()
	made, err := w.server.Create(context.Background(), obj)
	if err != nil {
		w.Fatal(err)
	}
	w.entry(made, nil, new(made.(metav1.Object).GetLabels()["n"]))
}

func (w *world) update(resource schema.GroupVersionResource, before runtime.Object, n string) {
	w.Helper()
	changed := before.DeepCopyObject()
	changed.(metav1.Object).SetLabels(map[string]string{"n": n})
	updated, err := w.server.Update(context.Background(), changed)
	if err != nil {
		w.Fatal(err)
	}
	w.entry(updated, new(before.(metav1.Object).GetLabels()["n"]), &n)
}

func (w *world) remove(resource schema.GroupVersionResource, before metav1.Object) {
	w.Helper()
	if _, err := w.server.Delete(context.Background(), resource, before.GetNamespace(), before.GetName()); err != nil {
		w.Fatal(err)
	}
	w.entry(before.(runtime.Object), new(before.GetLabels()["n"]), nil)
}

func (w *world) entry(obj runtime.Object, before, after *string) {
	resource := configMaps
	switch obj.(type) {
	case *unstructured.Unstructured:
		resource = widgets
	case *corev1.Secret:
		resource = secretsOf
	}
	m := obj.(metav1.Object)
	w.writeLog.note(change{resource, m.GetNamespace(), m.GetName(), string(m.GetUID()), before, after})
}

func (w *world) anySubject() *subject { return w.subjects[w.random.IntN(len(w.subjects))] }

// start starts an informer with two handlers.
func (w *world) start(s *subject) {
	s.begin(s.open(w, s))
	w.join(s)
	w.join(s)
	if w.random.IntN(3) == 0 {
		w.divide(s) // before it is synced
	}
}

// stop stops an informer under whatever faults there are.
func (w *world) stop(s *subject) {
	w.print(s)
	for _, h := range s.checkers {
		h.Unblock()
	}
	if err := s.informer.stop(); err != nil {
		w.Errorf("%s did not stop: %v", s.kind, err)
	}
	for _, h := range s.checkers {
		w.totals.counts["events"] += h.Calls()
	}
	s.informer = informer{}
}

func (w *world) restart(s *subject) {
	if s.nextTerm == nil || w.random.IntN(2) == 0 {
		w.note("%s stops and another one starts", s.kind)
		w.stop(s)
		w.start(s)
		return
	}
	w.note("%s begins a new term", s.kind)
	old := s.checkers
	s.begin(s.nextTerm())
	w.join(s)
	w.join(s)
	// The old term cannot end before its handlers have returned.
	time.Sleep(w.between(0, 5))
	for _, h := range old {
		h.Unblock()
	}
	synctest.Wait()
	for _, h := range old {
		w.totals.counts["events"] += h.Calls()
	}
}
