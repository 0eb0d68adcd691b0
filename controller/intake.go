package controller

import (
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/controller/internal/fights"
	"github.com/tidings-go/tidings/controller/internal/incarnation"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/lead/written"
	"github.com/tidings-go/tidings/internal/see/fielddiff"
	"github.com/tidings-go/tidings/source"
)

// intake turns the events of a run into queued keys:
//
//  1. The barrier finds the writer of the event, and wakes keys that waited for it.
//  2. Fights and ends of objects are recorded.
//  3. The keys that the change leads to are found, before anything is folded (C2).
//  4. A key that is in a call keeps the change until the call ends, as only then it is known
//     whether the call made it. Any other key is queued.
type intake struct {
	inCall      *sync.Map // the keeper of each key that is with a worker
	queue       *queue.Queue[reason]
	barrier     *barrier.Barrier
	fights      *fights.Detector
	isServed    func(key string) bool // changes of the key lead to calls
	firstWrites firstWrites
}

// keeper is a [call] of any type. keep takes a change until the call ends, and reports whether it
// has.
type keeper interface {
	keep(in *intake, ch *change) bool
}

// primaryIntake is the intake of a controller whose objects are of type T.
type primaryIntake[T tidings.Object] struct {
	intake
	o            *Options[T]
	primary      *tidings.Informer[T]
	incarnations *incarnation.Tracker[T]
}

// reason is a Reason as the queue keeps it.
type reason struct {
	key      string
	manager  unique.Handle[string] // the zero value if it is not known
	informer uint32
	cause    Cause
	own      bool
}

// change is an event that leads to a call of a key.
type change struct {
	barrier.Event
	reason reason
	resets bool // others have changed the desired state: earlier failures of the key do not count
}

// receive tells the barrier and the fights of an event, wakes the keys that have waited for it, and
// returns its change.
func receive[S tidings.Object](in *intake, f *caches.Informer, e tidings.Event[S]) change {
	ch := change{Event: barrier.Event{State: caches.StateOf(f, e)}}
	in.tellBarrier(&ch)
	fights.Event(in.fights, f, ch.State, e)
	return ch
}

// tellBarrier tells the barrier of a change, which sets its writer, and wakes the keys that have
// waited for it.
func (in *intake) tellBarrier(ch *change) {
	for _, key := range in.barrier.Event(&ch.Event) {
		in.queue.Wake(key)
	}
}

// changed queues the key of a changed object of the controller.
func (in *primaryIntake[T]) changed(f *caches.Informer, e tidings.Event[T]) {
	ch := receive(&in.intake, f, e)
	if in.incarnations.Event(ch.Key, e) {
		in.queue.Wake(ch.Key)
	}
	if !in.isServed(ch.Key) {
		return
	}
	if e.Type == tidings.Updated && !e.Resync {
		if ignores(f, "Options.Ignore", in.o.Ignore, e.Old, e.New) {
			return
		}
		ch.resets = ch.Writer == "" && in.asksAnew(ch.Key, e.Old, e.New)
	}
	ch.reason = reason{key: ch.Key, cause: causeOf(e), manager: managerOf(e.Object())}
	in.addServed(ch.Key, &ch)
}

// changedSecondary queues the keys that a change of a secondary object leads to. The keys of the
// state before count as well: an object that had an owner concerns that owner.
func changedSecondary[S tidings.Object](
	in *intake, f *caches.Informer, e tidings.Event[S], m mapper[S], ignore func(old, new S) bool,
) {
	ch := receive(in, f, e)
	switch {
	case e.Initial:
		return // every key is called at the beginning of a run
	case e.Type == tidings.Updated && ignores(f, "Ignore", ignore, e.Old, e.New):
		return
	}
	defer func() {
		if value := recover(); value != nil {
			f.Failures.Add("Maps", ch.Key, value)
		}
	}()
	var keys []string
	add := func(key string) { keys = append(keys, key) }
	if e.Type != tidings.Added {
		m(e.Old, add)
	}
	if e.Type != tidings.Deleted {
		m(e.New, add)
	}
	if len(keys) == 0 {
		return
	}
	ch.reason = reason{
		key: ch.Key, informer: f.Number, cause: causeOf(e), manager: managerOf(e.Object()),
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		if in.isServed(key) {
			in.addServed(key, &ch)
		}
	}
}

