package engine

import (
	"errors"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/fanout"
)

// Subscription is a *fanout.Subscription[T] without its type parameter.
type Subscription interface {
	Name() string
	Remove()
	Done() <-chan struct{}
	Synced() <-chan struct{}
	HasSynced() bool
	Stats() fanout.Stats
}

// Subscribe adds a handler. Its initial set is the cache, unless withoutInitial is set. It
// returns ErrStopped once the collection has stopped, and the errors of the options.
func (c *Collection[T]) Subscribe(
	deliver func(change.Change[T]), withoutInitial bool, o fanout.SubscriptionOptions,
) (*fanout.Subscription[T], error) {
	c.applyMu.Lock()
	defer c.applyMu.Unlock()
	var initial fanout.Items[T]
	if !withoutInitial {
		initial = c.store.Snapshot().Cursor().Next
	}
	o.OnPanic = c.recording.onPanic(o.OnPanic)
	subscription, err := c.log.Subscribe(deliver, initial, o)
	if errors.Is(err, fanout.ErrClosed) {
		return nil, ErrStopped
	}
	if err == nil && o.ResyncPeriod > 0 {
		c.needResyncTimer()
	}
	return subscription, err
}
