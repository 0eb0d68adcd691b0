package byresource_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgodynamic "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	clientgometadata "k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// factory is what the factories of dynamic and of metadata informers have in common.
type factory interface {
	Start(stopCh <-chan struct{})
	ForResource(gvr schema.GroupVersionResource) informers.GenericInformer
	WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool
	Shutdown()
}

// contextStarter is a factory that can be started with a context, which neither
// interface has and only client-go's factory of dynamic informers cannot.
type contextStarter interface {
	StartWithContext(ctx context.Context)
}

// library is a package that makes informers by resource.
type library struct {
	name     string
	form     form
	factory  func(c clients, resync time.Duration) factory
	filtered func(c clients, resync time.Duration, namespace string, tweak func(*metav1.ListOptions)) factory
	informer func(c clients, namespace string, resync time.Duration, indexers cache.Indexers, tweak func(*metav1.ListOptions)) informers.GenericInformer
}

// form is what the informers of a library hold.
type form int

const (
	unstructuredForm form = iota
	metadataForm
)

// libraries are client-go's packages and ours. What a test finds true of all four is
// client-go's behaviour, and kept.
var libraries = []library{
	{
		name: "client-go's dynamicinformer",
		factory: func(c clients, resync time.Duration) factory {
			return clientgodynamic.NewDynamicSharedInformerFactory(c.dynamic, resync)
		},
		filtered: func(c clients, resync time.Duration, namespace string, tweak func(*metav1.ListOptions)) factory {
			return clientgodynamic.NewFilteredDynamicSharedInformerFactory(c.dynamic, resync, namespace, tweak)
		},
		informer: func(c clients, namespace string, resync time.Duration, indexers cache.Indexers, tweak func(*metav1.ListOptions)) informers.GenericInformer {
			return clientgodynamic.NewFilteredDynamicInformer(c.dynamic, widgets, namespace, resync, indexers, tweak)
		},
	},
	{
		name: "our dynamicinformer",
		factory: func(c clients, resync time.Duration) factory {
			return dynamicinformer.NewDynamicSharedInformerFactory(c.dynamic, resync)
		},
		filtered: func(c clients, resync time.Duration, namespace string, tweak func(*metav1.ListOptions)) factory {
			return dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.dynamic, resync, namespace, tweak)
		},
		informer: func(c clients, namespace string, resync time.Duration, indexers cache.Indexers, tweak func(*metav1.ListOptions)) informers.GenericInformer {
			return dynamicinformer.NewFilteredDynamicInformer(c.dynamic, widgets, namespace, resync, indexers, tweak)
		},
	},
	{
		name: "client-go's metadatainformer",
		form: metadataForm,
		factory: func(c clients, resync time.Duration) factory {
			return clientgometadata.NewSharedInformerFactory(c.metadata, resync)
		},
		filtered: func(c clients, resync time.Duration, namespace string, tweak func(*metav1.ListOptions)) factory {
			return clientgometadata.NewFilteredSharedInformerFactory(c.metadata, resync, namespace, tweak)
		},
		informer: func(c clients, namespace string, resync time.Duration, indexers cache.Indexers, tweak func(*metav1.ListOptions)) informers.GenericInformer {
			return clientgometadata.NewFilteredMetadataInformer(c.metadata, widgets, namespace, resync, indexers, tweak)
		},
	},
	{
		name: "our metadatainformer",
		form: metadataForm,
		factory: func(c clients, resync time.Duration) factory {
			return metadatainformer.NewSharedInformerFactory(c.metadata, resync)
		},
		filtered: func(c clients, resync time.Duration, namespace string, tweak func(*metav1.ListOptions)) factory {
			return metadatainformer.NewFilteredSharedInformerFactory(c.metadata, resync, namespace, tweak)
		},
		informer: func(c clients, namespace string, resync time.Duration, indexers cache.Indexers, tweak func(*metav1.ListOptions)) informers.GenericInformer {
			return metadatainformer.NewFilteredMetadataInformer(c.metadata, widgets, namespace, resync, indexers, tweak)
		},
	},
}

// ownSource are our packages with clients that bring our own source along, which takes a
// server.
var ownSource = []library{
	{
		name: "our dynamicinformer with our source",
		factory: func(c clients, resync time.Duration) factory {
			return dynamicinformer.NewDynamicSharedInformerFactory(c.ownDynamic, resync)
		},
		filtered: func(c clients, resync time.Duration, namespace string, tweak func(*metav1.ListOptions)) factory {
			return dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.ownDynamic, resync, namespace, tweak)
		},
		informer: func(c clients, namespace string, resync time.Duration, indexers cache.Indexers, tweak func(*metav1.ListOptions)) informers.GenericInformer {
			return dynamicinformer.NewFilteredDynamicInformer(c.ownDynamic, widgets, namespace, resync, indexers, tweak)
		},
	},
	{
		name: "our metadatainformer with our source",
		form: metadataForm,
		factory: func(c clients, resync time.Duration) factory {
			return metadatainformer.NewSharedInformerFactory(c.ownMetadata, resync)
		},
		filtered: func(c clients, resync time.Duration, namespace string, tweak func(*metav1.ListOptions)) factory {
			return metadatainformer.NewFilteredSharedInformerFactory(c.ownMetadata, resync, namespace, tweak)
		},
		informer: func(c clients, namespace string, resync time.Duration, indexers cache.Indexers, tweak func(*metav1.ListOptions)) informers.GenericInformer {
			return metadatainformer.NewFilteredMetadataInformer(c.ownMetadata, widgets, namespace, resync, indexers, tweak)
		},
	},
}

// withServer are all libraries.
func withServer() []library { return slices.Concat(libraries, ownSource) }

// eachLibrary runs a test over the libraries that do not need a server, each in a bubble of
// virtual time, and eachWithServer over all.
func eachLibrary(t *testing.T, run func(t *testing.T, l library)) { eachOf(t, libraries, run) }

func eachWithServer(t *testing.T, run func(t *testing.T, l library)) { eachOf(t, withServer(), run) }

func eachOf(t *testing.T, all []library, run func(t *testing.T, l library)) {
	for _, l := range all {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, l) })
		})
	}
}

// eachWorld runs a test over all libraries, with fakes and over HTTP.
func eachWorld(t *testing.T, run func(t *testing.T, l library, w world)) {
	t.Run("fake", func(t *testing.T) {
		eachLibrary(t, func(t *testing.T, l library) { run(t, l, newFakes(t)) })
	})
	t.Run("HTTP", func(t *testing.T) {
		eachWithServer(t, func(t *testing.T, l library) { run(t, l, newServer(t)) })
	})
}

// stopping returns a channel that ends what the factory runs: with the test, or when
// stop is called. The test waits until all has ended.
func stopping(t *testing.T, f factory) (stopCh <-chan struct{}, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		f.Shutdown()
	})
	return ctx.Done(), cancel
}

// start runs the factory's informers until the end of the test. It returns when all
// there is to do has been done.
func start(t *testing.T, f factory) {
	t.Helper()
	stopCh, _ := stopping(t, f)
	f.Start(stopCh)
	synctest.Wait()
}

// after returns a channel that is closed after a time, virtual in a bubble.
func after(t *testing.T, d time.Duration) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx.Done()
}

// run runs an informer that no factory has until the end of the test. It returns when
// all there is to do has been done.
func run(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	synctest.Wait()
}
