package informers

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/internal/factory"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

// SharedInformerOption is an option of NewSharedInformerFactoryWithOptions. Where two
// options set the same thing, the later one applies.
//
// client-go's type of this name acts on its private factory, so that its options cannot be used
// here: use those of this package, which have the same names.
type SharedInformerOption func(*sharedInformerFactory)

// WithCustomResyncConfig sets the resync period of the informers of some types, by an object
// of each type, in place of the factory's default. Zero turns resyncs off. The periods of
// several options add up.
func WithCustomResyncConfig(resyncConfig map[metav1.Object]time.Duration) SharedInformerOption {
	periods := make(map[reflect.Type]time.Duration, len(resyncConfig))
	for object, period := range resyncConfig {
		periods[reflect.TypeOf(object)] = period
	}
	return func(f *sharedInformerFactory) { maps.Copy(f.customResync, periods) }
}

// WithTweakListOptions sets a function that changes the options of every list and watch of
// the factory's own informers, to set label or field selectors. It is called with a copy,
// from any goroutine. It does not apply to informers that InformerFor's functions make.
func WithTweakListOptions(tweakListOptions internalinterfaces.TweakListOptionsFunc) SharedInformerOption {
	return func(f *sharedInformerFactory) { f.options.Tweak = tweakListOptions }
}

// WithNamespace limits the factory's own informers to a namespace. Types without namespaces
// are not affected. The default is metav1.NamespaceAll.
func WithNamespace(namespace string) SharedInformerOption {
	return func(f *sharedInformerFactory) { f.options.Namespace = namespace }
}

// WithTransform sets a transform on every informer of the factory, those of InformerFor
// included, when it is made.
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(f *sharedInformerFactory) { f.options.Transform = transform }
}

// WithInformerName names the factory's informers in metrics: each registers its resource
// under the name. The name comes from cache.NewInformerName, which returns an error for a name in
// use. Shutdown releases it.
func WithInformerName(informerName *cache.InformerName) SharedInformerOption {
	return func(f *sharedInformerFactory) { f.informerName = informerName }
}

// WithSharing limits the parts that the cached objects of the factory's own informers share
// in memory. The default is tidings.ShareAll: a write to an object without a DeepCopy, which
// is an error anyway, then changes others. With tidings.ShareStrings objects share strings
// only, at the price of several times the memory. With tidings.ShareNothing each object is
// decoded by the generated code of its type, and the objects that other clients and
// transforms return are cached as they are. A transform may write to its argument, which shares
// strings at most. Its result shares parts. Secrets share nothing. The values of objects
// are the same in any case.
func WithSharing(atMost tidings.Sharing) SharedInformerOption {
	listwatch.CheckSharing("informers.WithSharing", atMost)
	return func(f *sharedInformerFactory) { f.options.Sharing = atMost }
}

// WithSharingAmong sets the table of the factory's own informers: all informers with the same
// table share parts of their objects, those of other factories and of packages
// dynamicinformer and metadatainformer included. Nil, the default, is a table of the
// factory's own. Objects of different Go types share strings.
func WithSharingAmong(table *source.Table) SharedInformerOption {
	return func(f *sharedInformerFactory) { f.options.Table = table }
}

// WithRecorder sets a flight recorder of the lists and watches of the factory's own informers: give
// one of package flight of this module. nil, the default, records nothing. Several factories may
// share one recorder, which bounds the memory of all of them together.
func WithRecorder(recorder source.Recorder) SharedInformerOption {
	return func(f *sharedInformerFactory) { f.options.Recorder = recorder }
}

// WithSlots limits the factory's own informers to the objects of some slots, which may change while
// they run: package shard divides the slots among processes. OnDelete receives a [cache.Moved] for
// an object whose slot leaves the informers. Our own source does not decode objects of other slots;
// those that another client has decoded are left out. nil, the default, is all objects.
//
// With slots by namespace, objects without a namespace are left out, with an error for each. With
// slots by UID, a transform must keep the UID.
func WithSlots(slots *tidings.Slots) SharedInformerOption {
	return func(f *sharedInformerFactory) { f.options.Slots = slots }
}

