package cache_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	theirdynamic "k8s.io/client-go/dynamic/dynamicinformer"
	theirinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	theirmetadata "k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
	"github.com/tidings-go/tidings/internal/test/seeds"
)

var wireSeeds = seeds.New("wire", "TestWire", 50)

// wireKind is a way to read objects.
type wireKind struct {
	name        string
	contentType string
	object      string // the beginning of an object in JSON, up to its metadata
	theirs      func(*rest.Config) (clientgo.SharedIndexInformer, error)
	ours        func(*rest.Config) (clientgo.SharedIndexInformer, error)
}

const (
	protobuf     = "application/vnd.kubernetes.protobuf"
	configMapIs  = `{"kind":"ConfigMap","apiVersion":"v1",`
	metadataIs   = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",`
	asJSON       = "application/json"
	hostileTime  = 4 * time.Minute
	recoveryTime = 15 * time.Minute
)

var wireKinds = []wireKind{
	{"typed, protobuf", protobuf, configMapIs, theirTyped, ourTyped},
	{"typed, JSON", asJSON, configMapIs, theirTyped, ourTyped},
	{"dynamic", asJSON, configMapIs, func(c *rest.Config) (clientgo.SharedIndexInformer, error) {
		client, err := dynamic.NewForConfig(c)
		if err != nil {
			return nil, err
		}
		return theirdynamic.NewFilteredDynamicInformer(client, configMaps, "", 0, clientgo.Indexers{}, nil).Informer(), nil
	}, func(c *rest.Config) (clientgo.SharedIndexInformer, error) {
		client, err := dynamicinformer.NewClient(c, nil)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewFilteredDynamicInformer(client, configMaps, "", 0, clientgo.Indexers{}, nil).Informer(), nil
	}},
	{"metadata", asJSON, metadataIs, func(c *rest.Config) (clientgo.SharedIndexInformer, error) {
		client, err := metadata.NewForConfig(c)
		if err != nil {
			return nil, err
		}
		return theirmetadata.NewFilteredMetadataInformer(client, configMaps, "", 0, clientgo.Indexers{}, nil).Informer(), nil
	}, func(c *rest.Config) (clientgo.SharedIndexInformer, error) {
		client, err := metadatainformer.NewClient(c, nil)
		if err != nil {
			return nil, err
		}
		return metadatainformer.NewFilteredMetadataInformer(client, configMaps, "", 0, clientgo.Indexers{}, nil).Informer(), nil
	}},
	{"a ListerWatcher", protobuf, configMapIs, listerWatcherWith(clientgo.NewSharedIndexInformerWithOptions), listerWatcherWith(cache.NewSharedIndexInformerWithOptions)},
}

func theirTyped(c *rest.Config) (clientgo.SharedIndexInformer, error) {
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	return theirinformers.NewConfigMapInformer(client, "", 0, clientgo.Indexers{}), nil
}

func ourTyped(c *rest.Config) (clientgo.SharedIndexInformer, error) {
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	return informers.NewFilteredFor[*corev1.ConfigMap](client, "", 0, clientgo.Indexers{}, nil), nil
}

func listerWatcherWith(newInformer func(clientgo.ListerWatcher, runtime.Object, clientgo.SharedIndexInformerOptions) clientgo.SharedIndexInformer) func(*rest.Config) (clientgo.SharedIndexInformer, error) {
	return func(c *rest.Config) (clientgo.SharedIndexInformer, error) {
		client, err := kubernetes.NewForConfig(c)
		if err != nil {
			return nil, err
		}
		maps := client.CoreV1().ConfigMaps("")
		return newInformer(&clientgo.ListWatch{
			ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return maps.List(ctx, o) },
			WatchFuncWithContext: maps.Watch,
		}, &corev1.ConfigMap{}, noOptions), nil
	}
}

// TestWire has client-go's informer and ours, which follow one server that answers by a random
// script, each from the script's beginning, while objects change. When the server has turned
// honest, both caches have to reach its state, the notifications of the handlers have to follow
// from each other and end in that state, and ours may not have made many more requests.
func TestWire(t *testing.T) {
	for seed := range wireSeeds.All() {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) { runWire(t, seed) })
		})
	}
}

// wired is one of the two informers.
type wired struct {
	name      string
	informer  clientgo.SharedIndexInformer
	handler   *recorder
	recovered time.Duration // the time after the server turned honest; negative is never
	hostile   map[step]int  // the number of requests until then
	spared    int           // the requests of these that the client repeated by itself
}

