package tidings_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/seeds"
)

var modelSeeds = seeds.New("model", "TestModel", 30)

// TestModel applies random writes and random faults to a server, with handlers that
// come, go, block themselves or the cache, and index functions and transforms that fail,
// panic and return nothing, and compares at the end: server and cache, objects and
// indexes, and what each handler was told with what the cache holds. Every seed is a
// bubble of its own; one that fails is printed and saved with its history.
func TestModel(t *testing.T) {
	names := slices.Sorted(maps.Keys(kinds))
	for seed := range modelSeeds.All() {
		kind := names[seed%uint64(len(names))]
		t.Run(fmt.Sprintf("seed %d, %s", seed, kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runModel(t, kind, seed) })
		})
	}
}

func runModel(t *testing.T, kind string, seed uint64) {
	m := newModel(t, kind, seed)
	defer m.end()
	defer m.saveHistory(seed)
	for range 20 + m.random.IntN(180) {
		m.step()
	}
	m.calm()
	m.compare()
}

// model is a world with a random schedule.
type model struct {
	*world
	random   *rand.Rand
	handlers []*folder
	history  []string
	objects  map[string]bool // by name: those that exist
	written  int
	// resumes leaves out the faults that a watch cannot be resumed after. Without a
	// list that mends what was lost, every delete can be compared.
	resumes bool
	labels  bool // the selection has labels, so that objects leave it and come back
	exact   int  // handlers whose deletes were compared one by one
	// judge says what the transform does with the object of a version; nil is no transform.
	judge func(version string) verdict
}

// judgeBy returns what a transform does with the objects of versions: with the final
// state of an object, that is another question than with the one before.
func judgeBy(seed uint64) func(version string) verdict {
	return func(version string) verdict {
		h := fnv.New64a()
		fmt.Fprint(h, seed, version)
		return []verdict{fails, panics, returnsNil, passes, passes, passes, passes, passes}[h.Sum64()%8]
	}
}

