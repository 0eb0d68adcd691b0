package cache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clientgo "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/internal/test/seeds"
)

var schedules = seeds.New("differential", "TestDifferential", 60)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// TestDifferential drives client-go's informer and ours through the same random
// schedule against one server and compares them after every step: the notifications of each
// handler, the content of the store and of its indexes, the state of sync, and the versions.
//
// In a calm schedule both send the same requests, and everything has to be equal, except for the
// order of different keys within a list. It has either resyncs or lists after the
// first one, because client-go's resync timer starts again with each list and its wait before
// that is random. In a rough one, connections break and ours resumes where
// client-go lists again: there the last state that each handler received has to be
// equal, and its events must follow from each other.
func TestDifferential(t *testing.T) {
	for seed := range schedules.All() {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runSchedule(t, seed) })
		})
	}
}

// manner is the kind of the schedule of a seed.
type manner string

const (
	resyncing manner = "calm with resyncs"
	relisting manner = "calm with lists"
	rough     manner = "rough"
)

// pair runs both informers on one server.
type pair struct {
	writer
	manner manner
	theirs *subject
	ours   *subject
	seed   uint64
	// namespace and selector are what the informers select.
	namespace string
	selector  labels.Selector
	handlers  int
	byHand    bool // the program has written to the caches
	change    clientgo.TransformFunc
	// arriving is locked while what the server sends does not arrive yet.
	arriving sync.RWMutex
	// versionless reports whether the cached objects have no version: client-go takes each of their
	// updates for a resync.
	versionless bool
	cancel      context.CancelFunc
}

// subject is one of the informers.
type subject struct {
	informer clientgo.SharedIndexInformer
	handlers []*listener
	failures []string // calls of the watch error handler
	done     chan struct{}
}

func runSchedule(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	p := &pair{writer: writer{t: t, random: random}, seed: seed, manner: []manner{resyncing, relisting, rough}[seed%3]}
	defer p.printOnFailure()
	p.start()
	began := time.Now()
	for range 6 + random.IntN(14) {
		p.step()
		if t.Failed() || p.manner == resyncing && time.Since(began) > quietTime {
			break
		}
	}
	p.end()
}

// quietTime is the duration of a schedule with resyncs: less than the 5 minutes after
// which watches end, at random times that differ between the two.
const quietTime = 200 * time.Second

func (p *pair) printOnFailure() {
	if p.t.Failed() {
		p.t.Logf("repeat with: go test ./clientgo/cache -run TestDifferential -differential.seed=%d\n%s schedule:\n  %s",
			p.seed, p.manner, strings.Join(p.notes, "\n  "))
	}
}

// start starts the server with a few objects and both informers.
func (p *pair) start() {
	var err error
	if p.server, err = apisim.New(apisim.Options{}); err != nil {
		p.t.Fatal(err)
	}
	if p.random.IntN(3) == 0 {
		p.note("streamed lists are refused")
		p.server.RefuseStreamedLists(true)
	}
	p.begin()
	p.makeInformers()
	for range p.random.IntN(3) {
		p.addHandler()
	}
	ctx, cancel := context.WithCancel(klog.NewContext(p.t.Context(), logr.Discard()))
	p.cancel = cancel
	for _, s := range []*subject{p.theirs, p.ours} {
		go func() {
			defer close(s.done)
			s.informer.RunWithContext(ctx)
		}()
	}
	p.settle()
	p.compare()
}

