package contract_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/internal/test/secrets"
)

// world is a server, a factory and one informer of a kind.
type world struct {
	*testing.T
	server    *apisim.Server
	factory   *tidings.Factory
	ask       askFor
	probe     probe
	slots     *tidings.Slots // of the probe; nil if it has all
	stop      context.CancelFunc
	ctx       context.Context
	gate      gate
	uids      map[string]string
	versions  map[string]string
	mutations chan tidings.Mutation // those that the detector has found
	stuck     bool                  // the test left a handler stuck: Shutdown fails
	followers []*ledger
	cost      cost // of a harmful fault
}

// gate is middleware that can answer in the server's place.
type gate struct {
	mu   sync.Mutex
	shut func(w http.ResponseWriter, r *http.Request) bool // answered
	wrap func(w http.ResponseWriter, r *http.Request) http.ResponseWriter
}

func (g *gate) set(f func(w http.ResponseWriter, r *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = f
}

// wrap makes f wrap the writer of every answer from now on.
func (w *world) wrap(f func(http.ResponseWriter, *http.Request) http.ResponseWriter) {
	w.gate.mu.Lock()
	defer w.gate.mu.Unlock()
	w.gate.wrap = f
}

func (g *gate) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		shut, wrap := g.shut, g.wrap
		g.mu.Unlock()
		if wrap != nil {
			w = wrap(w, r)
		}
		if shut == nil || !shut(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// property runs a test of the contract for every kind of informer.
func property(t *testing.T, test func(w *world)) {
	t.Helper()
	propertyWith(t, tidings.FactoryOptions{}, tidings.Selection{Namespace: "default"}, test)
}

func propertyWith(
	t *testing.T, o tidings.FactoryOptions, s tidings.Selection, test func(w *world),
) {
	t.Helper()
	withKinds(t, o, func(w *world) {
		w.probe = w.ask(w.T, w.factory, s)
		test(w)
	})
}

// withKinds runs a test for every kind of informer, without one.
func withKinds(t *testing.T, o tidings.FactoryOptions, test func(w *world)) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, kinds[name], o, apisim.Options{})
				defer w.end()
				test(w)
			})
		})
	}
}

func newWorld(t *testing.T, ask askFor, o tidings.FactoryOptions, so apisim.Options) *world {
	t.Helper()
	w := &world{
		T: t, ask: ask, uids: map[string]string{}, versions: map[string]string{},
		mutations: make(chan tidings.Mutation, 10),
	}
	o.OnMutation = func(m tidings.Mutation) { w.mutations <- m }
	so.Middleware = w.gate.middleware
	var err error
	if w.server, err = apisim.New(so); err != nil {
		t.Fatal(err)
	}
	config := w.server.Config()
	config.QPS, config.BearerToken = -1, secrets.Token
	if w.factory, err = tidings.NewFactory(config, o); err != nil {
		t.Fatal(err)
	}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// end stops everything. The bubble fails the test if a goroutine is left.
func (w *world) end() {
	w.stop()
	printed.PrintHealth(w.factory.Health()...)
	if err := w.factory.Shutdown(context.Background()); (err != nil) != w.stuck {
		w.Errorf("Shutdown: %v", err)
	}
	if err := w.server.Close(); err != nil {
		w.Errorf("closing the server: %v", err)
	}
	printed.Check(w.T, 0)
	for _, l := range w.followers {
		for _, wrong := range l.Wrong() {
			w.Error(wrong)
		}
	}
}

// health returns the health of the informer.
func (w *world) health() tidings.Health { return w.probe.informer().Health() }

// start starts the factory and waits until it is synced and nothing moves.
func (w *world) start() {
	w.Helper()
	if err := w.factory.Start(w.ctx); err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
	defer cancel()
	if err := w.factory.WaitForSync(ctx); err != nil {
		w.Fatal(err)
	}
	synctest.Wait()
}

func object(name, n string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"n": n}},
		Data:       map[string]string{"n": n, "content": secrets.Content},
	}
}

// create, update and remove change the server's world. They note version and UID.
func (w *world) create(name, n string) {
	w.Helper()
	w.createIn("default", name, n)
}

// haveNamespaces creates namespaces.
func (w *world) haveNamespaces(names ...string) {
	w.Helper()
	for _, name := range names {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := w.server.Create(context.Background(), namespace); err != nil {
			w.Fatal(err)
		}
	}
}

// createIn creates an object in a namespace.
func (w *world) createIn(namespace, name, n string) {
	w.Helper()
	obj := object(name, n)
	obj.Namespace = namespace
	made, err := w.server.Create(context.Background(), obj)
	if err != nil {
		w.Fatal(err)
	}
	w.note(made.(metav1.Object))
}

