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
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/listers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	tidingsdynamic "github.com/tidings-go/tidings/clientgo/dynamicinformer"
	tidingsinformers "github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/source"
)

type newInformer = func(
	cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers,
) cache.SharedIndexInformer

// constructors are the functions in which client-go and the drop-in differ.
type constructors struct {
	informer newInformer
	memory   func(cache.ListerWatcher) cache.ListerWatcher
	factory  func(kubernetes.Interface, time.Duration) informers.SharedInformerFactory
	dynamic  func(dynamic.Interface, time.Duration) dynamicinformer.DynamicSharedInformerFactory
	client   func(*rest.Config) (dynamic.Interface, error)
}

// ClientGo is client-go.
func ClientGo() Stack {
	c := constructors{
		informer: cache.NewSharedIndexInformer,
		memory:   func(lw cache.ListerWatcher) cache.ListerWatcher { return lw },
		factory:  informers.NewSharedInformerFactory,
		dynamic:  dynamicinformer.NewDynamicSharedInformerFactory,
		client:   dynamicClient,
	}
	return Stack{
		Name: "client-go", FromMemory: c.fromMemory, FromServer: c.fromServer,
		// The generated code, as client-go's decoder uses it.
		Decoder: func() func([]byte) (tidings.Object, error) {
			return func(message []byte) (tidings.Object, error) {
				pod := &corev1.Pod{}
				return pod, pod.Unmarshal(message)
			}
		},
	}
}

// DropIn is client-go's API with Tidings behind it.
func DropIn() Stack {
	c := constructors{
		informer: tidingscache.NewSharedIndexInformer,
		// No decoder made the objects of a feed. They share their equal parts, so a search for them
		// would be useless.
		memory: func(lw cache.ListerWatcher) cache.ListerWatcher {
			nothing := tidingscache.SharingOptions{AtMost: source.ShareNothing}
			return tidingscache.WithSharing(lw, nothing)
		},
		factory: tidingsinformers.NewSharedInformerFactory,
		dynamic: tidingsdynamic.NewDynamicSharedInformerFactory,
		client: func(config *rest.Config) (dynamic.Interface, error) {
			return tidingsdynamic.NewClient(config, nil)
		},
	}
	return Stack{Name: "drop-in", FromMemory: c.fromMemory, FromServer: c.fromServer}
}

func dynamicClient(config *rest.Config) (dynamic.Interface, error) {
	return dynamic.NewForConfig(config)
}

func (c constructors) fromMemory(f *feed.Feed, o Options) (Informer, error) {
	informer := c.informer(c.memory(f.ListerWatcher()), &corev1.Pod{}, 0, cache.Indexers{})
	return newShared[*corev1.Pod](informer, objects.Pods, o)
}

func (c constructors) fromServer(t Target, o Options) (Informer, error) {
	config := &rest.Config{Host: t.URL, QPS: -1}
	if t.Encoding == server.Protobuf {
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	}
	if t.Kind == objects.Widgets {
		newClient := c.client
		if o.ListerWatcher {
			newClient = dynamicClient
		}
		client, err := newClient(config)
		if err != nil {
			return nil, err
		}
		informer := c.dynamic(client, 0).ForResource(t.Kind.Resource()).Informer()
		return newShared[*unstructured.Unstructured](informer, t.Kind, o)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := c.factory(client, 0)
	switch {
	case t.Kind == objects.Pods && o.ListerWatcher:
		lw := listerWatcher(client.CoreV1().RESTClient(), t.Kind)
		informer := c.informer(lw, &corev1.Pod{}, 0, cache.Indexers{})
		return newShared[*corev1.Pod](informer, t.Kind, o)
	case t.Kind == objects.Databases || t.Kind == objects.UnlikeDatabases:
		return c.databases(config, t.Kind, o)
	case o.ListerWatcher:
		return nil, errUnsupported(t.Kind)
	case t.Kind == objects.Pods || t.Kind == objects.UnlikePods:
		return newShared[*corev1.Pod](factory.Core().V1().Pods().Informer(), t.Kind, o)
	case t.Kind == objects.Deployments:
		informer := factory.Apps().V1().Deployments().Informer()
		return newShared[*appsv1.Deployment](informer, t.Kind, o)
	case t.Kind == objects.ConfigMaps:
		return newShared[*corev1.ConfigMap](factory.Core().V1().ConfigMaps().Informer(), t.Kind, o)
	}
	return nil, errUnsupported(t.Kind)
}

func listerWatcher(client rest.Interface, kind objects.Kind) cache.ListerWatcher {
	resource := kind.Resource().Resource
	return cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything())
}

