package factory_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgodynamic "k8s.io/client-go/dynamic/dynamicinformer"
	clientgoinformers "k8s.io/client-go/informers"
	clientgometadata "k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
	"github.com/tidings-go/tidings/source"
)

// factoryOf is the part that the three factories have in common.
type factoryOf interface {
	Start(stopCh <-chan struct{})
	ForResource(gvr schema.GroupVersionResource) clientgoinformers.GenericInformer
	WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool
	Shutdown()
}

// typedFactory presents a factory of typed informers as one by resource: the typed twin replaces
// the resource.
type typedFactory struct {
	informers.SharedInformerFactory
}

func (f typedFactory) ForResource(gvr schema.GroupVersionResource) clientgoinformers.GenericInformer {
	informer, err := f.SharedInformerFactory.ForResource(twin(gvr))
	if err != nil {
		panic(err)
	}
	return informer
}

func (f typedFactory) WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool {
	byType := map[reflect.Type]schema.GroupVersionResource{
		reflect.TypeFor[*corev1.Pod](): widgets, reflect.TypeFor[*corev1.ConfigMap](): gears,
	}
	synced := map[schema.GroupVersionResource]bool{}
	for t, is := range f.SharedInformerFactory.WaitForCacheSync(stopCh) {
		synced[byType[t]] = is
	}
	return synced
}

// settings are the parameters and options of a factory. client-go's take only the first
// three.
type settings struct {
	resync    time.Duration
	namespace string
	tweak     func(*metav1.ListOptions)
	transform cache.TransformFunc
	sharing   tidings.Sharing
	table     *source.Table
	drop      []string
	dropFor   []string // of widgets
	recorder  source.Recorder
	slots     *tidings.Slots
}

// common reports whether client-go has all the settings.
func (s settings) common() bool {
	return s.transform == nil && s.sharing == 0 && s.table == nil && s.drop == nil && s.dropFor == nil && s.recorder == nil && s.slots == nil
}

func (s settings) typed() []informers.SharedInformerOption {
	return []informers.SharedInformerOption{
		informers.WithNamespace(s.namespace), informers.WithTweakListOptions(s.tweak),
		informers.WithTransform(s.transform), informers.WithSharing(s.sharing),
		informers.WithSharingAmong(s.table), informers.WithDrop(s.drop...),
		informers.WithDropFor[*corev1.Pod](s.dropFor...), informers.WithRecorder(s.recorder),
		informers.WithSlots(s.slots),
	}
}

func (s settings) dynamic() []dynamicinformer.SharedInformerOption {
	return []dynamicinformer.SharedInformerOption{
		dynamicinformer.WithNamespace(s.namespace), dynamicinformer.WithTweakListOptions(s.tweak),
		dynamicinformer.WithTransform(s.transform), dynamicinformer.WithSharing(s.sharing),
		dynamicinformer.WithSharingAmong(s.table), dynamicinformer.WithDrop(s.drop...),
		dynamicinformer.WithDropFor(widgets, s.dropFor...), dynamicinformer.WithRecorder(s.recorder),
		dynamicinformer.WithSlots(s.slots),
	}
}

func (s settings) metadata() []metadatainformer.SharedInformerOption {
	return []metadatainformer.SharedInformerOption{
		metadatainformer.WithNamespace(s.namespace), metadatainformer.WithTweakListOptions(s.tweak),
		metadatainformer.WithTransform(s.transform), metadatainformer.WithSharing(s.sharing),
		metadatainformer.WithSharingAmong(s.table), metadatainformer.WithDrop(s.drop...),
		metadatainformer.WithDropFor(widgets, s.dropFor...), metadatainformer.WithRecorder(s.recorder),
		metadatainformer.WithSlots(s.slots),
	}
}

// form is the type in which a library holds objects.
type form int

const (
	typedForm form = iota
	unstructuredForm
	metadataForm
)

// library is a package that makes informers, with one kind of client.
type library struct {
	name     string
	form     form
	clientGo bool // client-go's own package
	own      bool // reads with our own source, which needs a server
	factory  func(c clients, s settings) factoryOf
	// informer makes an informer of widgets that no factory shares.
	informer func(c clients, s settings, indexers cache.Indexers) cache.SharedIndexInformer
}

// libraries are client-go's packages and ours. A test over all of them proves that
// client-go's behaviour is kept.
var libraries = []library{
	{
		name: "client-go's informers", form: typedForm, clientGo: true,
		factory: func(c clients, s settings) factoryOf {
			//lint:ignore SA1019 old programs call it
			return typedFactory{clientgoinformers.NewFilteredSharedInformerFactory(c.typed, s.resync, s.namespace, s.tweak)}
		},
		informer: func(c clients, s settings, indexers cache.Indexers) cache.SharedIndexInformer {
			return newClientGoPods(c.typed, s, indexers)
		},
	},
	ourTyped(false),
	{
		name: "client-go's dynamicinformer", form: unstructuredForm, clientGo: true,
		factory: func(c clients, s settings) factoryOf {
			return clientgodynamic.NewFilteredDynamicSharedInformerFactory(c.dynamic, s.resync, s.namespace, s.tweak)
		},
		informer: func(c clients, s settings, indexers cache.Indexers) cache.SharedIndexInformer {
			return clientgodynamic.NewFilteredDynamicInformer(c.dynamic, widgets, s.namespace, s.resync, indexers, s.tweak).Informer()
		},
	},
	ourDynamic(false),
	{
		name: "client-go's metadatainformer", form: metadataForm, clientGo: true,
		factory: func(c clients, s settings) factoryOf {
			return clientgometadata.NewFilteredSharedInformerFactory(c.metadata, s.resync, s.namespace, s.tweak)
		},
		informer: func(c clients, s settings, indexers cache.Indexers) cache.SharedIndexInformer {
			return clientgometadata.NewFilteredMetadataInformer(c.metadata, widgets, s.namespace, s.resync, indexers, s.tweak).Informer()
		},
	},
	ourMetadata(false),
	ourTyped(true), ourDynamic(true), ourMetadata(true),
}