// makeInformers makes both informers from the same random choices.
func (p *pair) makeInformers() {
	config := p.server.Config()
	config.QPS = -1
	config.Wrap(func(to http.RoundTripper) http.RoundTripper { return heldBack{to, &p.arriving} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		p.t.Fatal(err)
	}
	selector := []string{"", "", "n!=3"}[p.random.IntN(3)]
	p.selector, err = labels.Parse(selector)
	must(p.t, err)
	p.namespace = []string{"", "", "a"}[p.random.IntN(3)]
	o := clientgo.SharedIndexInformerOptions{Indexers: clientgo.Indexers{
		clientgo.NamespaceIndex: clientgo.MetaNamespaceIndexFunc,
		"n":                     func(obj any) ([]string, error) { return []string{labelOf(obj)}, nil },
		"odd":                   oddIndex,
	}}
	if p.manner == resyncing {
		o.ResyncPeriod = []time.Duration{0, 20 * time.Second, time.Minute}[p.random.IntN(3)]
	}
	transform, what := p.transform()
	p.change = transform
	p.note("informers of namespace %q, labels %q, resync %v, %s", p.namespace, selector, o.ResyncPeriod, what)
	makeOne := func(newInformer func(clientgo.ListerWatcher, *corev1.ConfigMap) clientgo.SharedIndexInformer) *subject {
		lw := clientgo.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", p.namespace, func(o *metav1.ListOptions) { o.LabelSelector = selector })
		s := &subject{informer: newInformer(lw, &corev1.ConfigMap{}), done: make(chan struct{})}
		if transform != nil {
			if err := s.informer.SetTransform(transform); err != nil {
				p.t.Fatal(err)
			}
		}
		err := s.informer.SetWatchErrorHandlerWithContext(func(_ context.Context, r *clientgo.Reflector, err error) {
			s.failures = append(s.failures, fmt.Sprintf("%s at %q", kindOfError(err), r.LastSyncResourceVersion()))
		})
		if err != nil {
			p.t.Fatal(err)
		}
		return s
	}
	p.theirs = makeOne(func(lw clientgo.ListerWatcher, example *corev1.ConfigMap) clientgo.SharedIndexInformer {
		return clientgo.NewSharedIndexInformerWithOptions(lw, example, o)
	})
	p.ours = makeOne(func(lw clientgo.ListerWatcher, example *corev1.ConfigMap) clientgo.SharedIndexInformer {
		return cache.NewSharedIndexInformerWithOptions(lw, example, o)
	})
}

// transform returns a random transform, or nil.
func (p *pair) transform() (f clientgo.TransformFunc, what string) {
	less := func(leaveOut func(m *corev1.ConfigMap)) clientgo.TransformFunc {
		return func(obj any) (any, error) {
			small := obj.(*corev1.ConfigMap).DeepCopy()
			leaveOut(small)
			return small, nil
		}
	}
	switch p.random.IntN(10) {
	case 0, 1:
		return less(func(m *corev1.ConfigMap) { m.Data, m.ManagedFields = nil, nil }), "transformed to less"
	case 2:
		return less(func(m *corev1.ConfigMap) { m.UID = "" }), "without UIDs"
	case 3:
		p.versionless = true
		return less(func(m *corev1.ConfigMap) { m.ResourceVersion = "" }), "without versions"
	case 4:
		return less(func(m *corev1.ConfigMap) { m.Labels = nil }), "without labels"
	case 5:
		p.versionless = true
		return less(func(m *corev1.ConfigMap) {
			m.ObjectMeta = metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels}
		}), "with names and labels alone"
	case 6:
		return func(obj any) (any, error) {
			of, ok := obj.(*corev1.ConfigMap)
			if !ok {
				return obj, nil // client-go transforms objects of a streamed list twice
			}
			return &metav1.PartialObjectMetadata{ObjectMeta: *of.ObjectMeta.DeepCopy()}, nil
		}, "transformed to another type"
	default:
		return nil, "not transformed"
	}
}

func kindOfError(err error) string {
	if status, ok := errors.AsType[interface {
		error
		Status() metav1.Status
	}](err); ok {
		return string(status.Status().Reason)
	}
	return "other"
}

// step takes one random action and compares.
func (p *pair) step() {
	switch n := p.random.IntN(24); {
	case n < 9:
		for range 1 + p.random.IntN(6) {
			p.write()
		}
	case n >= 20:
		p.writeByHand()
	case n < 12:
		p.addHandler()
	case n < 14:
		p.removeHandler()
	case n < 15:
		p.addIndexer()
	case n < 17 && p.manner == resyncing:
		d := time.Duration(1+p.random.IntN(80)) * time.Second
		p.note("wait %v", d)
		time.Sleep(d)
	case p.manner == relisting:
		p.expire()
	case p.manner == rough:
		p.breakSomething()
	default:
		p.note("nothing happens")
	}
	p.settle()
	p.compare()
}

