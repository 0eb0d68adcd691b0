package tidingstest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/cache"
)

// defects are defects of informers, each with the tests that must fail.
var defects = map[string]struct {
	defect  func(b *broken)
	setting func(s *Setting)
	caught  []string
}{
	"deletes are lost": {one(func(e Event) []Event {
		if e.Type == tidings.Deleted {
			return nil
		}
		return []Event{e}
	}), nil, []string{
		"P01_CacheHoldsWhatTheServerHolds", "P01_LostConnectionsAndAForgottenPast",
		"P01_FaultsOfTheServer", "P04_EveryChangeInOrder", "P08_RelistIsOneStep",
		"P08_ListThatIsOldWhenItArrives",
	}},
	"adds come twice": {one(func(e Event) []Event {
		if e.Type == tidings.Added {
			return []Event{e, e}
		}
		return []Event{e}
	}), nil, []string{
		"P01_CacheHoldsWhatTheServerHolds", "P04_EveryChangeInOrder", "P05_InitialAddsAreMarked",
	}},
	"every third update is lost": {changing(func() func(Event) []Event {
		n := 0
		return func(e Event) []Event {
			if e.Type == tidings.Updated {
				if n++; n%3 == 2 {
					return nil
				}
			}
			return []Event{e}
		}
	}), nil, []string{"P04_EveryChangeInOrder", "P02_StatesOnlyMoveForward"}},
	"neighbours change places": {changing(func() func(Event) []Event {
		var held []Event
		return func(e Event) []Event {
			if e.Initial || strings.HasPrefix(e.Object().GetName(), "fence-") {
				return append(slices.Clip(held), e)
			}
			if held == nil {
				held = []Event{e}
				return nil
			}
			both := []Event{e, held[0]}
			held = nil
			return both
		}
	}), nil, []string{"P04_EveryChangeInOrder"}},
	"initial adds are not marked": {one(func(e Event) []Event {
		e.Initial = false
		return []Event{e}
	}), nil, []string{
		"P04_EveryChangeInOrder", "P05_InitialAddsAreMarked", "P07_SyncedAfterTheInitialSet",
	}},
	"all adds are marked": {one(func(e Event) []Event {
		e.Initial = e.Type == tidings.Added
		return []Event{e}
	}), nil, []string{"P04_EveryChangeInOrder", "P05_InitialAddsAreMarked"}},
	"tombstones are not marked": {one(func(e Event) []Event {
		e.Tombstone = false
		return []Event{e}
	}), nil, []string{"P08_RelistIsOneStep"}},
	"another object is reported as a new state": {changing(func() func(Event) []Event {
		gone := map[string]Event{}
		return func(e Event) []Event {
			if before, ok := gone[e.Key()]; ok && e.Type == tidings.Added {
				delete(gone, e.Key())
				return []Event{{Type: tidings.Updated, Old: before.Old, New: e.New}}
			}
			if e.Type == tidings.Deleted {
				gone[e.Key()] = e
				return nil
			}
			return []Event{e}
		}
	}), nil, []string{"P19_AnotherObjectUnderTheSameKey"}},
	"another object is no change": {one(func(e Event) []Event {
		if e.Type == tidings.Updated && e.Old.GetUID() != e.New.GetUID() {
			return nil
		}
		return []Event{e}
	}), nil, []string{"P19_AnotherObjectFoundByAList"}},
	"what a handler writes is not told": {one(func(e Event) []Event {
		if strings.HasPrefix(e.Object().GetName(), "echo-") {
			return nil
		}
		return []Event{e}
	}), nil, []string{"P04_ReentrantHandler"}},
	"late handlers miss what is there": {func(b *broken) {
		b.around = func(handle func(Event), late bool) func(Event) {
			return func(e Event) {
				if !late || !e.Initial {
					handle(e)
				}
			}
		}
	}, nil, []string{"P05_LateHandlersRacingCreations", "P05_InitialAddsAreMarked"}},
	"calls overlap": {func(b *broken) {
		b.around = func(handle func(Event), _ bool) func(Event) {
			return func(e Event) { go handle(e) }
		}
	}, nil, []string{"P07_SyncedAfterTheInitialSet", "P10_BlockedHandlerHoldsUpNobody"}},
	"all handlers wait for one": {func(b *broken) {
		calling := make(chan struct{}, 1)
		b.around = func(handle func(Event), _ bool) func(Event) {
			return func(e Event) {
				calling <- struct{}{}
				handle(e)
				<-calling
			}
		}
	}, nil, []string{"P10_BlockedHandlerHoldsUpNobody", "P07_SyncedAfterTheInitialSet"}},
	"a panic ends the handler": {func(b *broken) {
		b.around = func(handle func(Event), _ bool) func(Event) {
			dead := false
			return func(e Event) {
				defer func() {
					if recover() != nil {
						dead = true
					}
				}()
				if !dead {
					handle(e)
				}
			}
		}
	}, nil, []string{"P11_PanicCostsOneNotification"}},
	"resyncs never come": {func(b *broken) {
		b.option = func(o *tidings.HandlerOptions) { o.Resync = 0 }
	}, nil, []string{"P12_ResyncRepeatsTheCache"}},
	"the informer is synced from the beginning": {func(b *broken) {
		b.synced = func(Informer) <-chan struct{} { return closed() }
	}, nil, []string{"P07_SyncedAfterTheInitialSet", "P13_RefusalsAreSeenAndHeal"}},
	"handlers are synced from the beginning": {func(b *broken) {
		b.joined = impostor{synced: closed()}.of
	}, nil, []string{"P07_SyncedAfterTheInitialSet"}},
	"handlers are never synced": {func(b *broken) {
		b.joined = impostor{synced: make(chan struct{})}.of
	}, nil, []string{"P07_EmptyCollectionSyncs"}},
	"removed handlers stay": {func(b *broken) {
		b.joined = impostor{remove: func() {}, done: closed()}.of
	}, nil, []string{"P09_RemovedHandler", "P09_HandlerRemovesItself", "P09_BlockedHandlerIsRemoved"}},
	"a removed handler is done at once": {func(b *broken) {
		b.joined = impostor{done: closed()}.of
	}, nil, []string{"P09_BlockedHandlerIsRemoved"}},
	"a call follows the stop": {func(b *broken) {
		var last atomic.Pointer[func()]
		b.around = func(handle func(Event), _ bool) func(Event) {
			return func(e Event) {
				last.Store(new(func() { handle(e) }))
				handle(e)
			}
		}
		b.after = func() {
			if again := last.Load(); again != nil {
				(*again)()
			}
		}
	}, nil, []string{"P09_NothingFollowsTheStop"}},
	"lists are torn": {func(b *broken) {
		var calls atomic.Int32
		b.list = func(list []tidings.Object) []tidings.Object {
			if calls.Add(1)%5 == 0 && len(list) > 0 {
				return list[:len(list)-1]
			}
			return list
		}
	}, nil, []string{"P03_ListsAreOfOneState", "P08_RelistsUnderLoad"}},
	"objects are written over": {func(b *broken) {
		var mu sync.Mutex
		kept := map[string]*corev1.ConfigMap{}
		b.list = func(list []tidings.Object) []tidings.Object {
			mu.Lock()
			defer mu.Unlock()
			var same []tidings.Object
			for _, obj := range list {
				if kept[keyOf(obj)] == nil {
					kept[keyOf(obj)] = new(corev1.ConfigMap)
				}
				*kept[keyOf(obj)] = *obj.(*corev1.ConfigMap)
				same = append(same, kept[keyOf(obj)])
			}
			return same
		}
	}, nil, []string{"P03_HeldListStays"}},
	"the cache goes back": {func(b *broken) {
		var mu sync.Mutex
		var calls int
		first := map[string]tidings.Object{}
		b.get = func(i Informer, key string) tidings.Object {
			mu.Lock()
			defer mu.Unlock()
			obj := i.Get(key)
			if first[key] == nil {
				first[key] = obj
			}
			if calls++; calls%4 == 0 {
				return first[key]
			}
			return obj
		}
	}, nil, []string{"P02_StatesOnlyMoveForward"}},
	"the index lags behind": {func(b *broken) {
		var mu sync.Mutex
		answers := map[string][]string{}
		b.index = func(i Informer, value string) ([]string, error) {
			mu.Lock()
			defer mu.Unlock()
			before, known := answers[value]
			now, err := i.Indexed(value)
			answers[value] = now
			if known {
				return before, err
			}
			return now, err
		}
	}, nil, []string{"P06_CacheAndIndexFirst"}},
	"health is always good": {func(b *broken) {
		b.health = func(h tidings.Health) tidings.Health {
			good := tidings.Health{Synced: true, Objects: h.Objects, Version: h.Version}
			good.State = tidings.StateWatching
			return good
		}
	}, nil, []string{
		"P13_RefusalsAreSeenAndHeal", "P13_HealthFollowsTheWatch", "P11_IndexFunctionThatFails",
		"P13_RefusedNamespaceHoldsUpNoOther",
		"P09_NothingFollowsTheStop",
	}},
	"WaitFor does not wait": {func(b *broken) {
		b.wait = func(context.Context, string) error { return nil }
	}, nil, []string{"P14_CacheHoldsTheWriteAfterWaitFor"}},
	"errors of Run are forgotten": {func(b *broken) {
		b.Informer = forgiving{b.Informer}
	}, nil, []string{"P20_RunningTwice", "P09_StuckHandlerIsNamed"}},
	"the label selector is forgotten": {nil, func(s *Setting) {
		s.Labels = ""
	}, []string{"P20_OnlyTheSelection"}},
	"the namespace is forgotten": {nil, func(s *Setting) {
		s.Namespaces = nil
	}, []string{"P20_OnlyTheSelection"}},
	"every watch begins with a list": {nil, func(s *Setting) {
		s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &forgetful{next: next} })
	}, []string{"P18_WatchesAreResumed"}},
	"failures are repeated at once": {nil, func(s *Setting) {
		s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper { return impatient{next} })
	}, []string{"P18_RetryAfterIsHonoured", "P18_FailuresAreNotAStorm"}},
}