// WithDrop leaves fields of the metadata out of the objects of all the factory's own
// informers, as if they had never been set; WithDropFor leaves out fields of one type:
//
//	informers.WithDrop("metadata.managedFields")
//	informers.WithDropFor[*corev1.Pod]("spec.containers.env", "status.conditions")
//
// A path names fields as JSON does, joined by dots. It goes through lists and ends at a field
// of any type, which is left out whole. It cannot go into a map, nor leave out the identity
// of objects. The paths of several options add up.
//
// Our own source does not decode such a field. If another client has decoded the objects, the
// field is removed before any transform. The options do not apply to informers that
// InformerFor's functions make, except those of ForGroup with a Config.
//
// Do not give an object of such an informer to an Update: the server removes a field that is
// missing. Use a Patch, or read the object again.
//
// For our own source, a server may leave metadata.managedFields out itself: see WithoutServerDrop.
//
// It panics if a path is wrong: paths are fixed at compile time, so that any run of that line
// shows the mistake.
func WithDrop(paths ...string) SharedInformerOption {
	factory.CheckDrop("informers.WithDrop", paths, factory.OfMetadata)
	return func(f *sharedInformerFactory) { f.options.Drop.Add(nil, paths) }
}

// WithoutServerDrop keeps the server from leaving out metadata.managedFields, as
// tidings.Transport.NoServerDrop does. Without it, our own source asks for answers without the
// field where WithDrop leaves it out. The server then encodes each event once more, if other
// clients watch the objects with the field.
func WithoutServerDrop() SharedInformerOption {
	return func(f *sharedInformerFactory) { f.options.NoServerDrop = true }
}

// WithDropFor is WithDrop for the informer of one type, which may have any fields. The type
// may be that of a custom resource, for ForGroup with a Config.
func WithDropFor[T Object](paths ...string) SharedInformerOption {
	t := reflect.TypeFor[T]()
	factory.CheckDrop(fmt.Sprintf("informers.WithDropFor[%v]", t), paths, factory.OfType(t))
	return func(f *sharedInformerFactory) { f.options.Drop.Add(t, paths) }
}

// NewSharedInformerFactory returns a factory of informers for all namespaces. defaultResync
// is the resync period of handlers that set none of their own; zero means no resyncs. A
// resync repeats the cached objects to handlers and does not call the server.
//
// A nil client is allowed, because tests fill the stores of informers that never run. The
// informers of such a factory fail every list with an error.
func NewSharedInformerFactory(client kubernetes.Interface,
	defaultResync time.Duration) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewFilteredSharedInformerFactory returns a factory whose own informers are limited to a
// namespace and to the selection of tweakListOptions, which may be nil.
//
// Deprecated: use NewSharedInformerFactoryWithOptions with WithNamespace and
// WithTweakListOptions.
func NewFilteredSharedInformerFactory(client kubernetes.Interface, defaultResync time.Duration,
	namespace string, tweakListOptions internalinterfaces.TweakListOptionsFunc) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync, WithNamespace(namespace),
		WithTweakListOptions(tweakListOptions))
}

// NewSharedInformerFactoryWithOptions returns a factory with options, which apply in order.
// See NewSharedInformerFactory for the other parameters.
func NewSharedInformerFactoryWithOptions(client kubernetes.Interface, defaultResync time.Duration,
	options ...SharedInformerOption) SharedInformerFactory {
	return newFactory(client, defaultResync, options)
}

func newFactory(client kubernetes.Interface, defaultResync time.Duration,
	options []SharedInformerOption) *sharedInformerFactory {
	f := &sharedInformerFactory{
		client: client, defaultResync: defaultResync, customResync: make(map[reflect.Type]time.Duration),
	}
	for _, option := range options {
		option(f)
	}
	f.options.Table = cmp.Or(f.options.Table, new(source.Table))
	return f
}
