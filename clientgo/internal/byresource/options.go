package byresource

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

// Options say what informers read and what becomes of it. The zero value is everything, as
// it is, with all in common that the objects of one informer have.
type Options struct {
	// Namespace is the one namespace to read, "" for all.
	Namespace string
	// Tweak changes the options of every list and watch; nil leaves them.
	Tweak func(*metav1.ListOptions)
	// Transform replaces objects before they are cached; nil leaves them.
	Transform cache.TransformFunc
	// AtMost limits what objects have in common, and Among is the table of those that share
	// with each other; nil is one of the informer's own.
	AtMost source.Sharing
	Among  *source.Table
	// Drop has the fields that are left out.
	Drop Drop
}

// sharing says what the objects of a resource have in common.
func (o *Options) sharing(gvr schema.GroupVersionResource) listwatch.Sharing {
	among := o.Among
	if among == nil {
		among = new(source.Table)
	}
	return listwatch.SharingFor(source.Resource{Group: gvr.Group, Name: gvr.Resource}, o.AtMost, among)
}