// databases returns an informer of a custom resource in Go structs. The API machinery decodes its
// objects.
func (c constructors) databases(
	config *rest.Config, kind objects.Kind, o Options,
) (Informer, error) {
	gv := kind.Resource().GroupVersion()
	config.APIPath, config.GroupVersion = "/apis", &gv
	config.NegotiatedSerializer = serializer.NewCodecFactory(objects.Scheme()).WithoutConversion()
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, err
	}
	type database = objects.Database[[0]byte]
	informer := c.informer(listerWatcher(client, kind), &database{}, 0, cache.Indexers{})
	return newShared[*database](informer, kind, o)
}

// sharedInformer is an Informer on client-go's interface.
type sharedInformer[T objects.Object] struct {
	informer cache.SharedIndexInformer
	lister   listers.ResourceIndexer[T]
	synced   []<-chan struct{}
}

func newShared[T objects.Object](
	informer cache.SharedIndexInformer, kind objects.Kind, o Options,
) (Informer, error) {
	// client-go's factories add this index to every informer.
	indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	for name := range informer.GetIndexer().GetIndexers() {
		delete(indexers, name)
	}
	for name, index := range o.Indexes {
		indexers[name] = func(object any) ([]string, error) { return index(object.(T)), nil }
	}
	if err := informer.AddIndexers(indexers); err != nil {
		return nil, err
	}
	lister := listers.New[T](informer.GetIndexer(), kind.Resource().GroupResource())
	synced := []<-chan struct{}{informer.HasSyncedChecker().Done()}
	return &sharedInformer[T]{informer, lister, synced}, nil
}

// EventHandler returns a handler as client-go has them.
func EventHandler[T objects.Object](h Handler) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { h(Added, nil, object.(T)) },
		UpdateFunc: func(before, after any) { h(Updated, before.(T), after.(T)) },
		DeleteFunc: func(object any) {
			if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = unknown.Obj
			}
			h(Deleted, nil, object.(T))
		},
	}
}

func (i *sharedInformer[T]) AddHandler(h Handler, policy tidings.Policy) error {
	if policy != tidings.PolicyConflateUpdates {
		return fmt.Errorf("stack: client-go's handlers have no policy %v", policy)
	}
	r, err := i.informer.AddEventHandler(EventHandler[T](h))
	if err != nil {
		return err
	}
	i.synced = append(i.synced, r.HasSyncedChecker().Done())
	return nil
}

func (i *sharedInformer[T]) Run(ctx context.Context) error {
	i.informer.RunWithContext(ctx)
	return nil
}

func (i *sharedInformer[T]) WaitForSync(ctx context.Context) error { return waitAll(ctx, i.synced) }

func (i *sharedInformer[T]) Len() int { return len(i.informer.GetIndexer().ListKeys()) }

func (i *sharedInformer[T]) Get(key string) (tidings.Object, bool) {
	object, ok, err := i.informer.GetIndexer().GetByKey(key)
	if err != nil || !ok {
		return nil, false
	}
	return object.(T), true
}

func (i *sharedInformer[T]) Namespace(namespace string) int {
	found, err := listers.NewNamespaced(i.lister, namespace).List(labels.Everything())
	return countIf(found, err, nil)
}

func (i *sharedInformer[T]) Select(selector labels.Selector) int {
	found, err := i.lister.List(selector)
	return countIf(found, err, nil)
}

func (i *sharedInformer[T]) Owned(namespace, uid string) int {
	found, err := listers.NewNamespaced(i.lister, namespace).List(labels.Everything())
	return countIf(found, err, func(o metav1.Object) bool {
		owner := metav1.GetControllerOfNoCopy(o)
		return owner != nil && string(owner.UID) == uid
	})
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

func (i *sharedInformer[T]) All() int { return i.Select(labels.Everything()) }

// countIf visits the objects that a condition holds for, or all, and counts them; -1 stands
// for an error.
func countIf[T objects.Object](found []T, err error, condition func(metav1.Object) bool) int {
	if err != nil {
		return -1
	}
	n := 0
	for _, object := range found {
		if condition == nil || condition(object) {
			n += visit(object)
		}
	}
	return n
}
