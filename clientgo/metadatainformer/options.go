package metadatainformer

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/internal/byresource"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

// SharedInformerOption is an option of NewSharedInformerFactoryWithOptions and
// NewMetadataInformerWithOptions. Where two set the same thing, the later one holds.
// client-go's type of that name is for its own factory, which nobody else can make.
type SharedInformerOption func(*byresource.Options)

// WithNamespace limits informers to a namespace; the default is metav1.NamespaceAll.
func WithNamespace(namespace string) SharedInformerOption {
	return func(o *byresource.Options) { o.Namespace = namespace }
}

// WithTweakListOptions has every list and watch pass its options through a function, which
// sets label or field selectors. It is called with a copy, from any goroutine.
func WithTweakListOptions(tweakListOptions TweakListOptionsFunc) SharedInformerOption {
	return func(o *byresource.Options) { o.Tweak = tweakListOptions }
}

// WithTransform sets a transform on all informers.
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(o *byresource.Options) { o.Transform = transform }
}

// WithSharing limits what cached objects have in common in memory. The default is
// tidings.ShareAll: to change an object without a DeepCopy, which nobody should, is then to
// change others. tidings.ShareStrings has them share strings alone, tidings.ShareNothing
// nothing. A transform owns the object that it is given, which has strings in common with
// others at most; what it returns is shared. The values are the same in any case. The metadata
// of Secrets share nothing, whatever is set.
func WithSharing(atMost tidings.Sharing) SharedInformerOption {
	listwatch.CheckSharing("metadatainformer.WithSharing", atMost)
	return func(o *byresource.Options) { o.AtMost = atMost }
}

// WithSharingAmong has the objects share with those of all informers that have the same
// table, such as those of another factory; nil is a table of the factory's own, which is the
// default. Objects that are held in different Go types have strings in common.
func WithSharingAmong(table *source.Table) SharedInformerOption {
	return func(o *byresource.Options) { o.Among = table }
}

// WithDrop leaves fields out of the metadata of all informers, and WithDropFor out of that
// of one resource, as if they had never been set:
//
//	metadatainformer.WithDrop("metadata.managedFields")
//	metadatainformer.WithDropFor(widgets, "metadata.annotations")
//
// A path names fields as JSON does, joined by dots. It goes through lists and ends at a
// field of any type, which is left out whole; it cannot go into a map, nor leave out what
// objects are told apart by. The paths of several options add up. Informers with a *Client
// do not even decode these fields; otherwise they are cleared in what the client has
// decoded, before any transform.
//
// It panics if a path is wrong: paths are fixed when the program is compiled, so that any
// run of that line shows the mistake.
func WithDrop(paths ...string) SharedInformerOption {
	if err := byresource.CheckDrop(&metav1.PartialObjectMetadata{}, paths, false); err != nil {
		panic(fmt.Sprintf("metadatainformer.WithDrop: %v", err))
	}
	return func(o *byresource.Options) { o.Drop.Add(schema.GroupVersionResource{}, paths) }
}

// WithDropFor is WithDrop for the informer of one resource.
func WithDropFor(gvr schema.GroupVersionResource, paths ...string) SharedInformerOption {
	err := byresource.CheckDrop(&metav1.PartialObjectMetadata{}, paths, false)
	if err == nil && gvr.Resource == "" {
		err = byresource.ErrNoResource
	}
	if err != nil {
		panic(fmt.Sprintf("metadatainformer.WithDropFor(%v): %v", gvr, err))
	}
	return func(o *byresource.Options) { o.Drop.Add(gvr, paths) }
}