func runWire(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	kind := wireKinds[random.IntN(len(wireKinds))]
	s := &wireServer{script: newScript(random), object: kind.object, honest: make(chan struct{}), asked: map[string]map[step]int{},
		last: map[string]lastRequest{}, spared: map[string]int{}, leases: map[string]string{}}
	s.start(t, seed)
	w := &writer{t: t, random: random, server: s.api}
	w.begin()
	both := []*wired{newWired(t, s, "client-go", kind.contentType, kind.theirs), newWired(t, s, "tidings", kind.contentType, kind.ours)}
	defer func() {
		if t.Failed() {
			t.Logf("repeat with: go test ./clientgo/cache -run TestWire -wire.seed=%d\n%s, %s\nwrites:\n  %s\nrequests:\n  %s", seed, kind.name, s.script,
				strings.Join(w.notes, "\n  "), strings.Join(s.log, "\n  "))
		}
	}()
	for began := time.Now(); time.Since(began) < hostileTime; {
		time.Sleep(time.Duration(random.IntN(20_000)) * time.Millisecond)
		s.write(w)
	}
	for _, of := range both {
		of.hostile, of.spared = s.counts(of.name)
	}
	close(s.honest)
	s.write(w)
	s.recover(t, both)
	theirs, ours := both[0], both[1]
	if ours.recovered < 0 {
		t.Errorf("ours holds\n  %s\nthe server\n  %s\nclient-go recovered after %v\nthe health of ours is %+v", strings.Join(cached(ours), "\n  "), strings.Join(s.holds(t), "\n  "), theirs.recovered, healthOf(ours))
	}
	if knows, wrong := ours.handler.story(); len(wrong) > 0 || ours.recovered >= 0 && !slices.Equal(slices.Sorted(maps.Keys(knows)), slices.Sorted(slices.Values(ours.informer.GetStore().ListKeys()))) {
		t.Errorf("the handler received events that do not follow from each other:\n  %s\nit knows %v", strings.Join(wrong, "\n  "), knows)
	}
	comparePoliteness(t, theirs, ours)
	t.Logf("%s: recovered after %v and %v, requests %v and %v", kind.name, theirs.recovered, ours.recovered, theirs.hostile, ours.hostile)
}

// wireSlack is the number of requests that ours may make beyond client-go's: ours lists again
// where client-go goes on with a state that may be wrong. Its backoff allows fourteen attempts in
// that time, of a streamed list, a list and a watch each.
const wireSlack = 3 * 14

// comparePoliteness compares the numbers of requests of the two while the server was hostile.
func comparePoliteness(t *testing.T, theirs, ours *wired) {
	t.Helper()
	all := func(w *wired) (n int) {
		for _, requests := range w.hostile {
			n += requests
		}
		return n - w.spared
	}
	if all(ours) > all(theirs)+wireSlack {
		t.Errorf("ours made %v, of which its client %d, client-go %v and %d", ours.hostile, ours.spared, theirs.hostile, theirs.spared)
	}
}

func (s *wireServer) start(t *testing.T, seed uint64) {
	var err error
	s.api, err = apisim.New(apisim.Options{Seed: seed, Middleware: s.middleware})
	must(t, err)
	t.Cleanup(func() { must(t, s.api.Close()) })
}

// newWired makes an informer and runs it until the end of the test.
func newWired(t *testing.T, s *wireServer, name, contentType string, newInformer func(*rest.Config) (clientgo.SharedIndexInformer, error)) *wired {
	config := rest.CopyConfig(s.api.Config())
	config.QPS, config.UserAgent = -1, name
	config.ContentType = contentType
	if contentType == protobuf {
		config.AcceptContentTypes = protobuf + "," + asJSON
	}
	informer, err := newInformer(config)
	must(t, err)
	w := &wired{name: name, informer: informer, handler: &recorder{state: stateOf}}
	_, err = informer.AddEventHandler(w.handler)
	must(t, err)
	run(t, informer)
	return w
}

// recover waits until both informers hold the objects of the server.
func (s *wireServer) recover(t *testing.T, both []*wired) {
	began := time.Now()
	for _, w := range both {
		w.recovered = -1
	}
	for time.Since(began) < recoveryTime {
		settle(5 * time.Second)
		holds := s.holds(t)
		for _, w := range both {
			if equal := slices.Equal(cached(w), holds); equal != (w.recovered >= 0) {
				w.recovered = time.Since(began)
				if !equal {
					w.recovered = -1
				}
			}
		}
		if both[0].recovered >= 0 && both[1].recovered >= 0 {
			return
		}
	}
}

// holds returns the states on the server, sorted.
func (s *wireServer) holds(t *testing.T) []string {
	objects, _, err := s.api.List(t.Context(), configMaps, "")
	must(t, err)
	var states []string
	for _, obj := range objects {
		states = append(states, wireState(obj))
	}
	slices.Sort(states)
	return states
}

func cached(w *wired) []string {
	var states []string
	for _, obj := range w.informer.GetStore().List() {
		if !isOdd(obj) {
			states = append(states, wireState(obj))
		}
	}
	slices.Sort(states)
	return states
}

func wireState(obj any) string {
	m := obj.(metav1.Object)
	return fmt.Sprintf("%s n=%s@%s uid %s", keyOf(obj), labelOf(obj), m.GetResourceVersion(), m.GetUID())
}

// write makes a random change. One in six is the end of a lease, with which two objects are
// deleted.
func (s *wireServer) write(w *writer) {
	objects := w.list()
	if len(objects) < 2 || w.random.IntN(6) > 0 {
		w.write()
		return
	}
	s.mu.Lock() // before the watches send the deletes
	defer s.mu.Unlock()
	first := w.remove(objects[0])
	s.leases[first] = w.remove(objects[1])
	w.note("these two deletes have one version")
}

func healthOf(w *wired) any {
	h, _ := cache.HealthOf(w.informer)
	return h
}
