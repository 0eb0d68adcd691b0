package reflector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/source"
)

var (
	// errSlotsCame is a list or a watch that began before slots came, so that it may lack their
	// objects.
	errSlotsCame = errors.New("slots came after the list or the watch had begun")
	// errOlderList is a list of slots before the version that the watch had reached when it was
	// asked for.
	errOlderList = tornError("the server listed an older state than the watch has reached")
	// errNeedless ends the list of slots: Run has handed on a list with their objects, or that the
	// server has no such resource, or the slots have gone.
	errNeedless = errors.New("the list of slots is not needed any more")
)

// filling is how a reflector comes to the objects of slots that are held: by a list of Run, or by a
// list of these slots beside the watch, on the goroutine of fillSlots. Each held slot is in one state:
//
//	state    event                            next state
//	lacking  a list of it begins              listing
//	listing  the list is handed on            filled
//	listing  the list fails                   lacking, and is listed again after a wait
//	lacking, listing: a list of Run, begun
//	         after it came, is handed on      filled
//	any      it goes                          not held
//	not held it comes                         lacking
//
// Before the first list of Run nothing but that list can fill a slot. The watch brings the changes of
// a slot in every state.
type filling struct {
	mu      sync.Mutex    // guards the rest, and comes after Reflector.handingOn
	changed chan struct{} // closed at the next change of the rest; nil if nobody waits for it

	listable bool     // a list of Run was handed on, and the server had the resource then
	filled   slot.Set // by lists; it may have slots that are not held
	ended    bool     // Run has ended

	// The rest describes the list of slots that runs.

	wanted slot.Set                // its slots, without those that have gone since
	cancel context.CancelCauseFunc // ends it; nil between lists
	// changes maps the keys of objects that the watch has brought or ended since it began to their
	// versions.
	changes map[string]string

	failures int    // of lists of slots, in a row
	reported uint64 // failures that Merge returns
	err      error  // the last failure; nil after a list
	// listDue demands a list of Run: that of slots was older than the reached version.
	listDue bool

	// newerUntil is the version of a list of slots that the watch has not reached, "" if it has. Until
	// then newer maps the keys of its objects to their versions, if the cached ones may have none, so
	// that the queue cannot tell a state from an older one.
	newerUntil string
	newer      map[string]string
}

// wakeLocked wakes everything that waits for a change.
func (f *filling) wakeLocked() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// changeLocked returns a channel that is closed at the next change.
func (f *filling) changeLocked() <-chan struct{} {
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	return f.changed
}

// lackingLocked returns the slots that are held and not filled. By namespace, the partition of one has
// objects in one slot.
func (r *Reflector[T]) lackingLocked() slot.Set {
	f := &r.filling
	if !f.listable {
		return slot.Set{}
	}
	lacking := r.held().Minus(f.filled)
	if namespace := strings.TrimSuffix(r.o.Partition, "/"); namespace != "" && r.o.Slots.Key() == slot.Namespace {
		lacking = lacking.And(slot.Of(slot.Namespace.Of("", namespace)))
	}
	return lacking
}

// lacking returns the number of held slots whose objects are not listed yet.
func (r *Reflector[T]) lacking() int {
	if r.o.Slots == nil {
		return 0
	}
	r.filling.mu.Lock()
	defer r.filling.mu.Unlock()
	return r.lackingLocked().Len()
}

// Merge returns when the queue has the objects of slots that are held, or the next list will have
// them: before the first list, and after the end of Run. They are listed beside the watch, which goes
// on. The list goes on after the end of ctx, and is made again after failures, until it succeeds or
// the slots have gone. Merge returns a failure that the next list is unlikely to mend, or the eighth
// in a row.
func (r *Reflector[T]) Merge(ctx context.Context, slots slot.Set) error {
	f := &r.filling
	f.mu.Lock()
	reported := f.reported
	f.wakeLocked() // fillSlots does not know of slots that come
	for {
		needed, err, changed := r.lackingLocked(), f.err, f.changeLocked()
		if r.o.Resumes && f.filled.IsEmpty() && !f.listable { // until its first list
			needed = r.held()
		}
		needed = needed.And(slots)
		switch {
		case f.ended || needed.IsEmpty():
			f.mu.Unlock()
			return nil
		case f.reported > reported:
			f.mu.Unlock()
			return err
		}
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			if err == nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
		}
		f.mu.Lock()
	}
}

// Leave returns when the events that were decoded before are handed on. Those of slots that have gone
// by now, which these must be, are not handed on afterwards. An error is that of the context.
func (r *Reflector[T]) Leave(ctx context.Context, slots slot.Set) error {
	if err := r.handingOn.acquire(ctx); err != nil {
		return err
	}
	defer r.handingOn.release()
	f := &r.filling
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filled = f.filled.Minus(slots)
	if f.wanted = f.wanted.Minus(slots); f.cancel != nil && f.wanted.IsEmpty() {
		f.cancel(errNeedless)
	}
	f.wakeLocked()
	return nil
}

