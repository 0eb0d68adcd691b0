package cache

import (
	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

// SharingOptions select the parts that the cached objects of informers share in memory. The
// zero value is the default.
type SharingOptions struct {
	// AtMost limits the parts; 0 means tidings.ShareAll.
	AtMost tidings.Sharing
	// Among is the table of the informers that share with each other; nil means that each
	// informer has a table of its own.
	Among *source.Table
}

// WithSharing returns lw with a choice of the parts that the objects of its informers share in
// memory. The cached objects are equal to those of lw in any case. By default, an informer caches
// objects of its own, which share equal parts, and does not write to the objects of lw. With
// tidings.ShareNothing it caches the pointers that lw yields or a transform returns.
//
//	lw = cache.WithSharing(lw, cache.SharingOptions{Among: table})
//	informer := cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
func WithSharing(lw ListerWatcher, o SharingOptions) ListerWatcher {
	mustHave(lw, "WithSharing")
	listwatch.CheckSharing("cache.WithSharing", o.AtMost)
	return listwatch.WithSharing(lw, listwatch.Sharing{AtMost: o.AtMost, Among: o.Among})
}
