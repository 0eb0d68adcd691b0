package dynamicinformer

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/internal/byresource"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

// SharedInformerOption is an option of NewDynamicSharedInformerFactoryWithOptions and
// NewDynamicInformerWithOptions. Where two set the same thing, the later one holds.
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
// others at most; what it returns is shared. The values are the same in any case. Secrets
// share nothing, whatever is set.
func WithSharing(atMost tidings.Sharing) SharedInformerOption {
	listwatch.CheckSharing("dynamicinformer.WithSharing", atMost)
	return func(o *byresource.Options) { o.AtMost = atMost }
}

// WithSharingAmong has the objects share with those of all informers that have the same
// table, such as those of another factory; nil is a table of the factory's own, which is the
// default. Objects that are held in different Go types have strings in common.
func WithSharingAmong(table *source.Table) SharedInformerOption {
	return func(o *byresource.Options) { o.Among = table }
}

// WithDrop leaves fields of the metadata out of the objects of all informers, and
// WithDropFor any fields out of those of one resource, as if they had never been set:
//
//	dynamicinformer.WithDrop("metadata.managedFields")
//	dynamicinformer.WithDropFor(widgets, "spec.template", "status")
//
// A path names fields as JSON does, joined by dots. It goes through lists and ends at a
// field of any type, which is left out whole; it cannot leave out what objects are told
// apart by. The paths of several options add up. Informers with a *Client do not even decode
// these fields; otherwise they are removed from what the client has decoded, before any
// transform.
//
// Do not give an object of such an informer to an Update: the server takes a field that is
// not there as one to be removed. Use a Patch, or read the object anew.
//
// It panics if a path is wrong, as far as that can be known without a Go type: paths are
// fixed when the program is compiled, so that any run of that line shows the mistake.
func WithDrop(paths ...string) SharedInformerOption {
	if err := byresource.CheckDrop(&unstructured.Unstructured{}, paths, true); err != nil {
		panic(fmt.Sprintf("dynamicinformer.WithDrop: %v", err))
	}
	return func(o *byresource.Options) { o.Drop.Add(schema.GroupVersionResource{}, paths) }
}

// WithDropFor is WithDrop for the informer of one resource. Of its paths, those within the
// metadata are checked: what else the objects have, nobody knows.
func WithDropFor(gvr schema.GroupVersionResource, paths ...string) SharedInformerOption {
	err := byresource.CheckDrop(&unstructured.Unstructured{}, paths, false)
	if err == nil && gvr.Resource == "" {
		err = byresource.ErrNoResource
	}
	if err != nil {
		panic(fmt.Sprintf("dynamicinformer.WithDropFor(%v): %v", gvr, err))
	}
	return func(o *byresource.Options) { o.Drop.Add(gvr, paths) }
}
