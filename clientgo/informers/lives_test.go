package informers

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/seeds"
)

var livesSeeds = seeds.New("lives", "TestLives", 100)

// TestLives runs our factory and client-go's through the same random schedules, each with a
// server of its own: informers are requested, started, stopped, started again and shut down, and
// handlers are added and removed at any point. After each step that settles, both show the same
// state. Nothing runs at the end.
func TestLives(t *testing.T) {
	for seed := range livesSeeds.All() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			ours := seenIn(t, seed, func(c kubernetes.Interface) SharedInformerFactory { return NewSharedInformerFactory(c, 0) })
			theirs := seenIn(t, seed, func(c kubernetes.Interface) SharedInformerFactory {
				return informers.NewSharedInformerFactory(c, 0)
			})
			for n := range min(len(ours), len(theirs)) {
				if ours[n] != theirs[n] {
					t.Fatalf("repeat it with: go test -run TestLives -lives.seed=%d ./clientgo/informers\nafter\n%s\nours is\n%s\nclient-go's\n%s",
						seed, strings.Join(ours[:n], "\n"), ours[n], theirs[n])
				}
			}
		})
	}
}

// seenIn runs a schedule in a bubble, and returns its observations.
func seenIn(t *testing.T, seed uint64, make func(kubernetes.Interface) SharedInformerFactory) []string {
	var l *lives
	synctest.Test(t, func(t *testing.T) {
		server, client := newServer(t)
		l = &lives{T: t, random: rand.New(rand.NewPCG(seed, 2)), server: server, factory: make(client), known: map[string]cache.SharedIndexInformer{}}
		for range 10 + l.random.IntN(40) {
			l.step()
		}
		l.end()
	})
	return l.seen
}

// lives is a factory in a schedule.
type lives struct {
	*testing.T
	random    *rand.Rand
	server    *apisim.Server
	factory   SharedInformerFactory
	known     map[string]cache.SharedIndexInformer
	terms     []context.CancelFunc
	listeners []*listener
	created   int
	seen      []string
}

// listener is a handler that folds its notifications.
type listener struct {
	informer     string
	registration cache.ResourceEventHandlerRegistration
	removed      bool

	mu   sync.Mutex
	held map[string]bool
}

func (h *listener) OnAdd(obj any, _ bool) { h.set(obj, true) }
func (h *listener) OnUpdate(_, obj any)   { h.set(obj, true) }
func (h *listener) OnDelete(obj any)      { h.set(obj, false) }

func (h *listener) set(obj any, held bool) {
	key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	h.mu.Lock()
	defer h.mu.Unlock()
	if held {
		h.held[key] = true
	} else {
		delete(h.held, key)
	}
}

func (l *lives) note(format string, args ...any) {
	l.seen = append(l.seen, fmt.Sprintf(format, args...))
}

var livesNames = []string{"config maps", "deployments", "pods"}

// step takes one random action.
func (l *lives) step() {
	name := livesNames[l.random.IntN(len(livesNames))]
	switch n := l.random.IntN(100); {
	case n < 15:
		l.note("ask for %s", name)
		l.known[name] = l.ask(name)
	case n < 30:
		ctx, stop := context.WithCancel(context.Background())
		l.terms = append(l.terms, stop)
		l.note("start")
		l.factory.StartWithContext(ctx)
	case n < 38 && len(l.terms) > 0:
		synctest.Wait() // whether notifications arrive before the end is a race
		l.note("a term ends")
		l.terms[l.random.IntN(len(l.terms))]()
		synctest.Wait()
	case n < 58:
		l.created++
		l.note("create %d", l.created)
		create(l.T, l.server, pod("default", fmt.Sprint("pod-", l.created), "web"))
	case n < 75:
		l.join(name)
	case n < 83 && len(l.listeners) > 0:
		h := l.listeners[l.random.IntN(len(l.listeners))]
		h.removed = true
		l.note("remove a handler of %s: %v", h.informer, l.known[h.informer].RemoveEventHandler(h.registration))
	case n < 88:
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		synced := l.factory.WaitForCacheSync(ctx.Done())
		cancel()
		l.note("wait: %v", synced)
	default:
		l.look()
	}
}

func (l *lives) ask(name string) cache.SharedIndexInformer {
	switch name {
	case "pods":
		return l.factory.Core().V1().Pods().Informer()
	case "config maps":
		return l.factory.Core().V1().ConfigMaps().Informer()
	}
	return l.factory.Apps().V1().Deployments().Informer()
}

// join adds a handler to an informer that was requested.
func (l *lives) join(name string) {
	informer := l.known[name]
	if informer == nil {
		return
	}
	h := &listener{informer: name, held: map[string]bool{}}
	var err error
	h.registration, err = informer.AddEventHandler(h)
	l.note("a handler of %s: refused %v", name, err != nil)
	if err == nil {
		l.listeners = append(l.listeners, h)
	}
}

// look records the state of informers and handlers once the bubble is idle. Notifications before
// the removal of a handler are not compared, as their number is a race.
func (l *lives) look() {
	time.Sleep(time.Minute)
	synctest.Wait()
	for _, name := range slices.Sorted(maps.Keys(l.known)) {
		i := l.known[name]
		keys := slices.Sorted(slices.Values(i.GetStore().ListKeys()))
		l.note("%s: synced %v, stopped %v, holds %v", name, i.HasSynced(), i.IsStopped(), keys)
	}
	for n, h := range l.listeners {
		if h.removed {
			continue
		}
		h.mu.Lock()
		l.note("handler %d: synced %v, holds %v", n, h.registration.HasSynced(), slices.Sorted(maps.Keys(h.held)))
		h.mu.Unlock()
	}
}

// end shuts the factory down while its informers run, and then ends them.
func (l *lives) end() {
	l.look()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.factory.Shutdown()
	}()
	synctest.Wait()
	late := l.ask("pods")
	l.factory.StartWithContext(context.Background())
	synctest.Wait()
	for _, stop := range l.terms {
		stop()
	}
	<-done
	l.note("the last pods: stopped %v", late.IsStopped())
	l.known["pods"] = late
	requests := len(l.server.Requests())
	create(l.T, l.server, pod("default", "late", "web"))
	l.look()
	if n := len(l.server.Requests()); n != requests {
		l.Errorf("%d requests after Shutdown", n-requests)
	}
}