func (w *world) update(name, n string) {
	w.Helper()
	obj, err := w.server.Get(context.Background(), configMaps, "default", name)
	if err != nil {
		w.Fatal(err)
	}
	changed := obj.DeepCopyObject().(*corev1.ConfigMap)
	changed.Labels["n"], changed.Data["n"] = n, n
	updated, err := w.server.Update(context.Background(), changed)
	if err != nil {
		w.Fatal(err)
	}
	w.note(updated.(metav1.Object))
}

func (w *world) note(obj metav1.Object) {
	w.uids[obj.GetName()] = string(obj.GetUID())
	w.versions[obj.GetName()] = obj.GetResourceVersion()
}

func (w *world) remove(name string) {
	w.Helper()
	if _, err := w.server.Delete(context.Background(), configMaps, "default", name); err != nil {
		w.Fatal(err)
	}
}

// serverState returns the states that the server has.
func (w *world) serverState() map[string]string {
	w.Helper()
	return w.serverStateOf("default")
}

// serverStateOf returns the states of some namespaces, "" being all.
func (w *world) serverStateOf(namespaces ...string) map[string]string {
	w.Helper()
	state := map[string]string{}
	for _, namespace := range namespaces {
		objects, _, err := w.server.List(context.Background(), configMaps, namespace)
		if err != nil {
			w.Fatal(err)
		}
		for _, obj := range objects {
			cm := obj.(*corev1.ConfigMap)
			state[cm.Namespace+"/"+cm.Name] = follow.StateOf(cm)
		}
	}
	return state
}

// agree checks that the cache is the server's state.
func (w *world) agree() {
	w.Helper()
	if got, want := w.probe.state(), w.serverState(); !maps.Equal(got, want) {
		w.Errorf("the cache holds %v, the server %v", got, want)
	}
}

// settle lets virtual time pass, for waits after failures to end, and then waits
// until nothing moves.
func (w *world) settle() { w.after(2 * time.Minute) }

// after lets virtual time pass and then waits until nothing moves.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// reconnect replaces the informer by one of a new factory with another client.
func (w *world) reconnect(o tidings.FactoryOptions, change func(*rest.Config)) {
	w.Helper()
	if err := w.factory.Shutdown(context.Background()); err != nil {
		w.Fatal(err)
	}
	config := w.server.Config()
	config.QPS = -1
	change(config)
	var err error
	if w.factory, err = tidings.NewFactory(config, o); err != nil {
		w.Fatal(err)
	}
	w.probe = w.ask(w.T, w.factory, tidings.Selection{Namespace: "default"})
}

// refuse makes the server answer every request with a status.
func refuse(code int, reason string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,`+
			`"message":"you shall not pass","code":%d}`, reason, code)
		return true
	}
}

// must fails the test if there is an error.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// expect compares the texts of events.
func expect(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("received\n %s\nwant\n %s", strings.Join(got, "\n "), strings.Join(want, "\n "))
	}
}

// ledger is a handler that is checked when the world ends.
type ledger struct {
	follow.Follower
	w            *world
	registration *tidings.Registration
}

// follow adds a ledger to the informer.
func (w *world) follow() *ledger {
	w.Helper()
	l := &ledger{w: w}
	w.followers = append(w.followers, l)
	l.registration = w.probe.handle(l.Handle, tidings.HandlerOptions{})
	return l
}

// receives compares the events since the last call, in any order.
func (l *ledger) receives(want ...string) {
	l.w.Helper()
	got := l.Texts()
	slices.Sort(got)
	slices.Sort(want)
	expect(l.w, got, want...)
}

// sum checks that the events add up to the cache, and the cache to the server.
func (l *ledger) sum() {
	l.w.Helper()
	l.w.agree()
	if held, cache := l.Held(), l.w.probe.state(); !maps.Equal(held, cache) {
		l.w.Errorf("the handler adds up to %v, the cache holds %v", held, cache)
	}
}

// agrees checks the sum, and that the informer is watching.
func (l *ledger) agrees() {
	l.w.Helper()
	l.sum()
	if h := l.w.health(); h.State != tidings.StateWatching {
		l.w.Errorf("health is %s after %v", h.State, h.LastError)
	}
}

// lists checks how many lists were begun.
func (l *ledger) lists(want uint64) {
	l.w.Helper()
	if got := l.w.health().Lists; got != want {
		l.w.Errorf("%d lists, want %d", got, want)
	}
}

// says checks the text of the last error.
func (l *ledger) says(want string) {
	l.w.Helper()
	if err := l.w.health().LastError; !strings.Contains(fmt.Sprint(err), want) {
		l.w.Errorf("the last error is %v, want one that says %q", err, want)
	}
}

// has creates objects, starts everything and follows it.
func (w *world) has(names ...string) *ledger {
	w.Helper()
	for _, name := range names {
		w.create(name, "1")
	}
	l := w.follow()
	w.start()
	return l
}
