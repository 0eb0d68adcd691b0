package gate

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/internal/lead/written"
	"github.com/tidings-go/tidings/source"
)

const (
	// handOverWait bounds the wait of a start for the versions that the last holder of a term has left.
	// Then the keys that need them wait alone.
	handOverWait = barrier.AskAfter
	// crashWait bounds the wait for the server's versions if the last holder has left none. It is
	// not known whether there were writes, and a quiet collection shows its version once a
	// minute.
	crashWait = time.Second
	// quietAfter is the time without an event after which an informer that has to reach a version of the
	// last holder is listed.
	quietAfter = 500 * time.Millisecond
)

// Reach waits, bounded, until the caches have reached versions by part; the server's versions,
// if these are not known. It returns the versions that the next owner has to reach too, whether
// these are all, and those that are not reached.
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

// leaveOutUnseen removes the server's versions that informers have not seen, or that those of the next
// owner may never see: the last changes may be of other resources, or of objects that are not selected.
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

// catchUp waits, bounded, until the informers have reached the versions of their parts. It returns those
// that have not. Unless the last holder has crashed, those that receive nothing meanwhile are listed, as no
// event may come.
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

// newest returns the server's version for each informer that calls wait for, by part, and whether all
// of them are known.
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
