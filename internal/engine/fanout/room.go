package fanout

import (
	"context"
	"fmt"
)

// AwaitRoom waits while a subscription with the policy Block is at its limit.
// A publisher that wants backpressure calls it before Publish; without such a
// subscription it costs next to nothing. It returns ErrClosed after Close, and an error
// that names a handler without room when the context ends.
func (l *Log[T]) AwaitRoom(ctx context.Context) error {
	if l.blocking.Load() == 0 && !l.isClosed() {
		return nil
	}
	l.waiters.Add(1)
	defer l.waiters.Add(-1)
	for {
		full := l.full()
		switch {
		case l.isClosed():
			return fmt.Errorf("fanout: wait for room: %w", ErrClosed)
		case full == nil:
			return nil
		}
		select {
		case <-l.room:
		case <-l.closing:
		case <-ctx.Done():
			return fmt.Errorf("fanout: wait for room in the backlog of handler %q, "+
				"whose policy is Block: %w", full.name, context.Cause(ctx))
		}
	}
}

// isClosed reports whether Close was called.
func (l *Log[T]) isClosed() bool {
	select {
	case <-l.closing:
		return true
	default:
		return false
	}
}

// full returns a Block subscription that is at its limit, or nil.
func (l *Log[T]) full() *Subscription[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.subs {
		if s.policy == Block && s.countable() >= s.limit {
			return s
		}
	}
	return nil
}

// offerRoom tells AwaitRoom, if it waits, that a call has made room.
func (s *Subscription[T]) offerRoom() {
	if s.log.waiters.Load() > 0 && s.countable() < s.limit {
		s.log.roomChanged()
	}
}

// roomChanged leaves the token for AwaitRoom.
func (l *Log[T]) roomChanged() {
	select {
	case l.room <- struct{}{}:
	default:
	}
}
