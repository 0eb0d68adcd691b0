package controller

import (
	"slices"
	"strings"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/lead/written"
	"github.com/tidings-go/tidings/internal/see/fielddiff"
)

// changed queues the key of a changed object of the controller.
func (r *run[T]) changed(f *follower[T], e tidings.Event[T]) {
	ch := changeOf(f, e)
	r.noteEvent(&ch)
	if r.rewrites.watches(ch.objectID) {
		noteState(r, f, ch, e)
	}
	if r.lives.changed(ch.key, e) {
		r.queue.Wake(ch.key)
	}
	if !r.isServed(ch.key) {
		return
	}
	if e.Type == tidings.Updated && !e.Resync {
		if r.ignores(f, e.Old, e.New) {
			return
		}
		ch.isNew = ch.writer == "" && r.asksAnew(ch.key, e.Old, e.New)
	}
	ch.why = why{key: ch.key, cause: causeOf(e), manager: managerOf(e.Object())}
	r.addServed(ch.key, &ch)
}

// changeOf returns the state that an event has brought.
func changeOf[T, S tidings.Object](f *follower[T], e tidings.Event[S]) change {
	object := e.Object()
	ch := change{objectID: objectID{f.number, e.Key()}, version: object.GetResourceVersion()}
	if e.Type == tidings.Deleted {
		ch.deleted = string(object.GetUID())
		if e.Tombstone { // its version is not that of the end
			ch.version = ""
		}
	}
	return ch
}

// ignores reports whether an update needs no call.
func (r *run[T]) ignores(f *follower[T], before, after T) (ignored bool) {
	ignore := r.c.o.Ignore
	if ignore == nil || written.Another(before.GetUID(), after.GetUID()) ||
		!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) {
		return false
	}
	defer func() {
		if value := recover(); value != nil {
			f.failures.add("Options.Ignore", keyOf(after), value)
			ignored = false
		}
	}()
	return ignore(before, after)
}

// asksAnew reports whether an update of others changes the desired state, so that earlier
// failures no longer count. It compares the generation; for a type without one, a change of more
// than the status counts.
func (r *run[T]) asksAnew(key string, before, after T) bool {
	if written.Another(before.GetUID(), after.GetUID()) || before.GetGeneration() != after.GetGeneration() {
		return true
	}
	if after.GetGeneration() != 0 || r.queue.Failures(key) == 0 {
		return false
	}
	return slices.ContainsFunc(fielddiff.Diff(before, after), func(c fielddiff.Change) bool {
		return !slices.ContainsFunc(bookkeeping, func(field string) bool {
			return strings.HasPrefix(c.Path, field)
		})
	})
}

// bookkeeping has the fields that are no part of the desired state.
var bookkeeping = []string{"status", "metadata.managedFields", "metadata.resourceVersion"}

// noteEvent records a change that an informer's cache holds, and finds its writer.
func (r *run[T]) noteEvent(ch *change) { r.wake(r.barrier.event(ch)) }

// add requests a call of a key because of a change, if the key is served.
func (r *run[T]) add(key string, ch *change) {
	if r.isServed(key) {
		r.addServed(key, ch)
	}
}

func (r *run[T]) addServed(key string, ch *change) {
	if current, ok := r.c.callings.Load(key); ok {
		ch.came = r.barrier.now()
		if current.(*calling).keep(r, *ch) {
			return
		}
	}
	if ch.writer == "" && r.barrier.records.Load() != ch.records { // a call has ended meanwhile
		r.noteEvent(ch)
	}
	r.addAll(key, []change{*ch})
}

// addAll requests a call of a key because of changes.
func (r *run[T]) addAll(key string, changes []change) {
	for _, ch := range changes {
		if ch.isNew && ch.writer == "" {
			r.queue.Reset(key)
		}
		a := queue.Ask[why]{Reason: ch.why, Echo: ch.writer == key}
		a.Reason.own = ch.writer != ""
		if ch.why.cause == Initial || ch.why.cause == Resync {
			a.Band = queue.Background
		}
		if ch.writer != "" {
			r.writes.add(key, ch.sent)
		}
		r.queue.Add(key, a)
	}
}