// noted is a TB that keeps the messages of a test.
type noted struct {
	t testing.TB

	mu   sync.Mutex // guards said
	said []string
}

func (n *noted) Helper() {}

func (n *noted) Logf(format string, args ...any) { n.t.Logf(format, args...) }

func (n *noted) Errorf(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, fmt.Sprintf(format, args...))
}

func (n *noted) Fatalf(format string, args ...any) {
	n.Errorf(format, args...)
	runtime.Goexit()
}

// verdict runs a test and returns its messages.
func verdict(t testing.TB, test func(TB, Server), s Server) []string {
	n := &noted{t: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(n, s)
	}()
	<-done
	return n.said
}

// TestDefectsAreNoticed: each test of the suite fails on an informer with a defect of its
// property.
func TestDefectsAreNoticed(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(defects)) {
		row := defects[name]
		kind := Kind{Name: "broken", Namespaces: 1, New: func(s Setting) (Informer, error) {
			if row.setting != nil {
				row.setting(&s)
			}
			i, err := newNative(tidings.FactoryOptions{}, tidings.For[*corev1.ConfigMap])(s)
			if err != nil || row.defect == nil {
				return i, err
			}
			b := &broken{Informer: i}
			row.defect(b)
			return b, nil
		}}
		several := kind // for the tests that one namespace is too few for
		several.Namespaces = 2
		tests := maps.Collect(Tests(several))
		maps.Copy(tests, maps.Collect(Tests(kind)))
		for _, caught := range row.caught {
			t.Run(name+"/"+caught, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					test := tests["broken/"+caught]
					if test == nil {
						t.Fatal("there is no such test")
					}
					said := verdict(t, test, simulated(t))
					if len(said) == 0 {
						t.Error("the test has not noticed")
					}
					for _, text := range said {
						t.Logf("it says: %.300s", text)
					}
				})
			})
		}
	}
}

