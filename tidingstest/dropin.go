package tidingstest

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
	"github.com/tidings-go/tidings/internal/test/follow"
)

// dropInKinds are the informers that replace client-go's.
func dropInKinds() []Kind {
	typed := connected(kubernetes.NewForConfig, fromClientset[*kubernetes.Clientset])
	// The clients of ownDynamic and ownMetadata bring our own source along.
	ownDynamic := connected(func(c *rest.Config) (dynamic.Interface, error) {
		return dynamicinformer.NewClient(c, nil)
	}, fromDynamic)
	ownMetadata := connected(func(c *rest.Config) (metadata.Interface, error) {
		return metadatainformer.NewClient(c, nil)
	}, fromMetadata)
	kinds := []Kind{
		{Name: "drop-in typed", New: typed},
		{Name: "drop-in typed everywhere", New: typed},
		{
			Name: "drop-in dynamic",
			New:  connected(dynamic.NewForConfig, fromDynamic[*dynamic.DynamicClient]),
		},
		{
			Name: "drop-in metadata",
			New:  connected(metadata.NewForConfig, fromMetadata[metadata.Interface]),
		},
		{Name: "drop-in dynamic, own source", New: ownDynamic},
		{Name: "drop-in metadata, own source", New: ownMetadata},
		{Name: "drop-in list and watch", New: connected(kubernetes.NewForConfig, fromListWatch)},
	}
	for n := range kinds {
		kinds[n].DropIn = true
		if n != 1 {
			kinds[n].Namespaces = 1
		}
	}
	return kinds
}

// FakeKinds returns the kinds that read from a Server's Client, such as client-go's fake
// clientset.
func FakeKinds() []Kind {
	one := Kind{
		Name: "drop-in on a fake", Namespaces: 1, DropIn: true, Fake: true,
		New: func(s Setting) (Informer, error) { return Shared(fromClientset(s, s.Client), s.Index) },
	}
	all := one
	all.Name, all.Namespaces = "drop-in on a fake, everywhere", 0
	return []Kind{one, all}
}

func (s Setting) tweak(o *metav1.ListOptions) { o.LabelSelector = s.Labels }

// connected returns the function that makes an informer of a client.
func connected[C any](
	connect func(*rest.Config) (C, error), make func(Setting, C) cache.SharedIndexInformer,
) func(Setting) (Informer, error) {
	return func(s Setting) (Informer, error) {
		client, err := connect(s.Config)
		if err != nil {
			return nil, err
		}
		return Shared(make(s, client), s.Index)
	}
}

func fromClientset[C kubernetes.Interface](s Setting, client C) cache.SharedIndexInformer {
	factory := informers.NewSharedInformerFactoryWithOptions(client, s.Resync,
		informers.WithNamespace(s.namespace()), informers.WithTweakListOptions(s.tweak))
	return factory.Core().V1().ConfigMaps().Informer()
}

func fromDynamic[C dynamic.Interface](s Setting, client C) cache.SharedIndexInformer {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, s.Resync,
		s.namespace(), s.tweak)
	return factory.ForResource(configMaps).Informer()
}

func fromMetadata[C metadata.Interface](s Setting, client C) cache.SharedIndexInformer {
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, s.Resync,
		s.namespace(), s.tweak)
	return factory.ForResource(configMaps).Informer()
}

// fromListWatch returns an informer of a ListWatch, as programs make them.
func fromListWatch(s Setting, client *kubernetes.Clientset) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(listWatch(s, client), &corev1.ConfigMap{}, s.Resync,
		cache.Indexers{})
}

func listWatch(s Setting, client *kubernetes.Clientset) *cache.ListWatch {
	return cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(),
		configMaps.Resource, s.namespace(), s.tweak)
}

// dropIn is an Informer on an informer of client-go's type.
type dropIn struct {
	shared cache.SharedIndexInformer
	synced <-chan struct{}
}

// Shared returns an informer of client-go's type as an [Informer] with an index.
func Shared(
	shared cache.SharedIndexInformer, index func(tidings.Object) ([]string, error),
) (Informer, error) {
	err := shared.AddIndexers(cache.Indexers{indexName: func(obj any) ([]string, error) {
		return index(obj.(tidings.Object))
	}})
	if err != nil {
		return nil, err
	}
	return dropIn{shared, shared.HasSyncedChecker().Done()}, nil
}

func (d dropIn) Run(ctx context.Context) error {
	d.shared.RunWithContext(ctx)
	return nil
}

func (d dropIn) AddHandler(
	handle func(Event), o tidings.HandlerOptions,
) (Registration, error) {
	r, err := d.shared.AddEventHandlerWithOptions(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			handle(Event{Type: tidings.Added, Initial: initial, New: obj.(tidings.Object)})
		},
		UpdateFunc: func(before, after any) {
			e := Event{
				Type: tidings.Updated, Old: before.(tidings.Object), New: after.(tidings.Object),
			}
			// An object that a relist finds unchanged is repeated, as by client-go.
			e.Resync = follow.StateOf(e.Old) == follow.StateOf(e.New)
			handle(e)
		},
		DeleteFunc: func(obj any) {
			e := Event{Type: tidings.Deleted}
			switch last := obj.(type) {
			case cache.DeletedFinalStateUnknown:
				obj, e.Tombstone = last.Obj, true
			case cache.Moved:
				obj, e.Tombstone, e.Moved = last.Object, true, true
			}
			e.Old = obj.(tidings.Object)
			handle(e)
		},
	}, cache.HandlerOptions{ResyncPeriod: &o.Resync})
	if err != nil {
		return nil, err
	}
	ends, ok := r.(interface{ ShutdownChan() <-chan struct{} })
	if !ok {
		return nil, fmt.Errorf("the registration, a %T, does not report its end", r)
	}
	return dropInRegistration{d.shared, r, ends.ShutdownChan()}, nil
}

type dropInRegistration struct {
	shared cache.SharedIndexInformer
	handle cache.ResourceEventHandlerRegistration
	done   <-chan struct{}
}

// Remove cannot fail: the handle is of this informer.
func (r dropInRegistration) Remove() {
	if err := r.shared.RemoveEventHandler(r.handle); err != nil {
		panic(fmt.Sprintf("tidingstest: an informer refused to remove its own handler: %v", err))
	}
}

func (r dropInRegistration) Done() <-chan struct{}   { return r.done }
func (r dropInRegistration) Synced() <-chan struct{} { return r.handle.HasSyncedChecker().Done() }

func (d dropIn) Synced() <-chan struct{} { return d.synced }

func (d dropIn) List() []tidings.Object {
	var list []tidings.Object
	for _, obj := range d.shared.GetStore().List() {
		list = append(list, obj.(tidings.Object))
	}
	return list
}

func (d dropIn) Get(key string) tidings.Object {
	obj, exists, err := d.shared.GetStore().GetByKey(key)
	if err != nil || !exists {
		return nil
	}
	return obj.(tidings.Object)
}

func (d dropIn) Indexed(value string) ([]string, error) {
	return d.shared.GetIndexer().IndexKeys(indexName, value)
}

func (d dropIn) Health() tidings.Health {
	health, ok := cache.HealthOf(d.shared)
	if !ok {
		health.LastError = fmt.Errorf("a %T has no health", d.shared)
	}
	return health
}

func (d dropIn) WaitFor(context.Context, string) error { return errors.ErrUnsupported }
