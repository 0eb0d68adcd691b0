package delta

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// waiter is a producer that waits for room. Its channel has room for one signal.
type waiter struct {
	wake  chan struct{}
	scope *scope
}

// admit waits until fewer than Limit changes are pending and the producers that came earlier are through. It returns with q.mu held, or with an error.
func (q *Queue[T]) admit(ctx context.Context, operation string, sc *scope) error {
	scope := sc.prefix
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delta: %s of scope %q: %w", operation, scope, err)
	}
	q.mu.Lock()
	if q.closed == nil && !sc.removed && q.pending < q.limit && len(q.waiters) == 0 {
		return nil
	}
	if q.closed != nil || sc.removed {
		defer q.mu.Unlock()
		return cmp.Or(q.closed, errUnknown(operation, scope))
	}
	w := &waiter{make(chan struct{}, 1), sc}
	q.waiters = append(q.waiters, w)
	q.wakeProducerLocked()
	q.mu.Unlock()
	var err error
	for {
		select {
		case <-w.wake:
		case <-q.done:
		case <-ctx.Done():
			err = ctx.Err()
		}
		q.mu.Lock()
		if err == nil && q.closed == nil && !sc.removed && (q.waiters[0] != w || q.pending >= q.limit) {
			q.mu.Unlock()
			continue
		}
		break
	}
	q.waiters = slices.DeleteFunc(q.waiters, func(o *waiter) bool { return o == w })
	switch {
	case q.closed != nil:
		err = q.closed
	case sc.removed:
		err = errUnknown(operation, scope)
	case err != nil:
		err = fmt.Errorf("delta: %s of scope %q waits for room (%d changes pending, limit %d): %w", operation, scope, q.pending, q.limit, err)
	default:
		return nil
	}
	q.wakeProducerLocked()
	q.mu.Unlock()
	return err
}

// wakeProducerLocked tells the producer that has waited longest that there is room, if there is.
func (q *Queue[T]) wakeProducerLocked() {
	if len(q.waiters) == 0 || q.pending >= q.limit {
		return
	}
	select {
	case q.waiters[0].wake <- struct{}{}:
	default: // it has been told
	}
}

// settleLocked is called by a producer after it has changed the queue: it wakes the consumer, and the next producer if there is still room.
func (q *Queue[T]) settleLocked() {
	if q.idle {
		q.idle = false
		q.ready <- struct{}{} // has room: idle is set only with an empty channel
	}
	q.wakeProducerLocked()
}
