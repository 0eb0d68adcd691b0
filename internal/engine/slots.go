package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidings-go/tidings/internal/slot"
)

// merged is a token of the queue. It is closed when everything before it is applied.
type merged chan struct{}

// Merge lists the objects of slots that have come into Options.Slots, and returns when they are
// cached. A collection that is not synced has them in its first list, and one that stops meanwhile
// needs none. A Holding calls it.
func (c *Collection[T]) Merge(ctx context.Context, slots slot.Set) error {
	if !c.HasSynced() {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running, results := c.startMerges(ctx, slots)
	if running == nil {
		return nil
	}
	defer context.AfterFunc(running, func() { cancel(ErrStopped) })()
	var err error
	for range cap(results) {
		err = errors.Join(err, <-results)
	}
	if err != nil && running.Err() == nil {
		return fmt.Errorf("informer %s: %w", c.Name(), err)
	}
	applied := make(merged)
	if c.queue.Resync(applied) != nil {
		return nil // it has stopped
	}
	select {
	case <-applied:
		return nil
	case <-ctx.Done():
		if running.Err() != nil {
			return nil
		}
		return fmt.Errorf("informer %s: %w", c.Name(), context.Cause(ctx))
	}
}

// startMerges starts a goroutine for each part, which Run waits for: it calls the transform. The
// goroutine sends the result of its merge. running is the context of Run, nil if it does not run.
func (c *Collection[T]) startMerges(
	ctx context.Context, slots slot.Set,
) (running context.Context, results chan error) {
	p := &c.parts
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil || p.ending {
		return nil, nil
	}
	results = make(chan error, len(p.list))
	for _, part := range p.list {
		p.group.Go(func() { results <- part.merge(ctx, slots) })
	}
	return p.running, results
}

// merge lists the objects of slots by the reflector of a part. A part that was removed meanwhile
// needs none.
func (p *part[T]) merge(ctx context.Context, slots slot.Set) error {
	select {
	case <-p.begun:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	running := p.running.Load()
	err := running.reflector.Merge(ctx, running.source, slots)
	if err != nil && p.ctx.Err() != nil {
		return nil
	}
	return err
}

// Leave removes the objects of slots that have gone from Options.Slots. Handlers receive deletes
// that are marked as moved. An error is that of the context, while the queue is full. A Holding
// calls it.
func (c *Collection[T]) Leave(ctx context.Context, slots slot.Set) error {
	for _, p := range c.parts.present() {
		if running := p.running.Load(); running != nil {
			if err := running.reflector.Settle(ctx); err != nil {
				return fmt.Errorf("informer %s: %w", c.Name(), err)
			}
		}
	}
	key := c.o.Slots.Key()
	c.queue.Leave(func(objectKey, uid string) bool { //nolint:errcheck // a closed queue has nothing to hand on
		return slots.Has(key.Of(uid, slot.NamespaceOf(objectKey)))
	})
	return nil
}
