package reflector

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/source"
)

var (
	// errSlotsCame is a list or a watch that began before slots came, so that it may lack their
	// objects.
	errSlotsCame = errors.New("slots came after the list or the watch had begun")
	// errNotRunning is a merge into a collection that is not followed any more.
	errNotRunning = errors.New("the reflector has ended")
	// errOlderList is a list before the version that the watch had reached when it was asked for.
	errOlderList = errors.New("the server listed an older state than the watch has reached")
)

// merging is what Merge shares with the goroutine of Run.
type merging struct {
	// lock is held while lists and events are handed on, which may wait for room in the queue. It
	// has room for one token.
	lock chan struct{}

	mu     sync.Mutex    // guards the rest, and comes after lock
	listed bool          // a list was handed on
	absent bool          // the server has no such resource, which was handed on as no objects
	next   chan struct{} // closed by the next complete list, and by the end of Run
	over   bool          // Run has ended
	// watched is the selection of the running watch, or the last one, and endWatch ends that.
	watched  selection
	endWatch context.CancelCauseFunc
	// ended maps the keys of objects that were deleted since the merge began to their versions, and
	// where versions have no order, those of changed objects too. It is nil without a merge.
	ended map[string]string
}

// Merge lists the objects of slots that have come, and hands them on while the watch goes on. src
// is the source of the reflector. It returns when the queue has them, by its own list or by one of
// Run that began after they came.
//
// The slots are held before Merge is called, so that the watch brings each change after the list,
// which is consistent. An object that the watch has brought in a later state, or has deleted since,
// stays so. Only one Merge may run at a time.
func (r *Reflector[T]) Merge(ctx context.Context, src source.Source[T], slots slot.Set) error {
	m := &r.merging
	if err := m.acquire(ctx); err != nil {
		return err
	}
	next, listed, err := m.begin()
	m.release()
	if next == nil {
		return err
	}
	defer m.finish()
	r.endNarrowWatch()
	if listed {
		err := r.mergeList(ctx, src, slots, next)
		if !isClosed(next) {
			return err
		}
	}
	select {
	case <-next:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.over {
		return errNotRunning
	}
	return nil
}

// begin begins a merge. next is nil if there is nothing to merge, or nothing to merge into.
func (m *merging) begin() (next chan struct{}, listed bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.over:
		return nil, false, errNotRunning
	case m.absent:
		return nil, false, nil
	}
	m.next, m.ended = make(chan struct{}), map[string]string{}
	return m.next, m.listed, nil
}

func (m *merging) finish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next, m.ended = nil, nil
}

// watches notes the running watch.
func (m *merging) watches(end context.CancelCauseFunc, selected selection) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.endWatch, m.watched = end, selected
}

// endNarrowWatch ends the running watch if it does not select slots that are held, so that it is
// begun anew from its last version. It hands on nothing more in any case: see push.
func (r *Reflector[T]) endNarrowWatch() {
	m := &r.merging
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.endWatch != nil && r.o.Slots != nil && !m.watched.covers(r.o.Slots.Slots()) {
		m.endWatch(errSlotsCame)
	}
}

// mergeList lists the objects of slots and hands them on, unless next is closed before.
func (r *Reflector[T]) mergeList(
	ctx context.Context, src source.Source[T], slots slot.Set, next <-chan struct{},
) error {
	listing, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // it ends with this call
		select {
		case <-next:
			cancel()
		case <-listing.Done():
		}
	}()
	items, err := r.listSlots(listing, src, slots)
	if err != nil {
		return err
	}
	return r.handOnMerged(listing, next, items)
}

