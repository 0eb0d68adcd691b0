package cache

import (
	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

// SharingOptions say what the cached objects of informers have in common in memory. The
// zero value is what informers do by themselves.
type SharingOptions struct {
	// AtMost limits it; 0 means tidings.ShareAll.
	AtMost tidings.Sharing
	// Among is the table of the informers that share with each other; nil means that each
	// informer shares among its own objects.
	Among *source.Table
}

// WithSharing returns lw with a choice of what the objects of informers that are made of it
// have in common in memory. Whatever it is, the objects are equal to those that lw yields.
// By itself, an informer of this package shares what its objects have in common: it caches
// an object of its own, which has the parts that others have, too, and writes nothing to
// those that lw yields. With tidings.ShareNothing it caches the very pointers that lw
// yields or a transform returns.
//
//	NewInformer: func(lw cache.ListerWatcher, obj runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
//		return cache.NewSharedIndexInformer(cache.WithSharing(lw, cache.SharingOptions{Among: table}), obj, resync, indexers)
//	}
func WithSharing(lw ListerWatcher, o SharingOptions) ListerWatcher {
	mustHave(lw, "WithSharing")
	listwatch.CheckSharing("cache.WithSharing", o.AtMost)
	return listwatch.WithSharing(lw, listwatch.Sharing{AtMost: o.AtMost, Among: o.Among})
}
