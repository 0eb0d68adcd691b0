package controller

import (
	"context"
	"fmt"
	"sync"

	"github.com/tidings-go/tidings"
)

// readsKey is the key of the reads in the context of a call.
type readsKey struct{}

// reads are the listers of a call.
type reads struct {
	primary, lister any // the informer of the objects, and its frozen lister
	follows         func(informer any) bool

	mu      sync.Mutex  // guards listers
	listers map[any]any // the frozen listers of the secondaries, by informer
}

// Read returns the lister with which a call reads the objects of one of its controller's informers:
// all reads of a call come from one state of each informer, which shows the writes of the earlier
// calls of its key. ctx is the context of the call. It panics for any other context, and for an
// informer that is no secondary of the controller: calls do not wait for that one.
func Read[S tidings.Object](ctx context.Context, informer *tidings.Informer[S]) tidings.Lister[S] {
	r, ok := ctx.Value(readsKey{}).(*reads)
	if !ok {
		panic("controller: Read: the context is not that of a call")
	}
	if r.primary == any(informer) {
		return r.lister.(tidings.Lister[S])
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	lister, ok := r.listers[informer]
	if !ok {
		if !r.follows(informer) {
			panic(fmt.Sprintf("controller: Read: informer %s is no secondary of the controller: "+
				"add it to Options.Secondaries, with Reads if its changes need no call",
				informer.Name()))
		}
		lister = informer.Lister().Frozen()
		if r.listers == nil {
			r.listers = map[any]any{}
		}
		r.listers[informer] = lister
	}
	return lister.(tidings.Lister[S])
}
