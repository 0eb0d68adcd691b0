package reflector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/slot"
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

// filling gets the objects of the slots that are held: by a list of Run, or by a list of these
// slots beside the watch, on the goroutine of run. Each held slot is in one state:
//
//	state     event                                        next state
//	lacking   a list of it begins                          listing
//	listing   the list is handed on                        filled
//	listing   the list fails                               lacking, and is listed again after a wait
//	lacking   a list of Run that began after it came       filled
//	listing   a list of Run that began after it came       filled
//	any       it goes                                      not held
//	not held  it comes                                     lacking
//
// Before the first list of Run, that list alone can fill a slot. The watch brings the changes of a
// slot in every state.
type filling[T any] struct {
	*shared[T]
	isOlder func(a, b string) bool // of versions

	mu      sync.Mutex    // guards the rest, and comes after handingOn
	changed chan struct{} // closed at the next change of the rest; nil if nobody waits for it
	ended   bool          // Run has ended
	told    bool          // Run has handed on a list, or that the server has no such resource
	exists  bool          // the last of these was a list: slots that come are to be listed
	filled  slot.Set      // by lists; it may have slots that are not held

	// The running list of slots: wanted are its slots that have not gone since it began, changes
	// the versions of the objects that the watch has brought or ended since, by key. cancel ends
	// it, and is nil between lists.
	wanted  slot.Set
	changes map[string]string
	cancel  context.CancelCauseFunc
	count   listCount // only run uses it

	failures int    // of lists of slots, in a row
	reported uint64 // failures that Merge returns
	err      error  // the last failure; nil after a list

	// newerUntil is the version of a list of slots that the watch has not reached, "" if it has.
	// Until then newer maps the keys of its objects to their versions, if the cached ones may have
	// none, so that the queue cannot tell a state from an older one.
	newerUntil string
	newer      map[string]string
}

// wakeLocked wakes everything that waits for a change.
func (f *filling[T]) wakeLocked() {
	if f.changed != nil {
		close(f.changed)
		f.changed = nil
	}
}

