package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidings-go/tidings/internal/engine/slot"
)

// merged is a token of the queue. It is closed when everything before it is applied.
type merged chan struct{}

// Merge returns when the objects of slots that have come into Options.Slots are cached: each part that
// was listed lists those that it lacks. The first list of a part has them in any case, and a collection
// that stops meanwhile needs none. A Holding calls it.
func (p *parts[T]) Merge(ctx context.Context, slots slot.Set) error {
	running, list := p.goroutines.running(), p.present()
	if running == nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(running, func() { cancel(ErrStopped) })()
	results := make(chan error, len(list))
	for _, one := range list {
		go func() { results <- one.merge(ctx, slots) }()
	}
	var err error
	for range list {
		err = errors.Join(err, <-results)
	}
	applied := make(merged)
	if err == nil && p.queue.Resync(applied) == nil {
		select {
		case <-applied:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err == nil || running.Err() != nil {
		return nil
	}
	return fmt.Errorf("informer %s: %w", p.Name(), err)
}

// merge waits until the queue has the part's objects of slots, or the part has been removed.
func (p *part[T]) merge(ctx context.Context, slots slot.Set) error {
	for running := p.running.Load(); running != nil; {
		err := running.reflector.Merge(ctx, slots)
		if p.ctx.Err() != nil {
			return nil
		}
		now := p.running.Load()
		if err != nil || now == running {
			return err
		}
		running = now // it has taken the place of one that has panicked
	}
	return nil
}

// Leave removes the objects of slots that have gone from Options.Slots. Handlers receive deletes
// that are marked as moved. An error is that of the context, while the queue is full. A Holding
// calls it.
func (p *parts[T]) Leave(ctx context.Context, slots slot.Set) error {
	for _, one := range p.present() {
		if running := one.running.Load(); running != nil {
			if err := running.reflector.Leave(ctx, slots); err != nil {
				return fmt.Errorf("informer %s: %w", p.Name(), err)
			}
		}
	}
	key := p.o.Slots.Key()
	p.queue.Leave(func(objectKey, uid string) bool { //nolint:errcheck // a closed queue has nothing to hand on
		return slots.Has(key.Of(uid, slot.NamespaceOf(objectKey)))
	})
	return nil
}
