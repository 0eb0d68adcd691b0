package contract_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/internal/test/seeds"
	"github.com/tidings-go/tidings/source"
)

var livesSeeds = seeds.New("lives", "TestLives", 300)

// TestLives leads a factory and informers without one through random lives: asked for, started,
// stopped, started for another term, run by a handle, released, shut down, with handlers,
// namespaces, slots and waits at any point. A model knows which of them live, and the result of
// each call. An informer that reports that it is synced has to be synced, one that has stopped
// calls no handler and asks no server, every wait ends, and no goroutine is left.
func TestLives(t *testing.T) {
	for seed := range livesSeeds.All() {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runLives(t, seed) })
		})
	}
}

func runLives(t *testing.T, seed uint64) {
	l := newLives(t, seed)
	defer func() {
		if t.Failed() {
			t.Logf("repeat it with: go test -run TestLives -lives.seed=%d ./contract", seed)
			t.Logf("history:\n%s", strings.Join(l.history, "\n"))
		}
	}()
	for range 10 + l.random.IntN(70) {
		l.step()
		l.noteEnds()
		if got := len(l.factory.Health()); got != len(l.order) {
			l.Errorf("the factory has %d informers, want %d", got, len(l.order))
		}
	}
	l.calm()
	l.close()
}

// lives is a world in which informers live and end.
type lives struct {
	*world
	random  *rand.Rand
	history []string
	steps   int
	client  *source.Client     // of the informers without a factory
	slow    *tidings.Transform // takes its time

	terms   []*term
	current map[string]*subject // what is found by asking, by key
	order   []*subject          // what the factory has
	handles []*handle
	runs    []chan error // of Run of handles
	waits   []chan error // of waits that the schedule goes on beside
	slots   *tidings.Slots
	adds    []chan error // of additions of slots
	shut    bool         // the factory was shut down
	hung    bool         // a handler took longer than the grace of a stop, perhaps

	objects     map[string]bool // by name: those that exist
	version     string          // of the last write
	lastChanged int             // the step in which server or gate last changed
}

// term is a context that informers are run with.
type term struct {
	ctx  context.Context
	stop context.CancelFunc
}

// foreign is a context which the context package knows nothing of, so that those that are
// made of it end a little later.
type foreign struct{ context.Context }

func (foreign) Value(any) any { return nil }

// subject is the model of one collection.
type subject struct {
	kind       string
	selection  tidings.Selection
	namespaces []string // none: all
	asked      string   // the key by which it was asked for at first
	own        bool     // without a factory
	handles    int
	released   bool
	shut       bool            // by Shutdown
	ctx        context.Context // that it was run with; nil before
	claimed    int             // the step in which it was
	ended      atomic.Int64    // when it was over, in nanoseconds of the Unix epoch; 0 before
}

func (s *subject) key() string {
	return fmt.Sprint(s.kind, s.namespaces, s.selection.Labels, s.selection.Transform != nil, s.selection.Slots != nil)
}

// add has the factory make a subject. Those that have ended and were asked for so are
// asked for again.
func (l *lives) add(s *subject) {
	s.asked = s.key()
	for _, old := range slices.Clone(l.order) {
		if old.asked == s.asked && old.over() != nil {
			l.forget(old)
		}
	}
	l.current[s.asked] = s
	l.order = append(l.order, s)
}

// over returns why it is.
func (s *subject) over() error {
	switch {
	case s.released:
		return tidings.ErrReleased
	case s.shut, s.ctx != nil && s.ctx.Err() != nil:
		return tidings.ErrStopped
	}
	return nil
}

// handle is one handle to a subject.
type handle struct {
	*subject
	name     string
	probe    probe
	given    bool // back
	handlers []*listener
}

// over returns why the handle is of no use.
func (h *handle) over() error {
	if h.given {
		return tidings.ErrReleased
	}
	return h.subject.over()
}

// waitable returns why nothing can be waited for, nil if it can.
func (h *handle) waitable() error {
	if err := h.over(); err != nil || h.own || h.ctx != nil {
		return err
	}
	return tidings.ErrNotStarted
}