// listed records that a list of Run was handed on, with the objects of the held slots, or that the
// server has no such resource: then slots that come need no list.
func (f *filling) listed(held slot.Set, missing bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.listable, f.filled, f.listDue = !missing, held, false
	f.newer, f.newerUntil = nil, ""
	if f.cancel != nil {
		f.cancel(errNeedless)
	}
	f.wakeLocked()
}

// end records that Run has ended.
func (f *filling) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.wakeLocked()
}

// needsList reports whether a list of Run is demanded.
func (f *filling) needsList() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listDue
}

// forgetGone forgets the changes of objects whose slots have gone since it was called last: the ends of
// these objects may have come without a key, or not at all, even if the slots have come back.
func (r *Reflector[T]) forgetGone() {
	if r.o.Slots == nil {
		return
	}
	var gone slot.Set
	gone, r.removes = r.o.Slots.GoneSince(r.removes)
	if gone.IsEmpty() {
		return
	}
	h, key := &r.history, r.o.Slots.Key()
	stays := func(k, uid string) bool {
		return key.In(slot.All().Minus(gone), uid, slot.NamespaceOf(k))
	}
	if !stays(h.last.key, h.last.uid) {
		h.last = lastChange{}
	}
	if !stays(h.doubted.key, h.doubted.uid) {
		h.doubted = lastChange{}
	}
	if !stays(h.absent.key, h.absent.uid) {
		h.absent = absence{}
	}
}

// startFilling starts fillSlots. stop ends it, and returns when it hands on nothing more.
func (r *Reflector[T]) startFilling(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	r.o.Go(func() {
		defer close(ended)
		r.fillSlots(ctx)
	})
	return func() {
		cancel()
		<-ended
		r.filling.end()
	}
}

// fillSlots lists the slots that come, one list after the other, until ctx ends.
func (r *Reflector[T]) fillSlots(ctx context.Context) {
	for {
		running, slots, ok := r.beginFilling(ctx)
		if !ok {
			return
		}
		err := r.fill(running, slots)
		if wait := r.endFilling(ctx, running, err); wait > 0 {
			sleep(ctx, wait) //nolint:errcheck // beginFilling sees its end
		}
	}
}

// sleep waits, or returns why ctx has ended.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// beginFilling waits for slots that are lacking. ok is false if ctx has ended.
func (r *Reflector[T]) beginFilling(ctx context.Context) (running context.Context, slots slot.Set, ok bool) {
	f := &r.filling
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		if slots = r.lackingLocked(); !slots.IsEmpty() && !f.listDue && ctx.Err() == nil {
			running, f.cancel = context.WithCancelCause(ctx)
			f.wanted, f.changes = slots, map[string]string{}
			return running, slots, true
		}
		changed := f.changeLocked()
		f.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		f.mu.Lock()
		if ctx.Err() != nil {
			return nil, slot.Set{}, false
		}
	}
}

// endFilling records the end of a list of slots, and returns how long to wait before the next one.
func (r *Reflector[T]) endFilling(ctx, running context.Context, err error) (wait time.Duration) {
	f := &r.filling
	needless := errors.Is(context.Cause(running), errNeedless)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancel(nil)
	f.cancel, f.wanted, f.changes = nil, slot.Set{}, nil
	defer f.wakeLocked()
	switch {
	case err == nil || needless:
		f.failures, f.err = 0, nil
	case ctx.Err() != nil:
	case errors.Is(err, errOlderList):
		f.err, f.listDue = err, true
		r.noteError(err)
		r.endWatch(errOlderList)
	default:
		end := classify(err, false)
		if f.failures++; !end.transient || end.silent || f.failures >= pageTries {
			f.reported++
		}
		wait, f.err = r.waitAfter(err, end, f.failures)
		r.recorder.slotsFailed(f.failures, f.err, time.Now().Add(wait))
	}
	return wait
}

// endWatch ends the running watch.
func (r *Reflector[T]) endWatch(cause error) {
	if watch := r.running.Load(); watch != nil {
		watch.cancel(cause)
	}
}

// endOutdatedWatch ends the running watch if a list is due, or if it does not select slots that are
// held, so that it is begun anew from its last version. Such a watch hands on nothing more in any
// case: see push.
func (r *Reflector[T]) endOutdatedWatch() {
	watch := r.running.Load()
	switch {
	case watch == nil:
	case r.filling.needsList():
		watch.cancel(errOlderList)
	case !watch.asked.covers(r.held()):
		watch.cancel(errSlotsCame)
	}
}

