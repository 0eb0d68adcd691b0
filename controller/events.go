package controller

import (
	"slices"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/controller/internal/fights"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/lead/written"
	"github.com/tidings-go/tidings/internal/see/fielddiff"
	"github.com/tidings-go/tidings/source"
)

// changed queues the key of a changed object of the controller.
func (r *run[T]) changed(f *caches.Informer, e tidings.Event[T]) {
	ch := changeOf(f, e)
	r.noteEvent(&ch)
	fights.Event(r.fights, f, ch.State, e)
	if r.incarnations.Event(ch.Key, e) {
		r.queue.Wake(ch.Key)
	}
	if !r.isServed(ch.Key) {
		return
	}
	if e.Type == tidings.Updated && !e.Resync {
		if r.ignores(f, e.Old, e.New) {
			return
		}
		ch.isNew = ch.Writer == "" && r.asksAnew(ch.Key, e.Old, e.New)
	}
	ch.why = why{key: ch.Key, cause: causeOf(e), manager: managerOf(e.Object())}
	r.addServed(ch.Key, &ch)
}

// change is a new state of an object, which leads to a call of a key.
type change struct {
	barrier.Event
	why   why
	isNew bool // if others made it, earlier failures of the key do not count
}

func changeOf[S tidings.Object](f *caches.Informer, e tidings.Event[S]) change {
	return change{Event: barrier.Event{State: caches.StateOf(f, e)}}
}

// ignores reports whether an update needs no call.
func (r *run[T]) ignores(f *caches.Informer, before, after T) (ignored bool) {
	ignore := r.c.o.Ignore
	if ignore == nil || written.Another(before.GetUID(), after.GetUID()) ||
		!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) {
		return false
	}
	defer func() {
		if value := recover(); value != nil {
			f.Failures.Add("Options.Ignore", keyOf(after), value)
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
func (r *run[T]) noteEvent(ch *change) { r.wake(r.barrier.Event(&ch.Event)) }

// add requests a call of a key because of a change, if the key is served.
func (r *run[T]) add(key string, ch *change) {
	if r.isServed(key) {
		r.addServed(key, ch)
	}
}

func (r *run[T]) addServed(key string, ch *change) {
	if current, ok := r.c.callings.Load(key); ok {
		ch.Came = r.barrier.Now()
		if current.(*calling).keep(r, *ch) {
			return
		}
	}
	if ch.Writer == "" && r.barrier.IsOutdated(&ch.Event) { // a call has ended meanwhile
		r.noteEvent(ch)
	}
	r.addAll(key, []change{*ch})
}

// addAll requests a call of a key because of changes.
func (r *run[T]) addAll(key string, changes []change) {
	for _, ch := range changes {
		if ch.isNew && ch.Writer == "" {
			r.queue.Reset(key)
		}
		a := queue.Ask[why]{Reason: ch.why, Echo: ch.Writer == key}
		a.Reason.own = ch.Writer != ""
		if ch.why.cause == Initial || ch.why.cause == Resync {
			a.Band = queue.Background
		}
		if ch.Writer != "" {
			r.writes.add(key, ch.Sent)
		}
		r.queue.Add(key, a)
	}
}

// addHandler adds a handler that loses no change, however long its backlog is.
func addHandler[T, S tidings.Object](
	informer *tidings.Informer[S], r *run[T], f *caches.Informer, handle func(tidings.Event[S]),
) (*tidings.Registration, error) {
	o := tidings.HandlerOptions{
		Name: "controller " + r.c.o.Name, Policy: tidings.PolicyUnbounded,
	}
	if f.Number == 0 {
		o.Resync = r.c.o.Resync
	}
	return informer.AddHandler(tidings.HandlerFunc[S](func(e tidings.Event[S]) {
		if !e.Moved { // the object exists, and another process calls for it
			handle(e)
		}
	}), o)
}

// keyOf returns the key of an object.
func keyOf(object metav1.Object) string {
	return source.Key(object.GetNamespace(), object.GetName())
}

// why is the form in which the queue keeps a reason.
type why struct {
	key      string
	manager  unique.Handle[string] // the zero value if it is not known
	informer uint32
	cause    Cause
	own      bool
}

// textOf returns the text of a handle, "" of the zero value.
func textOf(handle unique.Handle[string]) string {
	if handle == (unique.Handle[string]{}) {
		return ""
	}
	return handle.Value()
}

// managerOf returns the field manager of the last write of an object.
func managerOf(object metav1.Object) (manager unique.Handle[string]) {
	if name := fights.LastManager(object); name != "" {
		manager = unique.Make(name)
	}
	return manager
}