// listener is a handler, which must not be called once its informer is over or it was
// removed. In the same instant it may be.
type listener struct {
	*folder
	of      *subject
	pause   time.Duration
	removed atomic.Int64
}

func (h *listener) handle(e event) {
	now := time.Now().UnixNano()
	if at := h.removed.Load(); at != 0 && now > at {
		h.model.Errorf("%s is called %v after its removal", h.name, time.Duration(now-at))
	}
	if at := h.of.ended.Load(); at != 0 && now > at && h.of.selection.Transform == nil {
		h.model.Errorf("%s is called %v after the end of its informer", h.name, time.Duration(now-at))
	}
	h.folder.handle(e)
	time.Sleep(h.pause)
}

func newLives(t *testing.T, seed uint64) *lives {
	random := rand.New(rand.NewPCG(seed, 1))
	o := tidings.FactoryOptions{Transport: tidings.Transport{NoStreamedLists: random.IntN(3) == 0, PageSize: int64(1 + random.IntN(3))}}
	l := &lives{
		world: newWorld(t, nil, o, apisim.Options{BookmarkInterval: 10 * time.Second}), random: random,
		current: map[string]*subject{}, objects: map[string]bool{}, version: "1",
		slots: tidings.NewSlots(tidings.ByUID, half(0)),
	}
	l.slow = tidings.NewTransform(func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		time.Sleep(3 * time.Second)
		return c, nil
	})
	config := l.server.Config()
	config.QPS = -1
	var err error
	if l.client, err = source.NewClient(config, nil); err != nil {
		t.Fatal(err)
	}
	l.haveNamespaces(livesNamespaces[1:]...)
	for range random.IntN(6) {
		l.write()
	}
	return l
}

var livesNamespaces = []string{"default", "one", "two"}

func (l *lives) note(format string, args ...any) {
	l.history = append(l.history, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

// chance reports true in n of 100 cases.
func (l *lives) chance(n int) bool { return l.random.IntN(100) < n }

// noteEnds notes which subjects are over. No time passes in a step before it is.
func (l *lives) noteEnds() {
	for _, h := range l.handles {
		if h.subject.over() != nil {
			h.ended.CompareAndSwap(0, time.Now().UnixNano())
		}
	}
}

// wants checks that err is one of those wanted; a wanted nil is no error.
func (l *lives) wants(what string, err error, want ...error) {
	l.Helper()
	l.note("%s: %v", what, err)
	if !slices.ContainsFunc(want, func(w error) bool { return errorIs(err, w) }) {
		l.Errorf("%s: got %v, want one of %v", what, err, want)
	}
}

// write makes one random change of the server.
func (l *lives) write() {
	namespace := livesNamespaces[l.random.IntN(len(livesNamespaces))]
	name := fmt.Sprint(namespace, "-", l.random.IntN(3))
	l.lastChanged = l.steps
	switch {
	case !l.objects[name]:
		l.note("create %s", name)
		l.createIn(namespace, name, fmt.Sprint(l.random.IntN(2)))
	case namespace == "default" && l.chance(50):
		l.note("delete %s", name)
		l.remove(name)
		delete(l.objects, name)
		return
	case namespace == "default":
		l.note("update %s", name)
		l.update(name, fmt.Sprint(l.random.IntN(2)))
	default:
		return
	}
	l.objects[name], l.version = true, l.versions[name]
}

// expected returns the objects that the cache of a subject should hold.
func (l *lives) expected(s *subject) map[string]string {
	l.Helper()
	namespaces := s.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	state := l.serverStateOf(namespaces...)
	if s.selection.Labels != "" {
		maps.DeleteFunc(state, func(_, state string) bool { return label(state) != "1" })
	}
	if s.selection.Slots != nil {
		maps.DeleteFunc(state, func(_, state string) bool { return !l.slots.Has(follow.UID(state), "") })
	}
	return state
}

// compare checks that the cache holds the expected objects.
func (l *lives) compare(h *handle, why string) {
	l.Helper()
	if got, want := h.probe.state(), l.expected(h.subject); !maps.Equal(got, want) {
		l.Errorf("%s: %s holds %v, want %v; health %+v", why, h.name, got, want, h.probe.informer().Health())
	}
}
