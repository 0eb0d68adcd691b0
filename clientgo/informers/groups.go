package informers

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/tools/cache"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
)

// builtin is what client-go's generated groups get for their factory. They ask it for
// an informer with a function of theirs that would make client-go's: here it is
// ignored, and the informer is one of this package. Calls of the factory's own
// InformerFor do not come this way, because they may bring a function that selects.
type builtin struct {
	factory *factory
}

var _ internalinterfaces.SharedInformerFactory = builtin{}

func (b builtin) Start(stopCh <-chan struct{}) { b.factory.Start(stopCh) }

func (b builtin) InformerName() *cache.InformerName { return b.factory.informerName }

func (b builtin) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	if r, ok := resourceOf(obj); ok {
		return b.factory.builtin(r)
	}
	// A type of a client-go that is newer than the table: its own informer serves.
	return b.factory.InformerFor(obj, newFunc)
}

// genericInformer is the shared informer of a resource.
type genericInformer struct {
	informer cache.SharedIndexInformer
	resource schema.GroupResource
}

var _ GenericInformer = (*genericInformer)(nil)

func (g *genericInformer) Informer() cache.SharedIndexInformer { return g.informer }

func (g *genericInformer) Lister() cache.GenericLister {
	return tidingscache.NewGenericLister(g.informer.GetIndexer(), g.resource)
}