// ignores reports whether an update needs no call, by a function of the given name.
func ignores[S tidings.Object](
	f *caches.Informer, name string, ignore func(old, new S) bool, before, after S,
) (ignored bool) {
	if ignore == nil || written.Another(before.GetUID(), after.GetUID()) ||
		!before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp()) {
		return false
	}
	defer func() {
		if value := recover(); value != nil {
			f.Failures.Add(name, keyOf(after), value)
			ignored = false
		}
	}()
	return ignore(before, after)
}

// asksAnew reports whether an update of others changes the desired state, so that earlier failures
// no longer count. It compares the generation; for a type without one, a change of more than the
// status counts.
func (in *primaryIntake[T]) asksAnew(key string, before, after T) bool {
	if written.Another(before.GetUID(), after.GetUID()) ||
		before.GetGeneration() != after.GetGeneration() {
		return true
	}
	if after.GetGeneration() != 0 || in.queue.Failures(key) == 0 {
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

// addServed requests a call of a key that is served, because of a change.
func (in *intake) addServed(key string, ch *change) {
	if current, ok := in.inCall.Load(key); ok {
		ch.Came = in.barrier.Now()
		if current.(keeper).keep(in, ch) {
			return
		}
	}
	if ch.Writer == "" && in.barrier.IsOutdated(&ch.Event) { // a call has ended meanwhile
		in.tellBarrier(ch)
	}
	in.add(key, ch)
}

// add requests a call of a key because of a change whose writer is known.
func (in *intake) add(key string, ch *change) {
	a := queue.Ask[reason]{Reason: ch.reason, Echo: ch.Writer == key}
	a.Reason.own = ch.Writer != ""
	if ch.reason.cause == Initial || ch.reason.cause == Resync {
		a.Band = queue.Background
	}
	switch {
	case ch.Writer != "":
		in.firstWrites.add(key, ch.Sent)
	case ch.resets:
		in.queue.Reset(key)
	}
	in.queue.Add(key, a)
}

// everything requests a call of every key.
func (in *primaryIntake[T]) everything() {
	for key := range in.primary.Lister().All() {
		if in.isServed(key) {
			in.queue.Add(key, queue.Ask[reason]{Band: queue.Background, Reason: reason{cause: Everything}})
		}
	}
}

// addHandler adds a handler of a controller, which loses no change, however long its backlog is.
func addHandler[S tidings.Object](
	informer *tidings.Informer[S], controller string, resync time.Duration,
	handle func(tidings.Event[S]),
) (*tidings.Registration, error) {
	o := tidings.HandlerOptions{
		Name: "controller " + controller, Policy: tidings.PolicyUnbounded, Resync: resync,
	}
	return informer.AddHandler(tidings.HandlerFunc[S](func(e tidings.Event[S]) {
		if !e.Moved { // the object exists, and another process calls for it
			handle(e)
		}
	}), o)
}

func causeOf[S tidings.Object](e tidings.Event[S]) Cause {
	switch {
	case e.Initial:
		return Initial
	case e.Resync:
		return Resync
	case e.Type == tidings.Added:
		return Added
	case e.Type == tidings.Deleted:
		return Deleted
	}
	return Updated
}

// keyOf returns the key of an object.
func keyOf(object tidings.Object) string {
	return source.Key(object.GetNamespace(), object.GetName())
}

// managerOf returns the field manager of the last write of an object.
func managerOf(object tidings.Object) (manager unique.Handle[string]) {
	if name := fights.LastManager(object); name != "" {
		manager = unique.Make(name)
	}
	return manager
}

// textOf returns the text of a handle, "" of the zero value.
func textOf(handle unique.Handle[string]) string {
	if handle == (unique.Handle[string]{}) {
		return ""
	}
	return handle.Value()
}

// firstWrites has, for each key that own writes have queued, the time at which the first of these
// writes was sent. The times are as Barrier.Now returns them.
type firstWrites struct {
	mu   sync.Mutex // guards sent
	sent map[string]time.Duration
}

// add records an own write that leads to a call of a key.
func (f *firstWrites) add(key string, sent time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sent == nil {
		f.sent = map[string]time.Duration{}
	}
	if earlier, ok := f.sent[key]; !ok || sent < earlier {
		f.sent[key] = sent
	}
}

// take removes a key, whose call begins.
func (f *firstWrites) take(key string) (sent time.Duration, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sent, ok = f.sent[key]
	delete(f.sent, key)
	return sent, ok
}
