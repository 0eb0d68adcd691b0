package reflector

import (
	"context"

	"github.com/tidings-go/tidings/internal/engine/delta"
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
