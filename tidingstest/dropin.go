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

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
	"github.com/tidings-go/tidings/internal/follow"
)

// dropInKinds are the informers that stand in for client-go's.
func dropInKinds() []Kind {
	return []Kind{
		{Name: "drop-in typed", Namespaces: 1, DropIn: true, New: newDropIn(dropInTyped)},
		{Name: "drop-in typed everywhere", DropIn: true, New: newDropIn(dropInTyped)},
		{Name: "drop-in dynamic", Namespaces: 1, DropIn: true, New: newDropIn(dropInDynamic)},
		{Name: "drop-in metadata", Namespaces: 1, DropIn: true, New: newDropIn(dropInMetadata)},
		{
			Name: "drop-in dynamic, own source", Namespaces: 1, DropIn: true,
			New: newDropIn(dropInOwnDynamic),
		},
		{
			Name: "drop-in metadata, own source", Namespaces: 1, DropIn: true,
			New: newDropIn(dropInOwnMetadata),
		},
		{
			Name: "drop-in list and watch", Namespaces: 1, DropIn: true,
			New: newDropIn(dropInListWatch),
		},
	}
}

// FakeKinds returns the kinds that read from a Server's Client, such as client-go's fake
// clientset.
func FakeKinds() []Kind {
	one := Kind{
		Name: "drop-in on a fake", Namespaces: 1, DropIn: true, Fake: true,
		New: newDropIn(dropInFake),
	}
	all := one
	all.Name, all.Namespaces = "drop-in on a fake, everywhere", 0
	return []Kind{one, all}
}

func (s Setting) tweak(o *metav1.ListOptions) { o.LabelSelector = s.Labels }

func dropInTyped(s Setting) (cache.SharedIndexInformer, error) {
	client, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return nil, err
	}
	return fromClientset(s, client), nil
}

func dropInFake(s Setting) (cache.SharedIndexInformer, error) {
	return fromClientset(s, s.Client), nil
}

func fromClientset(s Setting, client kubernetes.Interface) cache.SharedIndexInformer {
	factory := informers.NewSharedInformerFactoryWithOptions(client, s.Resync,
		informers.WithNamespace(s.namespace()), informers.WithTweakListOptions(s.tweak))
	return factory.Core().V1().ConfigMaps().Informer()
}

func dropInDynamic(s Setting) (cache.SharedIndexInformer, error) {
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		return nil, err
	}
	return fromDynamic(s, client), nil
}

// dropInOwnDynamic and dropInOwnMetadata have clients that bring our own source along.
func dropInOwnDynamic(s Setting) (cache.SharedIndexInformer, error) {
	client, err := dynamicinformer.NewClient(s.Config, nil)
	if err != nil {
		return nil, err
	}
	return fromDynamic(s, client), nil
}

func fromDynamic(s Setting, client dynamic.Interface) cache.SharedIndexInformer {
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, s.Resync,
		s.namespace(), s.tweak)
	return factory.ForResource(configMaps).Informer()
}

func dropInMetadata(s Setting) (cache.SharedIndexInformer, error) {
	client, err := metadata.NewForConfig(s.Config)
	if err != nil {
		return nil, err
	}
	return fromMetadata(s, client), nil
}

func dropInOwnMetadata(s Setting) (cache.SharedIndexInformer, error) {
	client, err := metadatainformer.NewClient(s.Config, nil)
	if err != nil {
		return nil, err
	}
	return fromMetadata(s, client), nil
}

func fromMetadata(s Setting, client metadata.Interface) cache.SharedIndexInformer {
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, s.Resync,
		s.namespace(), s.tweak)
	return factory.ForResource(configMaps).Informer()
}

// dropInListWatch is an informer of a ListWatch, as programs make them.
func dropInListWatch(s Setting) (cache.SharedIndexInformer, error) {
	lw, err := listWatch(s)
	if err != nil {
		return nil, err
	}
	return cache.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, s.Resync, cache.Indexers{}), nil
}

func listWatch(s Setting) (*cache.ListWatch, error) {
	client, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return nil, err
	}
	return cache.NewFilteredListWatchFromClient(client.CoreV1().RESTClient(),
		configMaps.Resource, s.namespace(), s.tweak), nil
}

func newDropIn(
	make func(Setting) (cache.SharedIndexInformer, error),
) func(Setting) (Informer, error) {
	return func(s Setting) (Informer, error) {
		shared, err := make(s)
		if err != nil {
			return nil, err
		}
		return Shared(shared, s.Index)
	}
}

// dropIn is an Informer that is one of client-go's.
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
			// What a relist finds unchanged is repeated, as by client-go.
			e.Resync = follow.StateOf(e.Old) == follow.StateOf(e.New)
			handle(e)
		},
		DeleteFunc: func(obj any) {
			tombstone, isTombstone := obj.(cache.DeletedFinalStateUnknown)
			if isTombstone {
				obj = tombstone.Obj
			}
			handle(Event{
				Type: tidings.Deleted, Tombstone: isTombstone, Old: obj.(tidings.Object),
			})
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
