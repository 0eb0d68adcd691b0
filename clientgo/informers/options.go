package informers

import (
	"maps"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

// SharedInformerOption is an option of NewSharedInformerFactoryWithOptions. Where two
// options set the same thing, the later one holds.
//
// client-go's type of this name acts on its private factory, so that its options
// cannot be used here: take those of this package, which have the same names.
type SharedInformerOption func(*factory)

// WithCustomResyncConfig sets the resync period of the informers of some types, by an
// object of each type, in place of the factory's default. Zero turns resyncs off.
// Used more than once, the periods add up.
func WithCustomResyncConfig(resyncConfig map[metav1.Object]time.Duration) SharedInformerOption {
	periods := make(map[reflect.Type]time.Duration, len(resyncConfig))
	for object, period := range resyncConfig {
		periods[reflect.TypeOf(object)] = period
	}
	return func(f *factory) { maps.Copy(f.customResync, periods) }
}

// WithTweakListOptions has every list and watch of the factory's own informers pass
// its options through a function, which sets label or field selectors. It is called
// with a copy, from any goroutine. Informers that a caller's function makes (see
// InformerFor) are left as they are.
func WithTweakListOptions(tweakListOptions internalinterfaces.TweakListOptionsFunc) SharedInformerOption {
	return func(f *factory) { f.tweak = tweakListOptions }
}

// WithNamespace limits the factory's own informers to a namespace. Types that have no
// namespace are not affected. The default is metav1.NamespaceAll.
func WithNamespace(namespace string) SharedInformerOption {
	return func(f *factory) { f.namespace = namespace }
}

// WithTransform sets a transform on every informer of the factory, those of
// InformerFor included, at the time when it is made.
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(f *factory) { f.transform = transform }
}

// WithInformerName names the factory's informers in metrics: each registers its
// resource under the name. The name comes from cache.NewInformerName, which fails for
// a name in use; Shutdown releases it.
func WithInformerName(informerName *cache.InformerName) SharedInformerOption {
	return func(f *factory) { f.informerName = informerName }
}

// WithSharing limits what the cached objects of the factory's own informers have in common
// in memory. The default is tidings.ShareAll: to change an object without a DeepCopy, which
// nobody should, is then to change others. With tidings.ShareStrings no object has a part of
// another, at the price of several times the memory; tidings.ShareNothing has each decoded
// by the code that was generated for its type, and caches what other clients and transforms
// return. A transform owns the object that it is given: it has strings in common with others
// at most, and what the transform returns is shared. The values are the same in any case.
func WithSharing(atMost tidings.Sharing) SharedInformerOption {
	listwatch.CheckSharing("informers.WithSharing", atMost)
	return func(f *factory) { f.decoding.atMost = atMost }
}

// WithSharingAmong has the cached objects of the factory's own informers share with those of
// all informers that have the same table, such as those of another factory, of package
// dynamicinformer too; nil is a table of the factory's own, which is the default. Objects
// that are held in different Go types have strings in common.
func WithSharingAmong(table *source.Table) SharedInformerOption {
	return func(f *factory) {
		f.decoding.among = table
		if table == nil {
			f.decoding.among = new(source.Table)
		}
	}
}

// NewSharedInformerFactory returns a factory of informers for all namespaces.
// defaultResync is the period in which handlers that name none of their own are told
// of every cached object again; zero turns that off. A resync never asks the server.
//
// A nil client is allowed, because tests fill the stores of informers that never run:
// the informers of such a factory fail every list with an error that says so.
func NewSharedInformerFactory(client kubernetes.Interface, defaultResync time.Duration) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewFilteredSharedInformerFactory returns a factory whose own informers are limited to
// a namespace and to what tweakListOptions selects. It may be nil.
//
// Deprecated: use NewSharedInformerFactoryWithOptions with WithNamespace and
// WithTweakListOptions.
func NewFilteredSharedInformerFactory(client kubernetes.Interface, defaultResync time.Duration, namespace string, tweakListOptions internalinterfaces.TweakListOptionsFunc) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync, WithNamespace(namespace), WithTweakListOptions(tweakListOptions))
}

// NewSharedInformerFactoryWithOptions returns a factory with options, which apply in
// order. See NewSharedInformerFactory for the other parameters.
func NewSharedInformerFactoryWithOptions(client kubernetes.Interface, defaultResync time.Duration, options ...SharedInformerOption) SharedInformerFactory {
	return newFactory(client, defaultResync, options)
}

func newFactory(client kubernetes.Interface, defaultResync time.Duration, options []SharedInformerOption) *factory {
	f := &factory{
		client:        client,
		namespace:     metav1.NamespaceAll,
		defaultResync: defaultResync,
		customResync:  make(map[reflect.Type]time.Duration),
		informers:     make(map[reflect.Type]*member),
		decoding:      decoding{among: new(source.Table)},
	}
	for _, option := range options {
		option(f)
	}
	return f
}
