package stack

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/listers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	tidingsdynamic "github.com/tidings-go/tidings/clientgo/dynamicinformer"
	tidingsinformers "github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/source"
)

// shared is a stack of client-go's interfaces: client-go itself, or the drop-in.
type shared struct {
	name       string
	newMemory  func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer
	newFactory func(kubernetes.Interface, time.Duration) informers.SharedInformerFactory
	newWatched func(cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers) cache.SharedIndexInformer
	newDynamic func(dynamic.Interface, time.Duration) dynamicinformer.DynamicSharedInformerFactory
	newClient  func(*rest.Config) (dynamic.Interface, error)
	decoder    func([]byte) (metav1.Object, error)
}

func clientGo() Stack {
	return shared{ClientGo, cache.NewSharedIndexInformer, informers.NewSharedInformerFactory, cache.NewSharedIndexInformer, dynamicinformer.NewDynamicSharedInformerFactory, dynamicClient, unmarshal}
}

func dropIn() Stack {
	return shared{DropIn, fromMemory, tidingsinformers.NewSharedInformerFactory, tidingscache.NewSharedIndexInformer, tidingsdynamic.NewDynamicSharedInformerFactory, readingClient, nil}
}

// fromMemory makes the drop-in's informer of objects that nothing has decoded: they have
// the parts in common that they were made with, so that there is nothing to look for.
func fromMemory(lw cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return tidingscache.NewSharedIndexInformer(tidingscache.WithSharing(lw, tidingscache.SharingOptions{AtMost: source.ShareNothing}), example, resync, indexers)
}

// dynamicClient makes client-go's client, which decodes by itself.
func dynamicClient(config *rest.Config) (dynamic.Interface, error) {
	return dynamic.NewForConfig(config)
}

// readingClient makes the drop-in's, which has its informers read.
func readingClient(config *rest.Config) (dynamic.Interface, error) {
	return tidingsdynamic.NewClient(config, nil)
}

func (s shared) Name() string { return s.name }

// Policies has the default alone: client-go's interfaces have no word for another.
func (s shared) Policies() []string { return []string{""} }

func (s shared) FromMemory(f *feed.Feed, o Options) (Informer, error) {
	return newShared[*corev1.Pod](s.newMemory(f.ListerWatcher(), &corev1.Pod{}, 0, cache.Indexers{}), objects.Pods, o)
}

