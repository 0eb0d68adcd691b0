package gate

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/lead/written"
	"github.com/tidings-go/tidings/source"
)

// mostAskAgain bounds the time between two questions about a version that caches have not reached,
// which doubles, and the time of one question.
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

// HoldsUp reports whether calls wait for the version. They do without an optional informer that
// fails.
func (u Behind) HoldsUp() bool { return !u.IsAbsent(u.namespace) && !u.isOver() }

// HeldUpBy returns the namespace whose keys wait for a version; "" if all do, as the call for any
// key may have written to a secondary. They do not wait for a namespace of others that cannot be
// read.
func (g *Gate) HeldUpBy(u Behind) string {
	if u.Number > 0 && !u.HoldsSlots() && !u.IsCutOff(u.namespace) {
		return ""
	}
	return g.Informers.NeededBy(u.Informer, u.namespace)
}

// Waits has the versions that informers have not reached, and that hold up calls. The zero value
// has none.
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

// Update drops the versions that are not waited for any more, and asks the server from time to
// time.
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
	w.asked, w.again = time.Now(), min(max(written.AskAgain, 2*w.again), mostAskAgain)
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

// isFoundOver reports whether the server shows that the version is not to be waited for: it was set
// back to an older one. Otherwise the informer lists again, as no event may come. In place of a
// version that is not known it adds the server's to found.
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
		want := barrier.Last{Version: caches.Newer(u.want.Version, newest)}
		*found = append(*found, Behind{u.Informer, u.namespace, want})
		return true
	}
	if !written.Reaches(newest, u.want.Version) {
		return true
	}
	u.CatchUp(source.Key(u.namespace, ""), u.want.Version)
	return false
}

const (
	// handOverWait bounds the wait of a start for the versions that the last holder of a term has
	// left. Then the keys that need them wait alone.
	handOverWait = 10 * time.Second
	// crashWait bounds the wait for the server's versions if the last holder has left none. It is not
	// known whether there were writes, and a quiet collection shows its version once a minute.
	crashWait = time.Second
	// quietAfter is the time without an event after which an informer that has to reach a version of
	// the last holder is listed.
	quietAfter = 500 * time.Millisecond
)

// Reach waits, bounded, until the caches have reached versions by part; the server's versions, if
// these are not known. It returns the versions that the next owner has to reach too, whether these
// are all, and those that are not reached.
func (g *Gate) Reach(versions map[string]string, known bool) (map[string]string, bool, []Behind) {
	level, crashed := slog.LevelInfo, !known
	if crashed {
		if g.Server == nil {
			return nil, false, nil
		}
		versions, known = g.newest()
		level = slog.LevelDebug
	}
	behind := g.catchUp(versions, crashed)
	var names []string
	for _, u := range behind {
		if !u.IsAbsent(u.namespace) {
			names = append(names, u.Name())
		}
	}
	if len(names) > 0 && g.Context.Err() == nil {
		g.Logger.Log(g.Context, level, "caches have not reached the version that the server had at the "+
			"beginning of the term", "informers", slices.Compact(names))
	}
	if crashed {
		g.leaveOutUnseen(versions)
	}
	return versions, known, behind
}

// leaveOutUnseen removes the server's versions that informers have not seen, or that the next
// owner's may never see: the last changes may be of other resources, or of objects that are not
// selected.
func (g *Gate) leaveOutUnseen(versions map[string]string) {
	for _, f := range g.Informers.All() {
		for _, namespace := range f.Namespaces() {
			part, mayHide := f.Part(namespace), f.Selects() || f.WatchOf(namespace).Sharded
			if reached, _ := f.Reached(namespace); mayHide || !written.Reaches(reached, versions[part]) {
				delete(versions, part)
			}
		}
	}
}

// catchUp waits, bounded, until the informers have reached the versions of their parts. It returns
// those that have not. Unless the last holder has crashed, those that receive nothing meanwhile are
// listed, as no event may come.
func (g *Gate) catchUp(versions map[string]string, crashed bool) (behind []Behind) {
	bound := crashWait
	if !crashed {
		bound = handOverWait
		defer time.AfterFunc(quietAfter, func() { g.listQuiet(versions) }).Stop()
	}
	ctx, cancel := context.WithTimeout(g.Context, bound)
	defer cancel()
	for u := range g.unreached(versions) {
		if u.IsAbsent(u.namespace) || !u.AwaitVersion(ctx, u.namespace, u.want.Version) {
			behind = append(behind, u)
		}
	}
	return behind
}

// listQuiet lists the informers that have to reach versions and receive nothing.
func (g *Gate) listQuiet(versions map[string]string) {
	for u := range g.unreached(versions) {
		if u.IsSilent(u.namespace, quietAfter) {
			u.CatchUp(source.Key(u.namespace, ""), u.want.Version)
		}
	}
}

// unreached yields the parts of informers that have not reached their versions.
func (g *Gate) unreached(versions map[string]string) iter.Seq[Behind] {
	return func(yield func(Behind) bool) {
		for _, f := range g.Informers.All() {
			for _, namespace := range f.Namespaces() {
				u := Behind{f, namespace, barrier.Last{Version: versions[f.Part(namespace)]}}
				if !u.isOver() && !yield(u) {
					return
				}
			}
		}
	}
}

// newest returns the server's version for each informer that calls wait for, by part, and whether
// all of them are known.
func (g *Gate) newest() (versions map[string]string, known bool) {
	ctx, cancel := context.WithTimeout(g.Context, crashWait)
	defer cancel()
	versions, known = map[string]string{}, true
	for _, f := range g.Informers.All() {
		gvr, namespaces := f.GVR(), slices.DeleteFunc(f.Namespaces(), f.IsAbsent)
		if gvr.Empty() || len(namespaces) == 0 {
			continue
		}
		version, err := "", error(nil)
		for _, namespace := range namespaces { // each tells the version of the whole server
			version, err = written.Newest(f, namespace, func() (string, error) {
				return g.Server.Newest(ctx, gvr, namespace)
			})
			if err == nil {
				break
			}
		}
		if err != nil {
			g.Logger.Info("the version of a resource is not known, and is not waited for",
				"informer", f.Name(), "error", err)
			known = known && f.Optional
			continue
		}
		for _, namespace := range namespaces {
			versions[f.Part(namespace)] = version
		}
	}
	return versions, known
}
