package gate

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/lead/written"
	"github.com/tidings-go/tidings/source"
)

// mostAskAgain bounds the time between two questions about a version that caches have not reached, which
// doubles, and that of one question.
const mostAskAgain = 5 * time.Minute

// Behind is an informer that has not reached a version in a namespace.
type Behind struct {
	*caches.Informer
	namespace string
	want      barrier.Last
}

// isOver reports whether the version is not waited for any more.
func (u Behind) isOver() bool {
	reached, held := u.Reached(u.namespace)
	return !held || u.Removed.Err() != nil || u.Over() != nil ||
		!u.want.Unknown && (u.want.Version == "" || written.Reaches(reached, u.want.Version))
}

// HoldsUp reports whether calls wait for the version. They do without an optional informer that fails.
func (u Behind) HoldsUp() bool { return !u.IsAbsent(u.namespace) && !u.isOver() }

// HeldUpBy returns the namespace whose keys wait for a version; "" if all do, as the call for any key may
// have written to a secondary. They do not wait for a namespace of others that cannot be read.
func (g *Gate) HeldUpBy(u Behind) string {
	if u.Number > 0 && !u.IsDivided() && !u.IsCutOff(u.namespace) {
		return ""
	}
	return g.Informers.NeededBy(u.Informer, u.namespace)
}

// Waits has the versions that informers have not reached, and that hold up calls. The zero value has none.
type Waits struct {
	// behind has the versions. Only Update changes it.
	behind atomic.Pointer[[]Behind]

	mu     sync.Mutex // guards the rest
	asked  time.Time
	again  time.Duration // after asked
	asking map[Behind]bool
	added  []Behind
	over   []Behind // the server has shown that they are not to be waited for
}

// Add adds versions, for the next Update.
func (w *Waits) Add(all ...Behind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.added = append(w.added, all...)
}

// All returns the versions at the last Update.
func (w *Waits) All() []Behind {
	if behind := w.behind.Load(); behind != nil {
		return *behind
	}
	return nil
}

// Update drops the versions that are not waited for any more, and asks the server from time to time.
func (g *Gate) Update(w *Waits) {
	w.mu.Lock()
	defer w.mu.Unlock()
	behind := slices.DeleteFunc(slices.Concat(w.All(), w.added), func(u Behind) bool {
		return u.isOver() || slices.Contains(w.over, u)
	})
	w.added, w.over = nil, nil
	w.behind.Store(&behind)
	if len(behind) == 0 {
		w.again = 0
	}
	if len(behind) == 0 || time.Since(w.asked) < w.again {
		return
	}
	w.asked, w.again = time.Now(), min(max(barrier.AskAfter, 2*w.again), mostAskAgain)
	for _, u := range behind {
		if !w.asking[u] && !u.IsAbsent(u.namespace) && u.want.Until <= g.Barrier.Now() {
			g.askLocked(w, u)
		}
	}
}

// askLocked asks the server about a version.
func (g *Gate) askLocked(w *Waits, u Behind) {
	if w.asking == nil {
		w.asking = map[Behind]bool{}
	}
	w.asking[u] = true
	g.Go("asker of versions", func() {
		var found []Behind
		isOver := g.isFoundOver(u, &found)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.added = append(w.added, found...)
		if delete(w.asking, u); isOver {
			w.over = append(w.over, u)
		}
	})
}

// isFoundOver reports whether the server shows that the version is not to be waited for: it was set back to
// an older one. Otherwise the informer lists again, as no event may come. In place of a version that is not
// known it adds the server's to found.
func (g *Gate) isFoundOver(u Behind, found *[]Behind) bool {
	ctx, cancel := context.WithTimeout(g.Context, mostAskAgain)
	defer cancel()
	gvr, server := u.GVR(), g.Server
	newest, err := written.Newest(u, u.namespace, func() (string, error) {
		return server.Newest(ctx, gvr, u.namespace)
	})
	if err != nil {
		return false
	}
	if u.want.Unknown {
		g.Barrier.Know(gvr.GroupResource(), u.want.Until, newest)
		*found = append(*found, Behind{u.Informer, u.namespace, barrier.Last{Version: caches.Newer(u.want.Version, newest)}})
		return true
	}
	if !written.Reaches(newest, u.want.Version) {
		return true
	}
	u.CatchUp(source.Key(u.namespace, ""), u.want.Version)
	return false
}