func (s shared) FromServer(t Target, o Options) (Informer, error) {
	config := &rest.Config{Host: t.URL, QPS: -1}
	if t.Encoding == server.Protobuf {
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	if t.Kind == objects.Widgets {
		newClient := s.newClient
		if o.ListerWatcher {
			newClient = dynamicClient
		}
		client, err := newClient(config)
		if err != nil {
			return nil, err
		}
		return newShared[*unstructured.Unstructured](s.newDynamic(client, 0).ForResource(t.Kind.Resource()).Informer(), t.Kind, o)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if o.ListerWatcher {
		if t.Kind != objects.Pods {
			return nil, unsupported(t.Kind)
		}
		lw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll, fields.Everything())
		return newShared[*corev1.Pod](s.newWatched(lw, &corev1.Pod{}, 0, cache.Indexers{}), t.Kind, o)
	}
	factory := s.newFactory(client, 0)
	switch t.Kind {
	case objects.Pods, objects.UnlikePods:
		return newShared[*corev1.Pod](factory.Core().V1().Pods().Informer(), t.Kind, o)
	case objects.Deployments:
		return newShared[*appsv1.Deployment](factory.Apps().V1().Deployments().Informer(), t.Kind, o)
	case objects.ConfigMaps:
		return newShared[*corev1.ConfigMap](factory.Core().V1().ConfigMaps().Informer(), t.Kind, o)
	}
	return nil, unsupported(t.Kind)
}

func (s shared) Decoder() func([]byte) (metav1.Object, error) { return s.decoder }

// unmarshal decodes with the generated code, as client-go's decoder does.
func unmarshal(message []byte) (metav1.Object, error) {
	pod := &corev1.Pod{}
	return pod, pod.Unmarshal(message)
}

// sharedInformer is an Informer on one of client-go's interface.
type sharedInformer[T objects.Object] struct {
	informer cache.SharedIndexInformer
	handlers []cache.ResourceEventHandlerRegistration
	lister   listers.ResourceIndexer[T]
}

func newShared[T objects.Object](informer cache.SharedIndexInformer, kind objects.Kind, o Options) (Informer, error) {
	// client-go's factories add this index to every informer.
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	for name := range informer.GetIndexer().GetIndexers() {
		delete(indexers, name)
	}
	for name, index := range o.Indexes {
		indexers[name] = func(object any) ([]string, error) {
			o, ok := object.(metav1.Object)
			if !ok {
				return nil, fmt.Errorf("%T has no metadata", object)
			}
			return index(o), nil
		}
	}
	if err := informer.AddIndexers(indexers); err != nil {
		return nil, err
	}
	lister := listers.New[T](informer.GetIndexer(), kind.Resource().GroupResource())
	return &sharedInformer[T]{informer: informer, lister: lister}, nil
}

func (i *sharedInformer[T]) AddHandler(h Handler) error {
	if h.Policy != "" {
		return fmt.Errorf("stack: client-go's handlers have no policy %q", h.Policy)
	}
	var funcs cache.ResourceEventHandlerFuncs
	if h.Add != nil {
		funcs.AddFunc = func(object any) { h.Add(object.(T)) }
	}
	if h.Update != nil {
		funcs.UpdateFunc = func(before, after any) { h.Update(before.(T), after.(T)) }
	}
	if h.Delete != nil {
		funcs.DeleteFunc = func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			h.Delete(object.(T))
		}
	}
	r, err := i.informer.AddEventHandler(funcs)
	i.handlers = append(i.handlers, r)
	return err
}

func (i *sharedInformer[T]) Run(ctx context.Context) error {
	i.informer.RunWithContext(ctx)
	return nil
}

func (i *sharedInformer[T]) WaitForSync(ctx context.Context) error {
	waits := []<-chan struct{}{i.informer.HasSyncedChecker().Done()}
	for _, h := range i.handlers {
		waits = append(waits, h.HasSyncedChecker().Done())
	}
	return waitAll(ctx, waits)
}

func (i *sharedInformer[T]) Len() int { return len(i.informer.GetIndexer().ListKeys()) }

func (i *sharedInformer[T]) Get(key string) (metav1.Object, bool) {
	object, ok, err := i.informer.GetIndexer().GetByKey(key)
	if err != nil || !ok {
		return nil, false
	}
	return object.(T), true
}

func (i *sharedInformer[T]) Namespace(namespace string) int {
	return visitAll(listers.NewNamespaced(i.lister, namespace).List(labels.Everything()))
}

func (i *sharedInformer[T]) Select(selector labels.Selector) int {
	return visitAll(i.lister.List(selector))
}

func (i *sharedInformer[T]) Owned(namespace, uid string) int {
	found, err := listers.NewNamespaced(i.lister, namespace).List(labels.Everything())
	if err != nil {
		return -1
	}
	n := 0
	for _, object := range found {
		if owns(object, uid) {
			n += visit(object)
		}
	}
	return n
}

func (i *sharedInformer[T]) Lookup(index, value string) int {
	found, err := i.informer.GetIndexer().ByIndex(index, value)
	if err != nil {
		return -1
	}
	n := 0
	for _, object := range found {
		n += visit(object.(T))
	}
	return n
}

func (i *sharedInformer[T]) All() int { return visitAll(i.lister.List(labels.Everything())) }

// visitAll visits the objects of a list and counts them; -1 says that there was none.
func visitAll[T objects.Object](found []T, err error) int {
	if err != nil {
		return -1
	}
	n := 0
	for _, object := range found {
		n += visit(object)
	}
	return n
}