func newModel(t *testing.T, kind string, seed uint64) *model {
	random := rand.New(rand.NewPCG(seed, 0))
	o := tidings.FactoryOptions{Transport: tidings.Transport{
		NoStreamedLists: random.IntN(3) == 0,
		PageSize:        int64(1 + random.IntN(5)),
		WatchTimeout:    time.Duration(1+random.IntN(300)) * time.Second,
	}}
	so := apisim.Options{
		HistoryLimit:     10 + random.IntN(200),
		BookmarkInterval: time.Duration(1+random.IntN(60)) * time.Second,
	}
	resumes := random.IntN(2) == 0
	if resumes {
		so.HistoryLimit = 0
	}
	w := newWorld(t, kinds[kind], o, so)
	selection := tidings.Selection{}
	switch random.IntN(4) {
	case 0:
		selection.Namespace = "default"
	case 1:
		selection.Namespaces = []string{"default", "kube-system"}
	case 2:
		selection.Labels = "n notin (hidden)"
	}
	m := &model{world: w, random: random, objects: map[string]bool{}, resumes: resumes, labels: selection.Labels != ""}
	if random.IntN(2) == 0 {
		m.judge = judgeBy(seed)
		selection.Transform = transforms[kind](func(obj metav1.Object) verdict { return m.judge(obj.GetResourceVersion()) })
	}
	w.probe = w.ask(t, w.factory, selection)
	m.note("options %+v, server %+v, selection %+v", o, so, selection)
	for range random.IntN(10) {
		m.write(m.name())
	}
	for range 1 + random.IntN(3) {
		m.join()
	}
	if err := w.factory.Start(w.ctx); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *model) note(format string, args ...any) {
	m.history = append(m.history, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// saveHistory keeps what a failing seed did.
func (m *model) saveHistory(seed uint64) {
	if !m.Failed() {
		return
	}
	m.Logf("repeat it with: go test -run TestModel -model.seed=%d .", seed)
	m.Logf("history:\n%s", strings.Join(m.history, "\n"))
}

// step does one random thing.
func (m *model) step() {
	switch n := m.random.IntN(100); {
	case n < 45:
		m.write(m.name())
	case n < 60:
		name := m.name()
		for range 2 + m.random.IntN(3) {
			m.write(name)
		}
	case n < 75:
		pause := time.Duration(m.random.IntN(3000)) * time.Millisecond
		m.note("pause of %v", pause)
		time.Sleep(pause)
	case n < 80:
		synctest.Wait()
	case n < 90:
		m.fault()
	case n < 94:
		m.join()
	default:
		m.disturb()
	}
}

func (m *model) name() string { return fmt.Sprint("object-", m.random.IntN(8)) }

// write makes one random change.
func (m *model) write(name string) {
	m.written++
	n := fmt.Sprint("n", m.written)
	if m.random.IntN(5) == 0 {
		n = []string{"hidden", "unindexable", "unbearable"}[m.random.IntN(3)]
	}
	switch {
	case !m.objects[name]:
		m.note("create %s %s", name, n)
		m.create(name, n)
		m.objects[name] = true
	case m.random.IntN(4) == 0:
		m.note("delete %s", name)
		m.remove(name)
		delete(m.objects, name)
	default:
		m.note("update %s %s", name, n)
		m.update(name, n)
	}
}

// fault disturbs the server.
func (m *model) fault() {
	down := time.Duration(m.random.IntN(5000)) * time.Millisecond
	codes := []int{429, 500, 503, 403, 404}
	kinds := 7
	if m.resumes {
		codes, kinds = codes[:4], 3
	}
	switch m.random.IntN(kinds) {
	case 0:
		m.note("cut the connections")
		m.server.CutConnections()
	case 1:
		m.note("restart with history, down for %v", down)
		m.server.Restart(apisim.RestartOptions{KeepHistory: true, Down: down})
	case 2:
		code := codes[m.random.IntN(len(codes))]
		m.note("answer %d for %v", code, down)
		m.gate.set(refuse(code, map[int]string{429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 403: "Forbidden", 404: "NotFound"}[code]))
		m.server.CutConnections()
		time.Sleep(down)
		m.gate.set(nil)
	case 3:
		m.note("compact")
		m.server.Compact()
	case 4:
		m.note("compact and cut")
		m.server.Compact()
		m.server.CutConnections()
	case 5:
		m.note("restart, down for %v", down)
		m.server.Restart(apisim.RestartOptions{Down: down})
	case 6:
		refuse := m.random.IntN(2) == 0
		m.note("refuse streamed lists: %v", refuse)
		m.server.RefuseStreamedLists(refuse)
	}
}

// join adds a handler.
func (m *model) join() {
	if len(m.handlers) > 6 {
		return
	}
	f := newFolder(m, fmt.Sprint("handler-", len(m.handlers)))
	o := tidings.HandlerOptions{Name: f.name, Limit: 1 + m.random.IntN(20), Policy: tidings.Policy([]tidings.Policy{
		tidings.ConflateUpdates, tidings.ConflateUpdates, tidings.ConflateState, tidings.Unbounded, tidings.Block}[m.random.IntN(5)])}
	if m.random.IntN(4) == 0 {
		o.Resync = time.Duration(1+m.random.IntN(20)) * time.Second
	}
	f.policy = o.Policy
	m.note("%s joins: %+v", f.name, o)
	f.registration = m.probe.handle(f.handle, o)
	m.handlers = append(m.handlers, f)
}

// disturb blocks, frees or removes a handler.
func (m *model) disturb() {
	if len(m.handlers) == 0 {
		return
	}
	f := m.handlers[m.random.IntN(len(m.handlers))]
	switch m.random.IntN(5) {
	case 0:
		m.note("%s is removed", f.name)
		f.registration.Remove()
		f.setBlocked(false)
		f.removed = true
	case 1, 2:
		m.note("%s blocks", f.name)
		f.setBlocked(true)
	default:
		m.note("%s goes on", f.name)
		f.setBlocked(false)
	}
}

// calm ends all faults and waits until everything has settled.
func (m *model) calm() {
	m.note("calm")
	m.gate.set(nil)
	m.server.SetAvailable(true)
	for _, f := range m.handlers {
		f.setBlocked(false)
	}
	ctx, cancel := context.WithTimeout(m.ctx, 10*time.Minute)
	defer cancel()
	if err := m.factory.WaitForSync(ctx); err != nil {
		m.Fatal(err)
	}
	m.settle()
}

// compare checks everything against the server.
func (m *model) compare() {
	m.Helper()
	want := m.serverState()
	if m.labels {
		maps.DeleteFunc(want, func(_, state string) bool { return label(state) == "hidden" })
	}
	cache := m.probe.state()
	m.leaveOutFailed(want, cache)
	if !maps.Equal(cache, want) {
		m.Errorf("the cache holds %v, the server %v; health %+v", cache, want, m.probe.informer().Health())
	}
	indexed := map[string]string{}
	for _, state := range want {
		for _, key := range m.probe.indexed(label(state)) {
			indexed[key] = label(state)
		}
	}
	for key, state := range want {
		n := label(state)
		if _, found := indexed[key]; found == (n == "unindexable" || n == "unbearable") {
			m.Errorf("%s with %s: in the index %v", key, n, found)
		}
	}
	for _, f := range m.handlers {
		f.compare(cache)
	}
}

// leaveOutFailed makes of the server's state what the cache should hold: of an object
// whose transform fails, an older state, or none.
func (m *model) leaveOutFailed(want, cache map[string]string) {
	for key, state := range want {
		if m.judge == nil || m.judge(version(state)) == passes {
			continue
		}
		delete(want, key)
		if cached, ok := cache[key]; ok {
			if order, _ := delta.CompareDecimal(version(cached), version(state)); order < 0 && m.judge(version(cached)) == passes {
				want[key] = cached
			}
		}
	}
}
