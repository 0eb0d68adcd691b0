package reflector

import (
	"context"
	"fmt"
	"slices"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// fill lists the objects of slots, and hands on those that are still wanted then. The slots were held
// before it began, and the list is consistent: so each change is in the list or comes with the watch.
func (f *filling[T]) fill(ctx context.Context, slots slot.Set) error {
	if err := f.handingOn.acquire(ctx); err != nil { // from now on, changes has all that the watch brings
		return err
	}
	f.handingOn.release()
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
	reached, key := f.recorder.snapshot().Version, f.o.Slots.Key()
	wanted := func(uid, namespace string) bool { return key.In(slots, uid, namespace) }
	pages := f.requests.pages(ctx, f.o.Beside, source.ListOptions{
		Limit: f.o.PageSize, ShardSelector: f.slots.selectionOf(slots).selector, Selects: wanted,
	})
	defer func() { pages.end(err, len(items)) }()
	defer f.count.set(0)
	for ; !pages.last; f.count.set(len(items)) {
		page, err := pages.next()
		if err != nil {
			switch end := classify(err, false); pages.fateOf(end) {
			case listUnpaged:
				f.recorder.noteError(err)
				pages, items = pages.unpaged(err, len(items)), nil
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

// stillWanted returns the listed objects of slots that are still wanted, without those that the watch
// has brought in the same state or a later one, or has ended.
func (f *filling[T]) stillWanted(items []delta.Event[T]) []delta.Event[T] {
	f.mu.Lock()
	defer f.mu.Unlock()
	key, wanted := f.o.Slots.Key(), f.wanted.And(f.slots.held())
	return slices.DeleteFunc(items, func(e delta.Event[T]) bool {
		later, changed := f.changes[e.Key]
		return changed && !comparison(f.o.Compare).isOlder(later, e.Version) ||
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
