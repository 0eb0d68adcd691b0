package controller

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/lead/written"
	"github.com/tidings-go/tidings/source"
)

// mostAskAgain bounds the time between two questions about a version that caches have not reached, which
// doubles, and that of one question.
const mostAskAgain = 5 * time.Minute

// unreached is a version that an informer has not reached in a namespace.
type unreached[T tidings.Object] struct {
	*caches.Informer
	namespace string
	want      barrier.Last
}

// isOver reports whether the version is not waited for any more.
func (u unreached[T]) isOver() bool {
	reached, held := u.Reached(u.namespace)
	return !held || u.Removed.Err() != nil || u.Over() != nil ||
		!u.want.Unknown && (u.want.Version == "" || written.Reaches(reached, u.want.Version))
}

// holdsUp reports whether calls wait for the version. They do without an optional informer that fails.
func (u unreached[T]) holdsUp() bool { return !u.IsAbsent(u.namespace) && !u.isOver() }

// heldUpBy returns the namespace whose keys wait for a version; "" if all do, as the call for any key may
// have written to a secondary. They do not wait for a namespace of others that cannot be read.
func (c *Controller[T]) heldUpBy(u unreached[T]) string {
	if u.Number > 0 && !u.IsDivided() && !u.IsCutOff(u.namespace) {
		return ""
	}
	return c.informers.NeededBy(u.Informer, u.namespace)
}

// lagging are versions that informers have not reached, and that hold up calls. Each question to the server
// has a goroutine of its own, so that one which hangs holds up no other.
type lagging[T tidings.Object] struct {
	// behind has the versions. Only update changes it.
	behind atomic.Pointer[[]unreached[T]]

	mu     sync.Mutex // guards the rest
	asked  time.Time
	again  time.Duration // after asked
	asking map[unreached[T]]bool
	added  []unreached[T]
	over   []unreached[T] // the server has shown that they are not to be waited for
}

// add adds versions, for the next update.
func (l *lagging[T]) add(all ...unreached[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.added = append(l.added, all...)
}

// all returns the versions at the last update.
func (l *lagging[T]) all() []unreached[T] {
	if behind := l.behind.Load(); behind != nil {
		return *behind
	}
	return nil
}

// update drops the versions that are not waited for any more, and has the server asked from time to time.
func (l *lagging[T]) update(r *run[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	behind := slices.DeleteFunc(slices.Concat(l.all(), l.added), func(u unreached[T]) bool {
		return u.isOver() || slices.Contains(l.over, u)
	})
	l.added, l.over = nil, nil
	l.behind.Store(&behind)
	if len(behind) == 0 {
		l.again = 0
	}
	if len(behind) == 0 || time.Since(l.asked) < l.again {
		return
	}
	l.asked, l.again = time.Now(), min(max(barrier.AskAfter, 2*l.again), mostAskAgain)
	for _, u := range behind {
		if !l.asking[u] && !u.IsAbsent(u.namespace) && u.want.Until <= r.barrier.Now() {
			l.ask(r, u)
		}
	}
}

// ask has the server asked about a version. The lock is held.
func (l *lagging[T]) ask(r *run[T], u unreached[T]) {
	if l.asking == nil {
		l.asking = map[unreached[T]]bool{}
	}
	l.asking[u] = true
	r.goes("asker of versions", func() {
		var found []unreached[T]
		isOver := u.isFoundOver(r, &found)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.added = append(l.added, found...)
		if delete(l.asking, u); isOver {
			l.over = append(l.over, u)
		}
	})
}

// isFoundOver reports whether the server shows that the version is not to be waited for: it was set back to
// an older one. Otherwise the informer lists again, as no event may come. In place of a version that is not
// known it adds the server's to found.
func (u unreached[T]) isFoundOver(r *run[T], found *[]unreached[T]) bool {
	ctx, cancel := context.WithTimeout(r.ctx, mostAskAgain)
	defer cancel()
	gvr, server := u.GVR(), r.c.o.Guard
	newest, err := written.Newest(u, u.namespace, func() (string, error) {
		return server.Newest(ctx, gvr, u.namespace)
	})
	if err != nil {
		return false
	}
	if u.want.Unknown {
		r.barrier.Know(gvr.GroupResource(), u.want.Until, newest)
		*found = append(*found, unreached[T]{u.Informer, u.namespace, barrier.Last{Version: caches.Newer(u.want.Version, newest)}})
		return true
	}
	if !written.Reaches(newest, u.want.Version) {
		return true
	}
	u.CatchUp(source.Key(u.namespace, ""), u.want.Version)
	return false
}
