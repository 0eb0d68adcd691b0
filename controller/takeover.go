package controller

import (
	"context"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/internal/engine/slot"
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
	// outcomeWait bounds the wait for the versions of the last writes at the end of a term. The
	// server is asked a second after its answer to a write that failed.
	outcomeWait = 2 * time.Second
)

// left returns the versions that the last holder left. Without a HandOver method, has is false and
// known is true.
func (r *run[T]) left() (versions map[string]string, known, has bool) {
	t, has := r.term.(interface {
		HandOver() (map[string]string, bool)
	})
	if !has {
		return nil, true, false
	}
	versions, known = t.HandOver()
	return versions, known, true
}

// takeOver waits, bounded, until the caches show the writes of the last holder of the term.
func (r *run[T]) takeOver() {
	left, known, has := r.left()
	if !has {
		return
	}
	versions, all, behind := r.reach(left, known)
	if known && r.c.o.Guard != nil { // after a crash it is not known whether anything was written
		r.lagging.add(behind...)
	}
	r.barrier.Reached(barrier.NoSlot, versions) // the next owner has to reach them too
	r.tookOver = all && r.ctx.Err() == nil
}

// reach waits, bounded, until the caches have reached versions by part; the server's versions,
// if these are not known. It returns the versions that the next owner has to reach too, whether
// these are all, and those that are not reached.
func (r *run[T]) reach(versions map[string]string, known bool) (map[string]string, bool, []unreached[T]) {
	level, crashed := slog.LevelInfo, !known
	if crashed {
		if r.c.o.Guard == nil {
			return nil, false, nil
		}
		versions, known = r.newest()
		level = slog.LevelDebug
	}
	behind := r.catchUp(versions, crashed)
	var names []string
	for _, u := range behind {
		if !u.IsAbsent(u.namespace) {
			names = append(names, u.Name())
		}
	}
	if len(names) > 0 && r.ctx.Err() == nil {
		r.c.o.Logger.Log(r.ctx, level, "caches have not reached the version that the server had at the "+
			"beginning of the term", "informers", slices.Compact(names))
	}
	if crashed {
		r.leaveOutUnseen(versions)
	}
	return versions, known, behind
}

// leaveOutUnseen removes the server's versions that informers have not seen, or that those of the next
// owner may never see: the last changes may be of other resources, or of objects that are not selected.
func (r *run[T]) leaveOutUnseen(versions map[string]string) {
	for _, f := range r.c.informers.All() {
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
func (r *run[T]) catchUp(versions map[string]string, crashed bool) (behind []unreached[T]) {
	bound := crashWait
	if !crashed {
		bound = handOverWait
		defer time.AfterFunc(quietAfter, func() { r.listQuiet(versions) }).Stop()
	}
	ctx, cancel := context.WithTimeout(r.ctx, bound)
	defer cancel()
	for u := range r.unreached(versions) {
		if u.IsAbsent(u.namespace) || !u.AwaitVersion(ctx, u.namespace, u.want.Version) {
			behind = append(behind, u)
		}
	}
	return behind
}

// listQuiet lists the informers that have to reach versions and receive nothing.
func (r *run[T]) listQuiet(versions map[string]string) {
	for u := range r.unreached(versions) {
		if u.IsSilent(u.namespace, quietAfter) {
			u.CatchUp(source.Key(u.namespace, ""), u.want.Version)
		}
	}
}

// unreached yields the parts of informers that have not reached their versions.
func (r *run[T]) unreached(versions map[string]string) iter.Seq[unreached[T]] {
	return func(yield func(unreached[T]) bool) {
		for _, f := range r.c.informers.All() {
			for _, namespace := range f.Namespaces() {
				u := unreached[T]{f, namespace, barrier.Last{Version: versions[f.Part(namespace)]}}
				if !u.isOver() && !yield(u) {
					return
				}
			}
		}
	}
}

// newest returns the server's version for each informer that calls wait for, by part, and whether all
// of them are known.
func (r *run[T]) newest() (versions map[string]string, known bool) {
	ctx, cancel := context.WithTimeout(r.ctx, crashWait)
	defer cancel()
	versions, known = map[string]string{}, true
	for _, f := range r.c.informers.All() {
		gvr, namespaces := f.GVR(), slices.DeleteFunc(f.Namespaces(), f.IsAbsent)
		if gvr.Empty() || len(namespaces) == 0 {
			continue
		}
		version, err := "", error(nil)
		for _, namespace := range namespaces { // each tells the version of the whole server
			version, err = written.Newest(f, namespace, func() (string, error) {
				return r.c.o.Guard.Newest(ctx, gvr, namespace)
			})
			if err == nil {
				break
			}
		}
		if err != nil {
			r.c.o.Logger.Info("the version of a resource is not known, and is not waited for",
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

// handOver gives the newest versions that calls have written to the term, for the next holder, and those
// that the last holder has left. The version of a delete is known when the cache shows it, and that of a
// write without an answer when the server was asked. The term receives nil if that takes longer than
// outcomeWait, or if the last holder has left no versions and the run has ended before it had those of
// the server.
func (r *run[T]) handOver() {
	t, ok := r.term.(interface{ Reached(map[string]string) })
	if !ok || r.term.Err() != nil {
		return
	}
	left, known, _ := r.left()
	if !known && !r.tookOver {
		t.Reached(nil)
		return
	}
	r.barrier.Reached(barrier.NoSlot, left)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), outcomeWait)
	defer cancel()
	ticker := time.NewTicker(outcomeWait / 100)
	defer ticker.Stop()
	for {
		open := r.barrier.Unversioned()
		if len(open) == 0 {
			t.Reached(r.barrier.Written(slot.Set{}))
			return
		}
		for _, key := range open {
			r.asker.About(ctx, key)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			r.c.o.Logger.Info("the outcome of writes is not known at the end of the term: the next "+
				"holder asks the server what it has", "keys", len(open))
			t.Reached(nil)
			return
		}
	}
}