// awaitLocked waits for a change, or for the end of ctx. The lock is free meanwhile.
func (f *filling[T]) awaitLocked(ctx context.Context) {
	if f.changed == nil {
		f.changed = make(chan struct{})
	}
	changed := f.changed
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

// lackingLocked returns the slots that are held and not filled. The objects of one namespace are in
// one slot, by namespace.
func (f *filling[T]) lackingLocked() slot.Set {
	if !f.exists {
		return slot.Set{}
	}
	lacking := f.slots.held().Minus(f.filled)
	namespace := strings.TrimSuffix(f.o.Partition, "/")
	if namespace != "" && f.o.Slots.Key() == slot.Namespace {
		lacking = lacking.And(slot.Of(slot.Namespace.Of("", namespace)))
	}
	return lacking
}

// lacking returns the number of held slots whose objects are not listed yet.
func (f *filling[T]) lacking() int {
	if f.o.Slots == nil {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lackingLocked().Len()
}

// await is Reflector.Merge.
func (f *filling[T]) await(ctx context.Context, slots slot.Set) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wakeLocked() // run does not know of slots that come
	for reported := f.reported; !f.ended; f.awaitLocked(ctx) {
		needed := f.lackingLocked()
		if f.o.Resumes && !f.told {
			needed = f.slots.held()
		}
		switch {
		case needed.And(slots).IsEmpty():
			return nil
		case f.reported > reported:
			return f.err
		case ctx.Err() != nil && f.err != nil:
			return fmt.Errorf("%w (%w)", context.Cause(ctx), f.err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
	}
	return nil
}

// leave is Reflector.Leave.
func (f *filling[T]) leave(ctx context.Context, slots slot.Set) error {
	if err := f.handingOn.acquire(ctx); err != nil {
		return err
	}
	defer f.handingOn.release()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filled = f.filled.Minus(slots)
	if f.wanted = f.wanted.Minus(slots); f.cancel != nil && f.wanted.IsEmpty() {
		f.cancel(errNeedless)
	}
	f.wakeLocked()
	return nil
}

// listed records that Run has handed on a list with the objects of the held slots, or that the
// server has no such resource: then slots that come need no list.
func (f *filling[T]) listed(held slot.Set, exists bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told, f.exists, f.filled = true, exists, held
	f.watch.overtaken.Store(false)
	f.failures, f.err = 0, nil
	f.newer, f.newerUntil = nil, ""
	if f.cancel != nil {
		f.cancel(errNeedless)
	}
	f.wakeLocked()
}

// hasNewer reports whether a list of slots was handed on that is later than a version.
func (f *filling[T]) hasNewer(version string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	order, ok := delta.CompareDecimal(version, f.newerUntil)
	return ok && order < 0
}

// note notes the changes of a watch, up to a version, for the lists of slots, and returns them
// without the changes that a list of slots has overtaken.
func (f *filling[T]) note(changes []delta.Event[T], version string) []delta.Event[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.newer != nil {
		changes = slices.DeleteFunc(changes, func(e delta.Event[T]) bool {
			newer, ok := f.newer[e.Key]
			return ok && f.isOlder(e.Version, newer)
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

// start starts run. stop ends it, and returns when it hands on nothing more.
func (f *filling[T]) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	f.o.Go(func() {
		defer close(ended)
		f.run(ctx)
	})
	return func() {
		cancel()
		<-ended
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = true
		f.wakeLocked()
	}
}

// run lists the slots that come, one list after the other, until ctx ends.
func (f *filling[T]) run(ctx context.Context) {
	for {
		running, slots := f.begin(ctx)
		if ctx.Err() != nil {
			return
		}
		err := f.fill(running, slots)
		if wait := f.finish(running, err); wait > 0 {
			sleep(ctx, wait) //nolint:errcheck // begin sees its end
		}
	}
}

// begin waits for slots that are lacking, and returns them with the context of their list.
func (f *filling[T]) begin(ctx context.Context) (running context.Context, slots slot.Set) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; ctx.Err() == nil; f.awaitLocked(ctx) {
		if slots = f.lackingLocked(); !slots.IsEmpty() && !f.watch.overtaken.Load() {
			running, f.cancel = context.WithCancelCause(ctx)
			f.wanted, f.changes = slots, map[string]string{}
			return running, slots
		}
	}
	return nil, slot.Set{}
}

// finish records the end of a list of slots, and returns how long to wait before the next one.
func (f *filling[T]) finish(running context.Context, err error) (wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.wakeLocked()
	over := context.Cause(running) // before cancel; nil unless something has ended the list
	f.cancel(nil)
	f.cancel, f.wanted, f.changes = nil, slot.Set{}, nil
	switch {
	case over != nil: // by Run, or it is needless
	case err == nil:
		f.failures, f.err = 0, nil
	case errors.Is(err, errOlderList):
		f.err = err
		f.watch.overtaken.Store(true)
		f.recorder.noteError(err)
		f.watch.end(errOlderList)
	default:
		end := classify(err, false)
		if f.failures++; !end.transient || end.silent || f.failures >= pageTries {
			f.reported++
		}
		wait, f.err = waitAfter(f.o.Backoff, err, end, f.failures)
		f.recorder.slotsFailed(f.failures, f.err, time.Now().Add(wait))
	}
	return wait
}

// fill lists the objects of slots, and hands on the ones that are still wanted then. The slots were
// held before it began, and the list is consistent: so each change is in the list or comes with the
// watch.
func (f *filling[T]) fill(ctx context.Context, slots slot.Set) error {
	if err := f.handingOn.acquire(ctx); err != nil {
		return err
	}
	f.handingOn.release() // from now on, changes has all that the watch brings
	f.watch.endOutdated()
	items, version, err := f.list(ctx, slots)
	if err != nil {
		return err
	}
	if err := f.handingOn.acquire(ctx); err != nil {
		return err
	}
	defer f.handingOn.release()
	if items = f.stillWanted(items); len(items) > 0 {
		if err := f.queue.Push(ctx, f.o.Partition, "", items); err != nil {
			return err
		}
	}
	f.handedOn(items, version)
	return nil
}

// list reads a list of slots to its end.
func (f *filling[T]) list(
	ctx context.Context, slots slot.Set,
) (items []delta.Event[T], version string, err error) {
	_, _, reached := f.recorder.present()
	key := f.o.Slots.Key()
	wanted := func(uid, namespace string) bool { return key.In(slots, uid, namespace) }
	o := source.ListOptions{
		Limit: f.o.PageSize, ShardSelector: f.slots.selectionOf(slots).selector, Selects: wanted,
	}
	pages := f.requests.beginPages(ctx, f.o.Beside, o)
	defer func() { pages.end(err, len(items)) }()
	defer f.count.set(0)
	for ; !pages.last; f.count.set(len(items)) {
		page, err := pages.next()
		if err != nil {
			switch end := classify(err, false); pages.fateOf(end) {
			case listUnpaged:
				f.recorder.noteError(err)
				pages.end(err, len(items))
				o.Limit = 0
				pages, items = f.requests.beginPages(ctx, f.o.Beside, o), nil
			case pageAgain:
				if err := f.awaitPage(ctx, err, end, pages.failures); err != nil {
					return items, "", err
				}
			default:
				return items, "", err
			}
			continue
		}
		if order, ok := delta.CompareDecimal(pages.version, reached); ok && order < 0 {
			return items, "", fmt.Errorf("%w: %s, and %s", errOlderList, pages.version, reached)
		}
		for _, item := range page.Items {
			if item.Err != nil && !item.IsUndecodable() || wanted(item.UID, slot.NamespaceOf(item.Key)) {
				items = f.appendListed(items, item)
			}
		}
	}
	return items, pages.version, nil
}

// awaitPage waits before a page that has failed is asked for again.
func (f *filling[T]) awaitPage(ctx context.Context, err error, end ending, failures int) error {
	wait, err := waitAfter(f.o.Backoff, err, end, failures)
	f.recorder.noteError(err)
	f.mu.Lock()
	f.err = err
	f.mu.Unlock()
	return sleep(ctx, wait)
}

// appendListed appends a listed object, unless it does not belong to the collection.
func (f *filling[T]) appendListed(to []delta.Event[T], item source.Item[T]) []delta.Event[T] {
	e, ok := f.objects.use(delta.Merged, item)
	if !ok {
		return to
	}
	if f.o.Share != nil && !e.Unusable {
		e.Object = f.o.Share(e.Object)
	}
	return append(to, e)
}

// stillWanted returns the listed objects of slots that are still wanted, without the ones that the
// watch has brought in the same state or a later one, or has ended.
func (f *filling[T]) stillWanted(items []delta.Event[T]) []delta.Event[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	key, wanted := f.o.Slots.Key(), f.wanted.And(f.slots.held())
	return slices.DeleteFunc(items, func(e delta.Event[T]) bool {
		later, changed := f.changes[e.Key]
		return changed && !f.isOlder(later, e.Version) ||
			!key.In(wanted, e.UID, slot.NamespaceOf(e.Key))
	})
}

// handedOn records that the objects of a list of slots were handed on.
func (f *filling[T]) handedOn(items []delta.Event[T], version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filled = f.filled.Union(f.wanted)
	f.newerUntil = version
	if f.o.Transform == nil {
		return // the cached objects have their versions
	}
	if f.newer == nil {
		f.newer = make(map[string]string, len(items))
	}
	for _, e := range items {
		f.newer[e.Key] = e.Version
	}
}
