package delta

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Push adds events of one partition, in the server's order; version is the one reached with the
// last of them, "" if unknown. The events are copied, objects are not. All of them are taken,
// or none and an error: ErrUnknownPartition, ErrForeignKey, ErrClosed, or that of the context
// if it ends while the queue is full.
func (q *Queue[T]) Push(ctx context.Context, partition, version string, events []Event[T]) error {
	const operation = "push"
	p, err := q.partition(operation, partition)
	if err != nil {
		return err
	}
	for i := range events {
		if err := p.checkKey(operation, events[i].Key); err != nil {
			return err
		}
		if t := events[i].Type; t < Set || t > Merged {
			return fmt.Errorf("delta: push of partition %q with key %q: "+
				"event type %d is none of Set, Delete, Gone and Merged", partition, events[i].Key, t)
		}
	}
	if err := q.admit(ctx, operation, p); err != nil {
		return err
	}
	defer q.mu.Unlock()
	if len(events) > 0 {
		q.runLocked().add(p, events)
		q.pending += len(events)
	}
	q.reachLocked(p, version)
	q.settleLocked()
	return nil
}

// Replace stages a complete list of a partition, which becomes one batch: objects that are known
// and not in the list will be deleted. version is that of the list, "" if unknown. The queue
// keeps items, and may reorder them; the caller must not use the slice again, whatever Replace
// returns. Errors are those of Push, and ErrOlder if the partition has already reached a newer
// version; nothing is taken then.
func (q *Queue[T]) Replace(
	ctx context.Context, partition, version string, items []Item[T], o ReplaceOptions,
) error {
	const operation = "replace"
	p, err := q.partition(operation, partition)
	if err != nil {
		return err
	}
	ascending := true
	for i := range items {
		if err := p.checkKey(operation, items[i].Key); err != nil {
			return err
		}
		ascending = ascending && (i == 0 || items[i-1].Key < items[i].Key)
	}
	if !ascending {
		items = q.ordered(items)
	}
	for i := range o.Stays {
		if err := p.checkKey(operation, o.Stays[i].Key); err != nil {
			return err
		}
	}
	if err := q.admit(ctx, operation, p); err != nil {
		return err
	}
	defer q.mu.Unlock()
	if order, ok := q.compare(version, p.reached); ok && order < 0 && !o.NewHistory {
		q.wakeProducerLocked()
		return fmt.Errorf("%w: the list of partition %q is of version %s, "+
			"the partition has reached version %s; "+
			"list again, or set NewHistory if the server's versions went back",
			ErrOlder, partition, version, p.reached)
	}
	s := q.openLocked()
	stays := slices.SortedFunc(slices.Values(o.Stays), func(a, b Unusable) int {
		return strings.Compare(a.Key, b.Key)
	})
	s.list = &list[T]{p, version, o.NewHistory, items, stays, o.Moved}
	q.pending += len(items)
	p.reached = version
	s.mark(p, version)
	q.settleLocked()
	return nil
}

// Bookmark notes that a partition has reached a version without a change. It moves the version
// of the last pending batch, and becomes a batch of its own only if nothing is pending. An empty
// version has no effect. Errors are those of Push.
func (q *Queue[T]) Bookmark(ctx context.Context, partition, version string) error {
	const operation = "bookmark"
	p, err := q.partition(operation, partition)
	if err != nil {
		return err
	}
	if err := q.admit(ctx, operation, p); err != nil {
		return err
	}
	defer q.mu.Unlock()
	q.reachLocked(p, version)
	q.settleLocked()
	return nil
}

// Resync adds a token that the consumer receives after everything pushed before it, and before
// anything pushed later. A caller should have one token pending at most. Resync does not wait.
// Errors: ErrClosed.
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

// Leave queues a batch that ends all known objects that leaves selects, by key and UID. They are
// marked Moved. Changes that were pushed before come before it. Leave does not wait. Errors:
// ErrClosed.
func (q *Queue[T]) Leave(leaves func(key, uid string) bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return q.closed
	}
	q.openLocked().leaves = leaves
	q.settleLocked()
	return nil
}

// ordered returns the items strictly ascending by key, the newest of each key, in the same
// array.
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

// reachLocked notes the version that a partition has reached at the end of the queue. It does
// not move back: a replay reaches nothing new.
func (q *Queue[T]) reachLocked(p *partition, version string) {
	if version == "" || version == p.reached {
		return
	}
	if order, ok := q.compare(version, p.reached); ok && order < 0 {
		return
	}
	p.reached = version
	q.lastLocked().mark(p, version)
}

// lastLocked returns the last segment, of any kind.
func (q *Queue[T]) lastLocked() *segment[T] {
	if n := len(q.segments); n > 0 {
		return q.segments[n-1]
	}
	return q.openLocked()
}

// runLocked returns the segment that events are added to.
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

// waiter is a producer that waits for room.
type waiter struct {
	wake      chan struct{} // has room for one signal
	partition *partition
}

func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default: // it has a signal
	}
}

// admit waits until fewer than Limit changes are pending and the producers that came earlier are
// through. It returns with q.mu held, or with an error.
func (q *Queue[T]) admit(ctx context.Context, operation string, p *partition) error {
	q.mu.Lock()
	err := q.refuseLocked(ctx, operation, p)
	if err == nil && (q.pending >= q.limit || len(q.waiters) > 0) {
		err = q.awaitRoomLocked(ctx, operation, p)
	}
	if err != nil {
		q.wakeProducerLocked()
		q.mu.Unlock()
	}
	return err
}

// awaitRoomLocked waits for room behind the producers that wait already; the lock is free meanwhile.
func (q *Queue[T]) awaitRoomLocked(ctx context.Context, operation string, p *partition) error {
	w := &waiter{make(chan struct{}, 1), p}
	q.waiters = append(q.waiters, w)
	q.wakeProducerLocked()
	var err error
	for err == nil && (q.waiters[0] != w || q.pending >= q.limit) {
		q.mu.Unlock()
		select {
		case <-w.wake:
		case <-q.done:
		case <-ctx.Done():
		}
		q.mu.Lock()
		err = q.refuseLocked(ctx, operation, p)
	}
	q.waiters = slices.DeleteFunc(q.waiters, func(o *waiter) bool { return o == w })
	return err
}

// refuseLocked returns why nothing of a call is taken, or nil.
func (q *Queue[T]) refuseLocked(ctx context.Context, operation string, p *partition) error {
	switch {
	case q.closed != nil:
		return q.closed
	case p.removed:
		return errUnknown(operation, p.prefix)
	case ctx.Err() != nil:
		return fmt.Errorf("delta: %s of partition %q (%d changes pending, limit %d): %w",
			operation, p.prefix, q.pending, q.limit, ctx.Err())
	}
	return nil
}

// wakeProducerLocked signals the producer that has waited longest if there is room.
func (q *Queue[T]) wakeProducerLocked() {
	if len(q.waiters) > 0 && q.pending < q.limit {
		q.waiters[0].signal()
	}
}

// settleLocked is called by a producer after it has changed the queue: it wakes the consumer,
// and the next producer if there is still room.
func (q *Queue[T]) settleLocked() {
	if q.idle {
		q.idle = false
		q.ready <- struct{}{} // has room: idle is set only with an empty channel
	}
	q.wakeProducerLocked()
}