func (m *merging) acquire(ctx context.Context) error {
	select {
	case m.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *merging) release() { <-m.lock }

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// listSlots lists the objects of slots, page by page.
func (r *Reflector[T]) listSlots(
	ctx context.Context, src source.Source[T], slots slot.Set,
) ([]delta.Event[T], error) {
	reached := r.recorder.snapshot().Version
	key := r.o.Slots.Key()
	o := source.ListOptions{
		Limit: r.o.PageSize, ShardSelector: r.selectionOf(slots).selector,
		Selects: func(uid, namespace string) bool { return slots.Has(key.Of(uid, namespace)) },
	}
	var items []delta.Event[T]
	for {
		page, err := r.listPage(ctx, src, o)
		if err != nil && o.Continue != "" && classify(err, false).cause == expired {
			o.Continue, o.Limit, items = "", 0, nil
			continue
		}
		if err != nil {
			return nil, err
		}
		if order, ok := delta.CompareDecimal(page.Version, reached); o.Continue == "" && ok && order < 0 {
			return nil, fmt.Errorf("%w: %s, and %s", errOlderList, page.Version, reached)
		}
		for _, item := range page.Items {
			if item.Err == nil && !o.Selects(item.UID, slot.NamespaceOf(item.Key)) {
				continue
			}
			if r.accept(item, false) != nil || r.transform(&item) != nil {
				continue
			}
			if r.o.Share != nil {
				item.Object = r.o.Share(item.Object)
			}
			items = append(items, event(delta.Merged, item))
		}
		if page.Continue == "" {
			return items, nil
		}
		if page.Continue == o.Continue {
			return nil, errRepeatedToken
		}
		o.Continue = page.Continue
	}
}

// listPage asks for a page. The request ends if it is silent for Options.MaxSilence.
func (r *Reflector[T]) listPage(
	ctx context.Context, src source.Source[T], o source.ListOptions,
) (source.Page[T], error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := idleTimer{cancel: cancel}
	idle.set(r.o.MaxSilence, silence(r.o.MaxSilence))
	defer idle.stop()
	o.OnActivity = idle.restart
	page, err := src.List(ctx, o)
	r.noteSharding(o.ShardSelector, page.Sharded, err)
	return page, err
}

// handOnMerged pushes listed objects, unless Run has handed on a list meanwhile.
func (r *Reflector[T]) handOnMerged(
	ctx context.Context, next <-chan struct{}, items []delta.Event[T],
) error {
	m := &r.merging
	if err := m.acquire(ctx); err != nil {
		return err
	}
	defer m.release()
	if isClosed(next) {
		return nil
	}
	return r.queue.Push(ctx, r.o.Partition, "", r.stillWanted(items))
}

// stillWanted returns the listed objects whose slots are held, and that have not ended.
func (r *Reflector[T]) stillWanted(items []delta.Event[T]) []delta.Event[T] {
	m := &r.merging
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := items[:0]
	for _, item := range items {
		ended, ok := m.ended[item.Key]
		if r.holds(item.Item) && !(ok && !r.history.isOlder(ended, item.Version)) {
			kept = append(kept, item)
		}
	}
	clear(items[len(kept):])
	return kept
}

// note notes a change of a watch for the merge.
func (r *Reflector[T]) note(e delta.Event[T]) {
	if _, ordered := r.o.Compare(e.Version, e.Version); ordered && e.Type == delta.Set {
		return // the queue tells which state is later
	}
	m := &r.merging
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended != nil {
		m.ended[e.Key] = e.Version
	}
}

// selects returns what a source is to yield.
func (r *Reflector[T]) selects() source.Selects {
	if r.o.Slots == nil {
		return nil
	}
	return r.o.Slots.Has
}

// ignores reports whether an object is in a slot that is not held.
func (r *Reflector[T]) ignores(item *source.Item[T]) bool {
	return item.Err == nil && !r.holdsSlot(item.Key, item.UID)
}

// holds reports whether the slot of an object is held.
func (r *Reflector[T]) holds(item delta.Item[T]) bool { return r.holdsSlot(item.Key, item.UID) }

func (r *Reflector[T]) holdsSlot(key, uid string) bool {
	return r.o.Slots == nil || r.o.Slots.Has(uid, slot.NamespaceOf(key))
}

// push hands on the changes of a watch, except those of slots that have gone since they were
// decoded, and its version. Once slots have come that the watch does not select, it fails: the
// version of their list is not below the one that was reached then.
func (s *watching[T]) push(ctx context.Context, version string) error {
	if s.o.Slots == nil {
		return s.enqueue(ctx, version, s.changes)
	}
	m := &s.merging
	if err := m.acquire(ctx); err != nil {
		return err
	}
	defer m.release()
	if !s.stream.asked.covers(s.o.Slots.Slots()) {
		return errSlotsCame
	}
	kept := s.changes[:0]
	for _, e := range s.changes {
		if !s.holds(e.Item) {
			continue
		}
		s.note(e)
		kept = append(kept, e)
	}
	return s.enqueue(ctx, version, kept)
}

func (s *watching[T]) enqueue(ctx context.Context, version string, changes []delta.Event[T]) error {
	if len(changes) == 0 {
		return s.queue.Bookmark(ctx, s.o.Partition, version)
	}
	return s.queue.Push(ctx, s.o.Partition, version, changes)
}

// replace hands on a list, without the objects of slots that have gone since it began. adds is the
// number of additions of slots then.
func (r *Reflector[T]) replace(
	ctx context.Context, adds uint64, version string, items []delta.Item[T], o delta.ReplaceOptions,
) error {
	if r.o.Slots == nil {
		return r.queue.Replace(ctx, r.o.Partition, version, items, o)
	}
	m := &r.merging
	if err := m.acquire(ctx); err != nil {
		return err
	}
	defer m.release()
	if r.o.Slots.Adds() != adds {
		return errSlotsCame
	}
	held := r.o.Slots.Slots()
	kept := items[:0]
	for _, item := range items {
		if r.isIn(held, item.Key, item.UID) {
			kept = append(kept, item)
		}
	}
	clear(items[len(kept):])
	o.Moved = func(key, uid string) bool { return !r.isIn(held, key, uid) }
	if err := r.queue.Replace(ctx, r.o.Partition, version, kept, o); err != nil {
		return err
	}
	m.coveredBy(false)
	return nil
}

// replaceByNothing hands on that the server has no such resource.
func (r *Reflector[T]) replaceByNothing(ctx context.Context) error {
	o := delta.ReplaceOptions{NewHistory: true}
	if r.o.Slots == nil {
		return r.queue.Replace(ctx, r.o.Partition, "", nil, o)
	}
	m := &r.merging
	if err := m.acquire(ctx); err != nil {
		return err
	}
	defer m.release()
	held := r.o.Slots.Slots()
	o.Moved = func(key, uid string) bool { return !r.isIn(held, key, uid) }
	if err := r.queue.Replace(ctx, r.o.Partition, "", nil, o); err != nil {
		return err
	}
	m.coveredBy(true)
	return nil
}

// isIn reports whether an object is in a set of slots.
func (r *Reflector[T]) isIn(set slot.Set, key, uid string) bool {
	namespace := slot.NamespaceOf(key)
	return r.o.Slots.Check(namespace) != nil || set.Has(r.o.Slots.Key().Of(uid, namespace))
}

// coveredBy ends a merge, which a list has made needless, or the absence of the resource.
func (m *merging) coveredBy(absence bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listed, m.absent = m.listed || !absence, absence
	m.coverLocked()
}

func (m *merging) coverLocked() {
	if m.next != nil && !isClosed(m.next) {
		close(m.next)
	}
}

// end is called when Run has ended. It ends a merge, and waits until that hands on nothing more.
func (m *merging) end() {
	m.mu.Lock()
	m.over = true
	m.coverLocked()
	m.mu.Unlock()
	m.lock <- struct{}{}
	m.release()
}

// Settle returns when the events that were decoded before are handed on. Those of slots that have
// gone by now are not handed on afterwards. An error is that of the context.
func (r *Reflector[T]) Settle(ctx context.Context) error {
	if err := r.merging.acquire(ctx); err != nil {
		return err
	}
	r.merging.release()
	return nil
}