// settle waits until both have caught up: in virtual time, longer than any wait after a failure.
func (p *pair) settle() {
	wait := 10 * time.Second
	if p.manner != resyncing {
		wait = 3 * time.Minute
	}
	settle(wait)
}

// expire makes both list again: the server ends their watches and forgets the old versions, after
// changes that no watch has sent.
//
// A watch that began less than a second ago is not ended: client-go lists again after such a
// short watch, and its watches end and begin at random times.
func (p *pair) expire() {
	p.note("expire")
	for p.watchedSince(time.Now().Add(-2 * time.Second)) {
		time.Sleep(2 * time.Second)
	}
	p.server.SetAvailable(false)
	p.server.CutConnections()
	synctest.Wait()
	p.createNext() // some writes change nothing
	for range p.random.IntN(4) {
		p.write()
	}
	p.server.Compact()
	p.server.SetAvailable(true)
}

func (p *pair) watchedSince(t time.Time) bool {
	return slices.ContainsFunc(p.server.Requests(), func(r apisim.Request) bool { return r.Verb == "watch" && r.Time.After(t) })
}

// breakSomething is a fault that the two may answer differently.
func (p *pair) breakSomething() {
	switch p.random.IntN(5) {
	case 0:
		p.note("cut the connections")
		p.server.CutConnections()
	case 1:
		p.note("cut the connections while writing")
		for range 1 + p.random.IntN(5) {
			p.write()
			if p.random.IntN(2) == 0 {
				p.server.CutConnections()
			}
		}
	case 2:
		p.note("restart, forgetting the history")
		p.server.Restart(apisim.RestartOptions{})
		p.write()
	case 3:
		p.note("restart with its history")
		p.server.Restart(apisim.RestartOptions{KeepHistory: true})
		p.write()
	case 4:
		p.note("unavailable for half a minute")
		p.server.SetAvailable(false)
		p.server.CutConnections()
		p.write()
		time.Sleep(30 * time.Second)
		p.write()
		p.server.SetAvailable(true)
	}
}

func (p *pair) end() {
	p.cancel()
	for _, s := range []*subject{p.theirs, p.ours} {
		<-s.done
		if !s.informer.IsStopped() {
			p.t.Error("not stopped after Run has returned")
		}
	}
	if err := p.server.Close(); err != nil {
		p.t.Error(err)
	}
}

// Handlers and indexes.

func (p *pair) addHandler() {
	p.handlers++
	o := clientgo.HandlerOptions{Logger: new(logr.Discard())}
	if p.manner == resyncing && p.random.IntN(2) == 0 {
		o.ResyncPeriod = new(time.Duration(p.random.IntN(70)) * time.Second)
	}
	p.note("add handler %d, resync %v", p.handlers, o.ResyncPeriod)
	for _, s := range []*subject{p.theirs, p.ours} {
		l := &listener{recorder: recorder{state: stateOf}, number: p.handlers}
		var err error
		if l.registration, err = s.informer.AddEventHandlerWithOptions(l, o); err != nil {
			p.t.Fatal(err)
		}
		s.handlers = append(s.handlers, l)
	}
}

func (p *pair) removeHandler() {
	if len(p.ours.handlers) == 0 {
		return
	}
	n := p.random.IntN(len(p.ours.handlers))
	p.note("remove handler %d", p.ours.handlers[n].number)
	for _, s := range []*subject{p.theirs, p.ours} {
		if err := cache.ShutDownEventHandler(s.informer, s.handlers[n].registration); err != nil {
			p.t.Error(err)
		}
		s.handlers = slices.Delete(s.handlers, n, n+1)
	}
}

func (p *pair) addIndexer() {
	name := fmt.Sprintf("index%d", p.random.IntN(3))
	p.note("add index %s", name)
	indexers := clientgo.Indexers{name: func(obj any) ([]string, error) { return []string{labelOf(obj), "all"}, nil }}
	theirs, ours := p.theirs.informer.AddIndexers(indexers), p.ours.informer.AddIndexers(indexers)
	if (theirs == nil) != (ours == nil) {
		p.t.Errorf("adding index %s: client-go says %v, ours %v", name, theirs, ours)
	}
}
