package simulation

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
	"github.com/tidings-go/tidings/tidingstest"
)

// starter starts an informer, and returns a function that waits for its end.
type starter func(context.Context) (wait func())

// dropIn returns a function that starts an informer of the drop-in.
func dropIn(
	make func(w *world, s *subject, config *rest.Config) (cache.SharedIndexInformer, starter),
) func(*world, *subject) informer {
	return func(w *world, s *subject) informer {
		i, start := make(w, s, w.config(s.kind))
		all := made(tidingstest.Shared(i, s.code.index))(w)
		if s.code != nil {
			if err := i.SetTransform(transform[any](s)); err != nil {
				w.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
		wait := start(ctx)
		return informer{Informer: all, stop: func() error {
			cancel()
			wait()
			return nil
		}}
	}
}

// byFactory starts informers as factories do.
func byFactory(f interface {
	Start(<-chan struct{})
	Shutdown()
}) starter {
	return func(ctx context.Context) func() {
		f.Start(ctx.Done())
		return f.Shutdown
	}
}

// made returns a function that returns a value, or fails the test if there is none.
func made[V any](value V, err error) func(*world) V {
	return func(w *world) V {
		w.Helper()
		if err != nil {
			w.Fatal(err)
		}
		return value
	}
}

// tweak makes the selection of a scope part of list options.
func (s scope) tweak(o *metav1.ListOptions) {
	if s.hides {
		o.LabelSelector = "n!=" + hidden
	}
	if s.name != "" {
		o.FieldSelector = "metadata.name=" + s.name
	}
}

// oneNamespace returns the namespace of a scope that has one at most.
func (s scope) oneNamespace() string {
	if len(s.namespaces) == 0 {
		return ""
	}
	return s.namespaces[0]
}

// fromClientset reads through a clientset, the way that has our decoder.
func fromClientset(
	w *world, s *subject, config *rest.Config,
) (cache.SharedIndexInformer, starter) {
	if w.random.IntN(2) == 0 {
		config.ContentType = runtime.ContentTypeProtobuf
	}
	client := made(kubernetes.NewForConfig(config))(w)
	f := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(s.scope.oneNamespace()),
		informers.WithTweakListOptions(s.scope.tweak), informers.WithSlots(s.scope.selected()),
		informers.WithRecorder(w.recorder()))
	return f.Core().V1().ConfigMaps().Informer(), byFactory(f)
}

// fromTypedClient reads through the typed client of client-go, as with any wrapper of it.
func fromTypedClient(
	w *world, s *subject, config *rest.Config,
) (cache.SharedIndexInformer, starter) {
	client := made(kubernetes.NewForConfig(config))(w).CoreV1().ConfigMaps(s.scope.oneNamespace())
	i := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(
			ctx context.Context, o metav1.ListOptions,
		) (runtime.Object, error) {
			s.scope.tweak(&o)
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(
			ctx context.Context, o metav1.ListOptions,
		) (watch.Interface, error) {
			s.scope.tweak(&o)
			return client.Watch(ctx, o)
		},
	}, &corev1.ConfigMap{}, 0, cache.Indexers{})
	return i, func(ctx context.Context) func() {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			i.RunWithContext(ctx)
		}()
		return func() { <-ended }
	}
}

func fromDynamicClient(
	w *world, s *subject, config *rest.Config,
) (cache.SharedIndexInformer, starter) {
	f := dynamicinformer.NewFilteredDynamicSharedInformerFactory(
		made(dynamic.NewForConfig(config))(w), 0, s.scope.oneNamespace(), s.scope.tweak)
	return f.ForResource(s.scope.resource).Informer(), byFactory(f)
}

func fromMetadataClient(
	w *world, s *subject, config *rest.Config,
) (cache.SharedIndexInformer, starter) {
	f := metadatainformer.NewFilteredSharedInformerFactory(
		made(metadata.NewForConfig(config))(w), 0, s.scope.oneNamespace(), s.scope.tweak)
	return f.ForResource(s.scope.resource).Informer(), byFactory(f)
}
