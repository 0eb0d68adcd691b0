package reflector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/source"
)

var (
	// errSlotsCame is a list or a watch that began before slots came, so that it may lack their
	// objects.
	errSlotsCame = errors.New("slots came after the list or the watch had begun")
	// errOlderList is a list of a merge before the version that the watch had reached when it was
	// asked for.
	errOlderList = tornError("the server listed an older state than the watch has reached")
	// errNotRunning is a merge into a collection that is not followed any more.
	errNotRunning = errors.New("the reflector has ended")
	// errReplaced ends a merge that has become needless: Run has handed on a list with the objects
	// of its slots, or that the server has no such resource.
	errReplaced = errors.New("a list of all slots has come")
)

// merging has the state of Merge that the goroutine of Run uses too.
type merging struct {
	mu    sync.Mutex // guards the rest, and comes after Reflector.handingOn
	ended bool       // Run has ended
	// cancel ends the running merge with errReplaced or errNotRunning.
	cancel context.CancelCauseFunc
	// changed maps the keys of objects that were deleted since the merge began to their versions,
	// and where versions have no order, those of changed objects too.
	changed map[string]string
	// listDue demands a list of Run: that of a merge was older than the reached version.
	listDue bool
}

// Merge lists the objects of slots that have come, and hands them on while the watch goes on. src
// is the source of the reflector. It returns when the queue has them, by its own list or by one of
// Run that began after they came.
//
// The slots are held before Merge is called, so that the watch brings each change after the list,
// which is consistent. An object that the watch has brought in a later state, or has deleted since,
// stays so. If the list is older than the version that the watch has reached, the server may have been
// set back (P16): Run lists the collection. Only one Merge may run at a time.
func (r *Reflector[T]) Merge(ctx context.Context, src source.Source[T], slots slot.Set) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := r.handingOn.acquire(ctx); err != nil { // a list may be on its way to the queue
		return err
	}
	listed := r.listed
	r.merging.begin(cancel, r.emptied)
	r.handingOn.release()
	defer r.merging.finish()
	var err error
	if listed && ctx.Err() == nil {
		r.endOutdatedWatch()
		err = r.mergeList(ctx, src, slots)
	} else { // the first list will have the objects, or the merge has ended
		<-ctx.Done()
		err = context.Cause(ctx)
	}
	switch cause := context.Cause(ctx); cause {
	case errReplaced:
		return nil
	case errNotRunning:
		return cause
	default:
		return err
	}
}

// begin begins a merge, and ends it at once if there is nothing to merge, or nothing to merge into.
func (m *merging) begin(cancel context.CancelCauseFunc, emptied bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.ended:
		cancel(errNotRunning)
	case emptied:
		cancel(errReplaced)
	}
	m.cancel, m.changed = cancel, map[string]string{}
}

// finish is called when the merge has ended.
func (m *merging) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cancel, m.changed = nil, nil
}

// end ends the running merge, and with errNotRunning those that come later.
func (m *merging) end(cause error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended, m.listDue = m.ended || cause == errNotRunning, false
	if m.cancel != nil {
		m.cancel(cause)
	}
}

// endMerge ends the merge at the end of Run, and waits until it hands on nothing more.
func (r *Reflector[T]) endMerge() {
	r.merging.end(errNotRunning)
	r.Settle(context.Background()) //nolint:errcheck // its context does not end
}

// demandList demands a list of Run, unless the merge with this context has ended.
func (m *merging) demandList(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listDue = ctx.Err() == nil
}

// needsList reports whether a list of Run is demanded.
func (m *merging) needsList() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.listDue
}

// endOutdatedWatch ends the running watch if a list is due, or if it does not select slots that are
// held, so that it is begun anew from its last version. Such a watch hands on nothing more in any
// case: see push.
func (r *Reflector[T]) endOutdatedWatch() {
	watch := r.running.Load()
	switch {
	case watch == nil:
	case r.merging.needsList():
		watch.cancel(errOlderList)
	case !watch.asked.covers(r.held()):
		watch.cancel(errSlotsCame)
	}
}

// mergeList lists the objects of slots, and hands on those that are still wanted then.
func (r *Reflector[T]) mergeList(ctx context.Context, src source.Source[T], slots slot.Set) error {
	items, err := r.listSlots(ctx, src, slots, r.o.PageSize)
	if err != nil && slices.Contains([]cause{endless, expired}, classify(err, false).cause) {
		items, err = r.listSlots(ctx, src, slots, 0) // without pages
	}
	if errors.Is(err, errOlderList) {
		r.merging.demandList(ctx)
		r.endOutdatedWatch()
		<-ctx.Done() // the list of Run ends the merge
		return fmt.Errorf("%w (%w)", context.Cause(ctx), err)
	}
	if err != nil {
		return err
	}
	if err := r.handingOn.acquire(ctx); err != nil {
		return err
	}
	defer r.handingOn.release()
	return r.queue.Push(ctx, r.o.Partition, "", r.stillWanted(items))
}

// listSlots lists the objects of slots in pages of a size, 0 for one page.
func (r *Reflector[T]) listSlots(
	ctx context.Context, src source.Source[T], slots slot.Set, size int64,
) (items []delta.Event[T], err error) {
	reached, selector := r.recorder.snapshot().Version, r.selectionOf(slots).selector
	key := r.o.Slots.Key()
	wanted := func(uid, namespace string) bool { return key.In(slots, uid, namespace) }
	var pages pages
	for {
		pages.begin()
		page, err := r.listPage(ctx, src, source.ListOptions{
			Limit: size, Continue: pages.token, Selects: pages.noting(wanted), ShardSelector: selector,
		})
		if err != nil {
			return nil, err
		}
		if order, ok := delta.CompareDecimal(page.Version, reached); pages.token == "" && ok && order < 0 {
			return nil, fmt.Errorf("%w: %s, and %s", errOlderList, page.Version, reached)
		}
		for _, item := range page.Items {
			pages.note(item.Key)
			if item.Err != nil || wanted(item.UID, slot.NamespaceOf(item.Key)) {
				items = r.appendMerged(items, item)
			}
		}
		if page.Continue == "" {
			return items, nil
		}
		if err := pages.follow(page.Continue); err != nil {
			return nil, err
		}
	}
}

// appendMerged appends a listed object, unless it does not belong to the collection.
func (r *Reflector[T]) appendMerged(to []delta.Event[T], item source.Item[T]) []delta.Event[T] {
	if r.accept(item, false) != nil || r.transform(&item) != nil {
		return to
	}
	if r.o.Share != nil {
		item.Object = r.o.Share(item.Object)
	}
	return append(to, event(delta.Merged, item))
}

// stillWanted returns the listed objects whose slots are held, and that have not ended.
func (r *Reflector[T]) stillWanted(items []delta.Event[T]) []delta.Event[T] {
	m := &r.merging
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(items, func(e delta.Event[T]) bool {
		later, changed := m.changed[e.Key]
		return !r.holds(e.Key, e.UID) || changed && !r.history.isOlder(later, e.Version)
	})
}

// note notes the changes of a watch for the merge.
func (r *Reflector[T]) note(changes []delta.Event[T]) {
	m := &r.merging
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.changed == nil {
		return
	}
	for _, e := range changes {
		// Where versions have an order, the queue tells which of two states is later.
		if _, ordered := r.o.Compare(e.Version, e.Version); !ordered || e.Type != delta.Set {
			m.changed[e.Key] = e.Version
		}
	}
}
