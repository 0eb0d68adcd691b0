package informers

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/clientgo/internal/factory"
)

// SharedInformerFactory shares informers by type. It is client-go's own interface, so that a
// factory can be given to any code that was written for client-go.
type SharedInformerFactory = informers.SharedInformerFactory

// GenericInformer is an informer and a lister whose type is not known at compile time. It is
// client-go's own interface.
type GenericInformer = informers.GenericInformer

// sharedInformerFactory is the SharedInformerFactory of this package.
type sharedInformerFactory struct {
	factory.Factory[reflect.Type]
	client        kubernetes.Interface
	options       factory.Options[reflect.Type]
	defaultResync time.Duration
	customResync  map[reflect.Type]time.Duration
	informerName  *cache.InformerName
}

var _ SharedInformerFactory = (*sharedInformerFactory)(nil)

// InformerName returns the name of the informers in metrics, nil if they have no name.
func (f *sharedInformerFactory) InformerName() *cache.InformerName { return f.informerName }

// InformerFor returns the informer of the type of obj. The first call for a type calls newFunc
// with the factory's client and the resync period for that type.
//
// newFunc is called with the factory locked: it must not call the factory.
func (f *sharedInformerFactory) InformerFor(obj runtime.Object,
	newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	goType := reflect.TypeOf(obj)
	return f.Informer(goType, func() cache.SharedIndexInformer {
		return f.newInformer(goType, newFunc)
	})
}

// newInformer returns the informer that newFunc makes, with the factory's transform.
func (f *sharedInformerFactory) newInformer(goType reflect.Type,
	newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	resync, ok := f.customResync[goType]
	if !ok {
		resync = f.defaultResync
	}
	informer := newFunc(f.client, resync)
	if f.options.Transform != nil {
		if err := informer.SetTransform(f.options.Transform); err != nil {
			utilruntime.HandleErrorWithContext(context.Background(), err,
				"The informer factory's transform does not apply to a running informer: return a new one from InformerFor's function",
				"type", goType)
		}
	}
	return informer
}

// ForResource returns the shared informer of a resource of Kubernetes' own API and a lister
// over it. Any other resource is an error.
func (f *sharedInformerFactory) ForResource(
	gvr schema.GroupVersionResource) (GenericInformer, error) {
	r, ok := resourceFor(gvr)
	if !ok {
		return nil, fmt.Errorf("no informer found for %v: this version of client-go has no such resource of the Kubernetes API; "+
			"for a custom resource use package dynamicinformer or tidings.Dynamic", gvr)
	}
	return factory.Generic(r.goType.typed(f.builtin(r)), gvr.GroupResource()), nil
}

func (f *sharedInformerFactory) builtin(r *resource) cache.SharedIndexInformer {
	return f.InformerFor(r.goType.example(), f.newFunc(r, factory.ByNamespace()))
}

// newFunc returns a function that makes an informer of a resource of the table.
func (f *sharedInformerFactory) newFunc(r *resource,
	indexers cache.Indexers) internalinterfaces.NewInformerFunc {
	return func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		s := f.spec(r.goType.example())
		s.Informer.ResyncPeriod, s.Informer.Indexers = resync, indexers
		s.Informer.Identifier = f.informerName.WithResource(r.gvr)
		return r.newInformer(client, s)
	}
}

// spec returns the part of an informer's specification that the options have.
func (f *sharedInformerFactory) spec(example runtime.Object) factory.Spec {
	s := factory.Spec{Reading: f.options.Reading, Drop: f.options.Drop.Of(reflect.TypeOf(example))}
	s.Informer.Example = example
	return s
}

// Shutdown prevents further starts, waits until all informers have stopped, and releases the
// informer name. The caller ends the contexts that the informers were started with, before
// the call or meanwhile. It may be called more than once, from any goroutine.
func (f *sharedInformerFactory) Shutdown() {
	f.Factory.Shutdown()
	f.informerName.Release()
}

// WaitForCacheSyncWithContext waits until every informer that was started before the call is
// in sync, or the context ends. The result reports for each informer whether it is in sync. If
// one is not, its error is the cause of the context.
func (f *sharedInformerFactory) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	synced, err := f.Wait(ctx)
	return cache.SyncResult{Synced: synced, Err: err}
}

// groups is the factory of client-go's generated groups. Their functions would make
// client-go's informers: they are ignored, and the informer is one of this package. The
// public InformerFor of the factory runs its caller's function, because that may select.
type groups struct {
	*sharedInformerFactory
}

var _ internalinterfaces.SharedInformerFactory = groups{}

func (g groups) InformerFor(obj runtime.Object,
	newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	if r, ok := resourceOf(obj); ok {
		return g.builtin(r)
	}
	// The type is of a client-go that is newer than the table.
	return g.sharedInformerFactory.InformerFor(obj,
		func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			klog.Background().Info("Warning: the informer is client-go's", "type", reflect.TypeOf(obj),
				"reason", "this version of Tidings has none of the type")
			return newFunc(client, resync)
		})
}
