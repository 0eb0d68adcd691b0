package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/written"
	"github.com/tidings-go/tidings/source"
)

// mostAskAgain bounds the time between two questions about a version that caches have not reached, which
// doubles, and that of one question, which may list much.
const mostAskAgain = 5 * time.Minute

// unreached is a version that an informer has not reached in a namespace.
type unreached[T tidings.Object] struct {
	*follower[T]
	namespace, version string
}

// isOver reports whether the version is not waited for any more.
func (u unreached[T]) isOver() bool {
	reached, held := u.Reached(u.namespace)
	return !held || u.removed.Err() != nil || u.Over() != nil || u.isAbsent(u.namespace) || written.Reaches(reached, u.version)
}

// lagging are versions that informers have not reached, and that hold up calls. One goroutine uses it; each
// question to the server has one of its own, so that one which hangs holds up no other.
type lagging[T tidings.Object] struct {
	behind []unreached[T]
	asked  time.Time
	again  time.Duration // after asked

	mu     sync.Mutex // guards the rest
	asking map[unreached[T]]bool
	over   []unreached[T] // the server has shown that they are not to be waited for
}

// update drops the versions that are not waited for any more, and has the server asked from time to time.
func (l *lagging[T]) update(r *run[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.behind = slices.DeleteFunc(l.behind, func(u unreached[T]) bool {
		return u.isOver() || slices.Contains(l.over, u)
	})
	l.over = nil
	if len(l.behind) == 0 {
		l.again = 0
	}
	if len(l.behind) == 0 || time.Since(l.asked) < l.again {
		return
	}
	l.asked, l.again = time.Now(), min(max(askAfter, 2*l.again), mostAskAgain)
	for _, u := range l.behind {
		if !l.asking[u] {
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
		isOver := u.isFoundOver(r.ctx, r.c.o.Guard)
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(l.asking, u); isOver {
			l.over = append(l.over, u)
		}
	})
}

// isFoundOver reports whether the server shows that the version is not to be waited for: it was set back to
// an older one, or the cache is as new as it. Otherwise the informer begins its watch anew.
func (u unreached[T]) isFoundOver(ctx context.Context, server *Guard) bool {
	ctx, cancel := context.WithTimeout(ctx, mostAskAgain)
	defer cancel()
	gvr := u.resource()
	newest, err := written.Newest(u, u.namespace, func() (string, error) {
		return server.Newest(ctx, gvr, u.namespace)
	})
	if err != nil {
		return false
	}
	if !written.Reaches(newest, u.version) {
		return true
	}
	isNew, err := written.IsNew(ctx, server, u, gvr, u.namespace)
	if err == nil && !isNew {
		u.SuspectWatch(source.Key(u.namespace, ""), "", "")
	}
	return isNew
}
