package delta

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Push adds a run of changes of one scope, in the server's order; version is the one reached with the last of them, "" if unknown. The changes
// are copied, objects are not. All of them are taken, or none and an error: ErrUnknownScope, ErrForeignKey, ErrClosed, or that of the
// context if it ends while the queue is full.
func (q *Queue[T]) Push(ctx context.Context, scope, version string, changes []Event[T]) error {
	const operation = "push"
	sc, err := q.scope(operation, scope)
	if err != nil {
		return err
	}
	for i := range changes {
		if err := sc.checkKey(operation, changes[i].Key); err != nil {
			return err
		}
		if t := changes[i].Type; t != Set && t != Delete && t != Gone {
			return fmt.Errorf("delta: push of scope %q with key %q: change type %d is none of Set, Delete and Gone", scope, changes[i].Key, t)
		}
	}
	if err := q.admit(ctx, operation, sc); err != nil {
		return err
	}
	defer q.mu.Unlock()
	if len(changes) > 0 {
		fresh := q.freshLocked(changes[0].Version, sc) // events come in order, so the first one tells
		s := q.runLocked()
		for i := range changes {
			q.addLocked(s, &changes[i], sc, fresh)
		}
	}
	q.reachLocked(sc, version)
	q.settleLocked()
	return nil
}

// Replace stages a complete list of a scope that becomes one batch: what is known and not in the list will be deleted. version is that
// of the list, "" if unknown. The queue keeps items, which it may reorder; the caller must not use the slice again, whatever is returned. Errors are those
// of Push, and ErrOlder if the scope has already reached a newer version; nothing is taken then.
func (q *Queue[T]) Replace(ctx context.Context, scope, version string, items []Item[T], o ReplaceOptions) error {
	const operation = "replace"
	sc, err := q.scope(operation, scope)
	if err != nil {
		return err
	}
	ascending := true
	for i := range items {
		if err := sc.checkKey(operation, items[i].Key); err != nil {
			return err
		}
		ascending = ascending && (i == 0 || items[i-1].Key < items[i].Key)
	}
	if !ascending {
		items = q.ordered(items)
	}
	for _, key := range o.Stays {
		if err := sc.checkKey(operation, key); err != nil {
			return err
		}
	}
	if err := q.admit(ctx, operation, sc); err != nil {
		return err
	}
	defer q.mu.Unlock()
	if order, ok := q.compare(version, sc.reached); ok && order < 0 && !o.NewHistory {
		q.wakeProducerLocked()
		return fmt.Errorf("%w: the list of scope %q is of version %s, the scope has reached version %s; list again, or say NewHistory if the server's versions went back",
			ErrOlder, scope, version, sc.reached)
	}
	s := q.openLocked()
	s.list = &list[T]{sc, version, o.NewHistory, items, slices.Sorted(slices.Values(o.Stays))}
	q.pending += len(items)
	sc.reached = version
	s.mark(sc, version)
	q.settleLocked()
	return nil
}

// Bookmark notes that a scope has reached a version without a change. It moves the version of what is pending, and becomes a batch of its own only if nothing
// is. An empty version says nothing. Errors are those of Push.
func (q *Queue[T]) Bookmark(ctx context.Context, scope, version string) error {
	const operation = "bookmark"
	sc, err := q.scope(operation, scope)
	if err != nil {
		return err
	}
	if err := q.admit(ctx, operation, sc); err != nil {
		return err
	}
	defer q.mu.Unlock()
	q.reachLocked(sc, version)
	q.settleLocked()
	return nil
}

// Resync adds a token that the consumer receives after everything pushed before it, and before anything pushed later. The queue does not
// look at tokens and does not fold them; whoever resyncs should have one pending at most. Resync does not wait. Errors: ErrClosed.
func (q *Queue[T]) Resync(token any) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return q.closed
	}
	s := q.lastLocked()
	s.tokens = append(s.tokens, token)
	q.settleLocked()
	return nil
}

// ordered returns the items strictly ascending by key, the newest of each key, in the same array.
func (q *Queue[T]) ordered(items []Item[T]) []Item[T] {
	slices.SortStableFunc(items, func(a, b Item[T]) int { return strings.Compare(a.Key, b.Key) })
	n := 0
	for _, item := range items {
		if n > 0 && items[n-1].Key == item.Key {
			if order, ok := q.compare(item.Version, items[n-1].Version); !ok || order >= 0 {
				items[n-1] = item
			}
			continue
		}
		items[n] = item
		n++
	}
	clear(items[n:])
	return items[:n]
}

// freshLocked reports whether a change of this version cannot be a replay: it is after what its scope has reached, or versions like it are not compared.
func (q *Queue[T]) freshLocked(version string, sc *scope) bool {
	order, ok := q.compare(version, sc.reached)
	if ok {
		return order > 0
	}
	_, comparable := q.compare(version, version)
	return !comparable
}

// addLocked adds a change to a run, or folds it into the last update of its key.
func (q *Queue[T]) addLocked(s *segment[T], c *Event[T], sc *scope, fresh bool) {
	if q.pending >= q.foldAbove && s.index == nil {
		s.startIndex()
	}
	if q.pending >= q.foldAbove {
		if e := s.foldable(c); e != nil {
			if order, ok := q.compare(c.Version, e.Version); ok && order <= 0 {
				q.stale++ // sent again: the state that is pending is not older
				return
			}
			e.Item = c.Item
			q.folded++
			return
		}
	}
	s.changes = append(s.changes, entry[T]{Type: c.Type, fresh: fresh, scope: sc.index, Item: c.Item})
	q.pending++
	if s.index != nil {
		s.indexLast(len(s.changes) - 1)
	}
}

// reachLocked notes the version that a scope has reached at the end of the queue. It does not move back: a replay reaches nothing new.
func (q *Queue[T]) reachLocked(sc *scope, version string) {
	if version == "" || version == sc.reached {
		return
	}
	if order, ok := q.compare(version, sc.reached); ok && order < 0 {
		return
	}
	sc.reached = version
	q.lastLocked().mark(sc, version)
}

// lastLocked returns the last segment, whatever it is.
func (q *Queue[T]) lastLocked() *segment[T] {
	if n := len(q.segments); n > 0 {
		return q.segments[n-1]
	}
	return q.openLocked()
}

// runLocked returns the segment that changes are added to.
func (q *Queue[T]) runLocked() *segment[T] {
	if s := q.lastLocked(); s.open() {
		return s
	}
	return q.openLocked()
}

// openLocked adds an empty segment.
func (q *Queue[T]) openLocked() *segment[T] {
	s := q.spare
	if q.spare = nil; s == nil {
		s = new(segment[T])
	}
	q.segments = append(q.segments, s)
	return s
}
