package simulation

import (
	"context"
	"time"

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

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// dropInInformer is one of client-go's type with our engine.
type dropInInformer struct {
	w      *world
	i      cache.SharedIndexInformer
	cancel context.CancelFunc
	wait   func() // for its end
}

// maker makes an informer that is not running, and what starts it.
type maker func(w *world, s *subject, config *rest.Config) (i cache.SharedIndexInformer, start func(context.Context) (wait func()))

// dropIn returns what starts an informer of the drop-in.
func dropIn(make maker) func(*world, *subject) informer {
	return func(w *world, s *subject) informer {
		i, start := make(w, s, w.config(s.kind))
		err := i.AddIndexers(cache.Indexers{indexByN: func(obj any) ([]string, error) { return s.code.index(obj.(metav1.Object)) }})
		if err != nil {
			w.Fatal(err)
		}
		if s.code != nil {
			if err := i.SetTransform(transform[any](s.code)); err != nil {
				w.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
		return &dropInInformer{w, i, cancel, start(ctx)}
	}
}

// byFactory starts informers as factories do.
func byFactory(f interface {
	Start(<-chan struct{})
	Shutdown()
}) func(context.Context) func() {
	return func(ctx context.Context) func() {
		f.Start(ctx.Done())
		return f.Shutdown
	}
}

func made[T any](w *world, client T, err error) T {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
	return client
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
func fromClientset(w *world, s *subject, config *rest.Config) (cache.SharedIndexInformer, func(context.Context) func()) {
	if w.random.IntN(2) == 0 {
		config.ContentType = runtime.ContentTypeProtobuf
	}
	client, err := kubernetes.NewForConfig(config)
	f := informers.NewSharedInformerFactoryWithOptions(made(w, client, err), 0,
		informers.WithNamespace(s.scope.oneNamespace()), informers.WithTweakListOptions(s.scope.tweak))
	return f.Core().V1().ConfigMaps().Informer(), byFactory(f)
}

// fromTypedClient reads through the typed client of client-go, as with any wrapper of it.
func fromTypedClient(w *world, s *subject, config *rest.Config) (cache.SharedIndexInformer, func(context.Context) func()) {
	of, err := kubernetes.NewForConfig(config)
	client := made(w, of, err).CoreV1().ConfigMaps(s.scope.oneNamespace())
	i := cache.NewSharedIndexInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			s.scope.tweak(&o)
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
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

func fromDynamicClient(w *world, s *subject, config *rest.Config) (cache.SharedIndexInformer, func(context.Context) func()) {
	client, err := dynamic.NewForConfig(config)
	f := dynamicinformer.NewFilteredDynamicSharedInformerFactory(made(w, client, err), 0, s.scope.oneNamespace(), s.scope.tweak)
	return f.ForResource(s.scope.resource).Informer(), byFactory(f)
}

func fromMetadataClient(w *world, s *subject, config *rest.Config) (cache.SharedIndexInformer, func(context.Context) func()) {
	client, err := metadata.NewForConfig(config)
	f := metadatainformer.NewFilteredSharedInformerFactory(made[metadata.Interface](w, client, err), 0, s.scope.oneNamespace(), s.scope.tweak)
	return f.ForResource(s.scope.resource).Informer(), byFactory(f)
}

func (i *dropInInformer) handle(f func(event), o handlerOptions) registration {
	r, err := i.i.AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			added := obj.(metav1.Object)
			f(event{kind: tidings.Added, key: keyOf(added), new: stateOf(added)})
		},
		UpdateFunc: func(before, after any) {
			was, is := before.(metav1.Object), after.(metav1.Object)
			f(event{kind: tidings.Updated, resync: stateOf(was) == stateOf(is), key: keyOf(is), old: stateOf(was), new: stateOf(is)})
		},
		DeleteFunc: func(obj any) {
			deleted := event{kind: tidings.Deleted}
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				deleted.tombstone, obj = true, unknown.Obj
			}
			last := obj.(metav1.Object)
			deleted.key, deleted.old = keyOf(last), stateOf(last)
			f(deleted)
		},
	}, o.resync)
	if err != nil {
		i.w.Fatal(err)
	}
	remove := func() {
		if err := i.i.RemoveEventHandler(r); err != nil {
			i.w.Error(err)
		}
	}
	return registration{remove, r.HasSynced, func() tidings.HandlerHealth { return tidings.HandlerHealth{} }}
}

func (i *dropInInformer) state() map[string]state {
	all := map[string]state{}
	for _, key := range i.i.GetStore().ListKeys() {
		if obj, exists, _ := i.i.GetStore().GetByKey(key); exists {
			all[key] = stateOf(obj.(metav1.Object))
		}
	}
	return all
}

func (i *dropInInformer) indexed(n string) []string {
	keys, err := i.i.GetIndexer().IndexKeys(indexByN, n)
	if err != nil {
		i.w.Error(err)
	}
	return keys
}

func (i *dropInInformer) health() tidings.Health {
	health, ok := cache.HealthOf(i.i)
	if !ok {
		i.w.Error("an informer of the drop-in has no health")
	}
	return health
}

func (i *dropInInformer) stop() error {
	i.cancel()
	i.wait()
	return nil
}

// resyncPeriods are what handlers ask for.
var resyncPeriods = []time.Duration{0, 0, 0, 10 * time.Minute, time.Hour}
