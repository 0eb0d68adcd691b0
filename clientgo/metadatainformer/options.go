package metadatainformer

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/internal/factory"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

// SharedInformerOption is an option of NewSharedInformerFactoryWithOptions and
// NewMetadataInformerWithOptions. Where two options set the same thing, the later one applies.
// client-go's type of that name is for its own factory, which no other package can make. They are
// the options of package informers of this module.
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
// does. The default is tidings.ShareAll. The metadata of Secrets share nothing.
func WithSharing(atMost tidings.Sharing) SharedInformerOption {
	listwatch.CheckSharing("metadatainformer.WithSharing", atMost)
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

// WithDrop leaves fields out of the metadata in all informers, and WithDropFor out of the
// metadata of one resource, as if they had never been set:
//
//	metadatainformer.WithDrop("metadata.managedFields")
//	metadatainformer.WithDropFor(pods, "metadata.annotations")
//
// informers.WithDrop describes paths. It panics if a path is wrong.
func WithDrop(paths ...string) SharedInformerOption {
	factory.CheckDrop("metadatainformer.WithDrop", paths, ofMetadata)
	return func(o *factory.ByResource) { o.Drop.Add(schema.GroupVersionResource{}, paths) }
}

// WithoutServerDrop keeps the server from leaving out metadata.managedFields, as
// informers.WithoutServerDrop does.
func WithoutServerDrop() SharedInformerOption {
	return func(o *factory.ByResource) { o.NoServerDrop = true }
}

// WithDropFor is WithDrop for the informer of one resource.
func WithDropFor(gvr schema.GroupVersionResource, paths ...string) SharedInformerOption {
	factory.CheckDropFor("metadatainformer.WithDropFor", gvr, paths, ofMetadata)
	return func(o *factory.ByResource) { o.Drop.Add(gvr, paths) }
}

var ofMetadata = factory.OfType(reflect.TypeFor[metav1.PartialObjectMetadata]())
