package reflector

import (
	"context"
	"slices"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// Queue receives lists, events and bookmarks. *delta.Queue implements it.
type Queue[T any] interface {
	Push(ctx context.Context, partition, version string, changes []delta.Event[T]) error
	Replace(ctx context.Context, partition, version string, items []delta.Item[T],
		o delta.ReplaceOptions) error
	Bookmark(ctx context.Context, partition, version string) error
}

// lock is a mutex made of a channel with room for one token: a context can end the wait for it.
type lock chan struct{}

// acquire locks l, or returns why ctx has ended.
func (l lock) acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if ctx.Err() != nil {
		l.release()
		return context.Cause(ctx)
	}
	return nil
}

func (l lock) release() { <-l }

// push hands on the changes of a watch, except those of slots that have gone since they were
// decoded, and its version. Once slots have come that the watch does not select, it fails: the
// version of their list is not below the one that was reached then.
func (s *watching[T]) push(ctx context.Context, version string) error {
	changes := s.changes
	if s.o.Slots != nil {
		if err := s.handingOn.acquire(ctx); err != nil {
			return err
		}
		defer s.handingOn.release()
		if !s.stream.asked.covers(s.held()) {
			return errSlotsCame
		}
		changes = slices.DeleteFunc(changes, func(e delta.Event[T]) bool { return !s.holds(e.Key, e.UID) })
		changes = s.filling.note(changes, version)
	}
	if len(changes) == 0 {
		return s.queue.Bookmark(ctx, s.o.Partition, version)
	}
	return s.queue.Push(ctx, s.o.Partition, version, changes)
}

// replace hands on a list, without the objects of slots that have gone since it began. A nil list
// means that the server has no such resource: then there are no items.
func (r *Reflector[T]) replace(
	ctx context.Context, l *staged[T], version string, items []delta.Item[T], o delta.ReplaceOptions,
) error {
	held := r.held() // as they are now: Moved is called later
	if r.o.Slots != nil {
		if err := r.handingOn.acquire(ctx); err != nil {
			return err
		}
		defer r.handingOn.release()
		held = r.held() // before the additions are counted
		switch {
		case l == nil || r.o.Slots.Adds() == l.adds:
		case r.listed: // the cache may have objects of slots that have come
			return errSlotsCame
		default: // these are listed beside the watch
			held = held.And(l.held)
		}
		if !o.NewHistory && r.filling.hasNewer(version) {
			return errSlotsCame
		}
		key := r.o.Slots.Key()
		o.Moved = func(objectKey, uid string) bool {
			return !key.In(held, uid, slot.NamespaceOf(objectKey))
		}
		items = slices.DeleteFunc(items, func(i delta.Item[T]) bool { return o.Moved(i.Key, i.UID) })
		o.Stays = slices.DeleteFunc(o.Stays, func(u delta.Unusable) bool { return o.Moved(u.Key, u.UID) })
	}
	if err := r.queue.Replace(ctx, r.o.Partition, version, items, o); err != nil {
		return err
	}
	r.listed, r.emptied = r.listed || l != nil, l == nil
	lists := hasList
	if r.emptied {
		lists = isAbsent
	}
	r.filling.listed(held, lists)
	return nil
}
