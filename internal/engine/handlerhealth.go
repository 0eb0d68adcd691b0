package engine

import (
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/fanout"
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

// HandlerHealth describes the handler of a subscription.
func HandlerHealth(s Subscription) health.Handler {
	stats := s.Stats()
	h := health.Handler{
		Name: s.Name(), State: health.Idle, Synced: s.HasSynced(),
		Pending: stats.Pending, Delivered: stats.Delivered, Folded: stats.Folded,
		LeftOut: stats.LeftOut, Panics: stats.Panics, Unseen: stats.Unseen,
		Running: stats.Key, RunningSince: stats.Since,
	}
	select {
	case <-s.Done():
		h.State = health.Removed
		return h
	default:
	}
	switch {
	case stats.Unseen > 0:
		h.State = health.Stuck
	case stats.Behind:
		h.State = health.Behind
	case stats.Pending > 0 || !stats.Since.IsZero():
		h.State = health.Busy
	}
	return h
}