// lacks are the tests that client-go's own informer does not pass, each with its behaviour.
// They show that these tests can fail, and that the others do not depend on one
// implementation.
var lacks = map[string]string{
	"P09_NothingFollowsTheStop":     "it has no health",
	"P13_RefusalsAreSeenAndHeal":    "it has no health",
	"P13_HealthFollowsTheWatch":     "it has no health",
	"P15_SilentConnectionIsNoticed": "it waits for ever",
	"P16_RewindIsNoticed":           "it watches from a version of the future",
	"P18_WatchesAreResumed":         "it lists",
}

// TestClientGo runs the suite over client-go's own informer, as a control.
func TestClientGo(t *testing.T) {
	for name, test := range Tests(clientGoKind()) {
		name = strings.TrimPrefix(name, "client-go/")
		switch name {
		case "P11_IndexFunctionThatFails":
			continue // the panic would end the process
		case "P09_HandlerRemovesItself":
			continue // it selects at random between a pending event and the end
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				said := verdict(t, test, simulated(t))
				if why := lacks[name]; (why != "") != (len(said) > 0) {
					t.Errorf("it says %.500q, should fail because %q", said, why)
				}
			})
		})
	}
}

// clientGoKind is client-go's own informer.
func clientGoKind() Kind {
	informer := func(s Setting, client *kubernetes.Clientset) cache.SharedIndexInformer {
		return clientgo.NewSharedIndexInformer(listWatch(s, client), &corev1.ConfigMap{}, s.Resync,
			clientgo.Indexers{})
	}
	return Kind{
		Name: "client-go", Namespaces: 1, DropIn: true,
		New: connected(kubernetes.NewForConfig, informer),
	}
}

// TestEveryTestCanFail: there is a defect for each test of the suite.
func TestEveryTestCanFail(t *testing.T) {
	noticed := maps.Clone(lacks)
	for name, row := range defects {
		for _, caught := range row.caught {
			noticed[caught] = name
		}
	}
	for _, test := range tests() {
		if noticed[test.name] == "" {
			t.Errorf("no defect makes %s fail", test.name)
		}
		delete(noticed, test.name)
	}
	for name := range noticed {
		t.Errorf("there is no test %s", name)
	}
}