var suffix = map[bool]string{true: " with our source"}

func ourTyped(own bool) library {
	return library{
		name: "our informers" + suffix[own], form: typedForm, own: own,
		factory: func(c clients, s settings) factoryOf {
			if s.common() {
				//lint:ignore SA1019 old programs call it
				return typedFactory{informers.NewFilteredSharedInformerFactory(c.forTyped(own), s.resync, s.namespace, s.tweak)}
			}
			return typedFactory{informers.NewSharedInformerFactoryWithOptions(c.forTyped(own), s.resync, s.typed()...)}
		},
		informer: func(c clients, s settings, indexers cache.Indexers) cache.SharedIndexInformer {
			if s.common() {
				return informers.NewFilteredFor[*corev1.Pod](c.forTyped(own), s.namespace, s.resync, indexers, s.tweak)
			}
			o := informers.InformerOptions{ResyncPeriod: s.resync, Indexers: indexers}
			return informers.NewFor[*corev1.Pod](c.forTyped(own), s.namespace, o, s.typed()...)
		},
	}
}

func ourDynamic(own bool) library {
	return library{
		name: "our dynamicinformer" + suffix[own], form: unstructuredForm, own: own,
		factory: func(c clients, s settings) factoryOf {
			return dynamicinformer.NewDynamicSharedInformerFactoryWithOptions(c.forDynamic(own), s.resync, s.dynamic()...)
		},
		informer: func(c clients, s settings, indexers cache.Indexers) cache.SharedIndexInformer {
			return dynamicinformer.NewDynamicInformerWithOptions(c.forDynamic(own), widgets, s.resync, indexers, s.dynamic()...).Informer()
		},
	}
}

func ourMetadata(own bool) library {
	return library{
		name: "our metadatainformer" + suffix[own], form: metadataForm, own: own,
		factory: func(c clients, s settings) factoryOf {
			return metadatainformer.NewSharedInformerFactoryWithOptions(c.forMetadata(own), s.resync, s.metadata()...)
		},
		informer: func(c clients, s settings, indexers cache.Indexers) cache.SharedIndexInformer {
			return metadatainformer.NewMetadataInformerWithOptions(c.forMetadata(own), widgets, s.resync, indexers, s.metadata()...).Informer()
		},
	}
}

// each runs a test over some libraries, each in a bubble of virtual time.
func each(t *testing.T, all []library, run func(t *testing.T, l library)) {
	for _, l := range all {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, l) })
		})
	}
}

// eachWithServer runs a test over all libraries, with a server.
func eachWithServer(t *testing.T, run func(t *testing.T, l library, w *httpWorld)) {
	each(t, libraries, func(t *testing.T, l library) { run(t, l, newServer(t)) })
}

// eachWithFakes runs a test over the libraries that need no server.
func eachWithFakes(t *testing.T, run func(t *testing.T, l library, w *fakeWorld)) {
	each(t, libraries[:6], func(t *testing.T, l library) { run(t, l, newFakes(t)) })
}

// eachWorld runs a test over all libraries, with fakes and over HTTP.
func eachWorld(t *testing.T, run func(t *testing.T, l library, w world)) {
	t.Run("fake", func(t *testing.T) {
		eachWithFakes(t, func(t *testing.T, l library, w *fakeWorld) { run(t, l, w) })
	})
	t.Run("HTTP", func(t *testing.T) {
		eachWithServer(t, func(t *testing.T, l library, w *httpWorld) { run(t, l, w) })
	})
}

// eachOfOurs is eachWorld without client-go's libraries.
func eachOfOurs(t *testing.T, run func(t *testing.T, l library, w world)) {
	ours := slices.DeleteFunc(slices.Clone(libraries), func(l library) bool { return l.clientGo })
	t.Run("fake", func(t *testing.T) {
		each(t, ours[:3], func(t *testing.T, l library) { run(t, l, newFakes(t)) })
	})
	t.Run("HTTP", func(t *testing.T) {
		each(t, ours, func(t *testing.T, l library) { run(t, l, newServer(t)) })
	})
}

// stopping returns a channel that ends the informers of a factory: with the test, or when
// stop is called. The test waits until they have stopped.
func stopping(t *testing.T, f interface{ Shutdown() }) (stopCh <-chan struct{}, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		f.Shutdown()
	})
	return ctx.Done(), cancel
}

// start runs the informers of a factory until the end of the test. It returns when they are
// idle.
func start(t *testing.T, f interface {
	Start(stopCh <-chan struct{})
	Shutdown()
}) {
	t.Helper()
	stopCh, _ := stopping(t, f)
	f.Start(stopCh)
	synctest.Wait()
}

// started starts a factory with one informer of widgets, which it returns.
func started(t *testing.T, l library, w world, s settings) cache.SharedIndexInformer {
	t.Helper()
	f := l.factory(w.clients(t), s)
	informer := f.ForResource(widgets).Informer()
	start(t, f)
	return informer
}

// run runs an informer that no factory shares until the end of the test. It returns when it
// is idle.
func run(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	start(t, &single{informer: informer})
}

type single struct {
	informer cache.SharedIndexInformer
	done     chan struct{}
}

func (s *single) Start(stopCh <-chan struct{}) {
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		s.informer.Run(stopCh)
	}()
}

func (s *single) Shutdown() { <-s.done }

// after returns a channel that is closed after a time, virtual in a bubble.
func after(t *testing.T, d time.Duration) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx.Done()
}
