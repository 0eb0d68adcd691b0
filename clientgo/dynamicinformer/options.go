package dynamicinformer

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/internal/factory"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

// SharedInformerOption is an option of NewDynamicSharedInformerFactoryWithOptions and
// NewDynamicInformerWithOptions. Where two options set the same thing, the later one applies.
// They are the options of package informers of this module.
type SharedInformerOption func(*factory.ByResource)

// WithNamespace limits informers to a namespace; the default is metav1.NamespaceAll.
func WithNamespace(namespace string) SharedInformerOption {
	return func(o *factory.ByResource) { o.Namespace = namespace }
}

// WithTweakListOptions sets a function that changes the options of every list and watch, to
// set label or field selectors. It is called with a copy, from any goroutine.
func WithTweakListOptions(tweakListOptions TweakListOptionsFunc) SharedInformerOption {
	return func(o *factory.ByResource) { o.Tweak = tweakListOptions }
}

// WithTransform sets a transform on all informers.
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(o *factory.ByResource) { o.Transform = transform }
}

// WithSharing limits the parts that cached objects share in memory, as informers.WithSharing
// does. The default is tidings.ShareAll. Secrets share nothing.
func WithSharing(atMost tidings.Sharing) SharedInformerOption {
	listwatch.CheckSharing("dynamicinformer.WithSharing", atMost)
	return func(o *factory.ByResource) { o.Sharing = atMost }
}

// WithSharingAmong sets the table of the informers that share with each other, as
// informers.WithSharingAmong does; nil, the default, is a table of the factory's own.
func WithSharingAmong(table *source.Table) SharedInformerOption {
	return func(o *factory.ByResource) { o.Table = table }
}

// WithRecorder sets a flight recorder of the lists and watches of the informers, as
// informers.WithRecorder does.
func WithRecorder(recorder source.Recorder) SharedInformerOption {
	return func(o *factory.ByResource) { o.Recorder = recorder }
}

// WithSlots limits the informers to the objects of some slots, as informers.WithSlots does.
func WithSlots(slots *tidings.Slots) SharedInformerOption {
	return func(o *factory.ByResource) { o.Slots = slots }
}

// WithDrop leaves fields of the metadata out of the objects of all informers, and
// WithDropFor leaves any fields out of the objects of one resource, as if they had never been
// set:
//
//	dynamicinformer.WithDrop("metadata.managedFields")
//	dynamicinformer.WithDropFor(widgets, "spec.template", "status")
//
// informers.WithDrop describes paths, and the reason why such an object must not be given to an
// Update. It panics if a path is wrong, as far as that is known without a Go type.
func WithDrop(paths ...string) SharedInformerOption {
	factory.CheckDrop("dynamicinformer.WithDrop", paths, factory.OfMetadata)
	return func(o *factory.ByResource) { o.Drop.Add(schema.GroupVersionResource{}, paths) }
}

// WithoutServerDrop keeps the server from leaving out metadata.managedFields, as
// informers.WithoutServerDrop does.
func WithoutServerDrop() SharedInformerOption {
	return func(o *factory.ByResource) { o.NoServerDrop = true }
}

// WithDropFor is WithDrop for the informer of one resource. Only the paths within the
// metadata are checked.
func WithDropFor(gvr schema.GroupVersionResource, paths ...string) SharedInformerOption {
	factory.CheckDropFor("dynamicinformer.WithDropFor", gvr, paths, factory.OfUnstructured)
	return func(o *factory.ByResource) { o.Drop.Add(gvr, paths) }
}