// fill lists the objects of slots, and hands on those that are still wanted then. The slots were held
// before it began, and the list is consistent: so each change is in the list or comes with the watch.
func (r *Reflector[T]) fill(ctx context.Context, slots slot.Set) error {
	if err := r.handingOn.acquire(ctx); err != nil { // from now on, filling.changes has all changes
		return err
	}
	r.handingOn.release()
	r.endOutdatedWatch()
	items, version, err := r.listSlots(ctx, slots, r.o.PageSize)
	if err != nil {
		return err
	}
	if err := r.handingOn.acquire(ctx); err != nil {
		return err
	}
	defer r.handingOn.release()
	if items = r.stillWanted(items); len(items) > 0 {
		if err := r.queue.Push(ctx, r.o.Partition, "", items); err != nil {
			return err
		}
	}
	r.filled(items, version)
	return nil
}

// listSlots reads a list of slots to its end, in pages of a size, 0 for one page.
func (r *Reflector[T]) listSlots(
	ctx context.Context, slots slot.Set, size int64,
) (items []delta.Event[T], version string, err error) {
	reached, key := r.recorder.snapshot().Version, r.o.Slots.Key()
	wanted := func(uid, namespace string) bool { return key.In(slots, uid, namespace) }
	list := r.readPages(ctx, r.o.Beside, source.ListOptions{
		Limit: size, ShardSelector: r.selectionOf(slots).selector, Selects: wanted,
	})
	counted := 0
	defer func() {
		list.end(err, len(items))
		r.recorder.change(func(h *health.Watch) { h.Listed -= counted })
	}()
	for !list.last {
		page, err := list.next()
		if err != nil {
			switch end := classify(err, false); list.fateOf(end) {
			case listUnpaged:
				r.noteError(err)
				r.recorder.change(func(h *health.Watch) { h.Listed -= counted })
				counted = 0
				return r.listSlots(ctx, slots, 0)
			case pageAgain:
				var wait time.Duration
				wait, err = r.waitAfter(err, end, list.failures)
				r.noteError(err)
				r.filling.pageFailed(err)
				err = sleep(ctx, wait)
			}
			if err != nil {
				return nil, "", err
			}
			continue
		}
		if order, ok := delta.CompareDecimal(list.version, reached); ok && order < 0 {
			return nil, "", fmt.Errorf("%w: %s, and %s", errOlderList, list.version, reached)
		}
		for _, item := range page.Items {
			if item.Err != nil && !item.IsUndecodable() || wanted(item.UID, slot.NamespaceOf(item.Key)) {
				items = r.appendListed(items, item)
			}
		}
		r.recorder.change(func(h *health.Watch) { h.Listed += len(items) - counted })
		counted = len(items)
	}
	return items, list.version, nil
}

// pageFailed records a failure of a page, which is asked for again.
func (f *filling) pageFailed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// appendListed appends a listed object, unless it does not belong to the collection.
func (r *Reflector[T]) appendListed(to []delta.Event[T], item source.Item[T]) []delta.Event[T] {
	e, ok := r.use(delta.Merged, item)
	if !ok {
		return to
	}
	if r.o.Share != nil && !e.Unusable {
		e.Object = r.o.Share(e.Object)
	}
	return append(to, e)
}

// stillWanted returns the listed objects of slots that are still wanted, without those that the watch
// has brought in the same state or a later one, or has ended.
func (r *Reflector[T]) stillWanted(items []delta.Event[T]) []delta.Event[T] {
	f, key := &r.filling, r.o.Slots.Key()
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(items, func(e delta.Event[T]) bool {
		later, changed := f.changes[e.Key]
		return changed && !r.history.isOlder(later, e.Version) ||
			!key.In(f.wanted.And(r.held()), e.UID, slot.NamespaceOf(e.Key))
	})
}

// filled records that the objects of a list of slots were handed on.
func (r *Reflector[T]) filled(items []delta.Event[T], version string) {
	f := &r.filling
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filled = f.filled.Union(f.wanted)
	f.newerUntil = version
	if r.o.Transform == nil {
		return // the cached objects have their versions
	}
	if f.newer == nil {
		f.newer = make(map[string]string, len(items))
	}
	for _, e := range items {
		f.newer[e.Key] = e.Version
	}
}

// hasNewer reports whether a list of slots was handed on that is later than a version.
func (f *filling) hasNewer(version string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	order, ok := delta.CompareDecimal(version, f.newerUntil)
	return ok && order < 0
}

// note notes the changes of a watch, up to a version, for the lists of slots, and returns them without
// those that a list of slots has overtaken.
func (r *Reflector[T]) note(changes []delta.Event[T], version string) []delta.Event[T] {
	f := &r.filling
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newer != nil {
		changes = slices.DeleteFunc(changes, func(e delta.Event[T]) bool {
			newer, ok := f.newer[e.Key]
			return ok && r.history.isOlder(e.Version, newer)
		})
	}
	if order, ok := delta.CompareDecimal(version, f.newerUntil); ok && order >= 0 {
		f.newer, f.newerUntil = nil, ""
	}
	if f.changes != nil {
		for _, e := range changes {
			f.changes[e.Key] = e.Version
		}
	}
	return changes
}
