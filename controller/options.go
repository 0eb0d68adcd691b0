package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/source"
)

// Options are the choices of a [Controller]. Name is required.
type Options[T tidings.Object] struct {
	// Name is the name of the controller in errors, logs, health and metrics.
	Name string
	// Workers is the number of calls that may run at once, up to 10,000; 0 is 1. A key has one call at
	// a time. With several workers, the keys of one flow have all of them but one.
	Workers int
	// Guard is the guard of the clients that the calls write with. Then a call begins only when the
	// caches show the writes of the earlier calls of its key. Nil: calls may read stale caches.
	Guard *Guard
	// Slots divides the objects among several processes, which together have one call per key at a
	// time; nil does not divide them. It needs a Guard.
	Slots *Slots
	// Secondaries are the other informers that calls read, with the keys that their changes lead to.
	Secondaries []Secondary
	// Ignore reports whether an update of the object needs no call; nil ignores none. An update that
	// begins or ends a deletion, or replaces the object, is never ignored.
	Ignore func(old, new T) bool
	// Flow returns the flow of a key. Flows take turns, so that a flow with many keys does not hold up
	// the others. Nil is the namespace.
	Flow func(key string) string
	// Timeout is the time after which the context of a call ends; 0 is no limit.
	Timeout time.Duration
	// FirstDelay is the delay after the first error of a key, and MaxDelay the longest one. The
	// defaults are 5 milliseconds and 1,000 seconds, those of workqueue. The least MaxDelay is a
	// millisecond.
	FirstDelay, MaxDelay time.Duration
	// RateLimiter replaces these delays; nil keeps them.
	RateLimiter workqueue.TypedRateLimiter[string]
	// Resync is the period after which each key is called without a change, a millisecond or more; 0
	// is never.
	Resync time.Duration
	// MaxStaleness holds calls back while an informer has received nothing from the server for longer;
	// 0 never holds them back. Bookmarks come about once a minute. A namespace that an informer
	// watches by itself, as the primary does, holds back the calls for its own keys alone.
	MaxStaleness time.Duration
	// StopGrace is the time that running calls have after the end of Run's context, before their own
	// contexts end. After as long again, Run returns without them. 0 is 10 seconds.
	StopGrace time.Duration
	// CrashOnPanic lets a panic in a call end the process. Without it, the panic is an error of that
	// call.
	CrashOnPanic bool
	// Metrics makes the metrics of workqueue, with Name as the name of the queue; nil makes none.
	Metrics workqueue.MetricsProvider
	// Tracer starts a span for each call; give one of package tracing. Nil starts none.
	Tracer source.Tracer
	// Logger receives warnings and errors; nil is slog.Default().
	Logger *slog.Logger
}

const (
	// leastPeriod is the least Options.MaxDelay and Resync. A shorter one keeps the processor busy.
	leastPeriod = time.Millisecond
	// mostWorkers bounds the goroutines of a controller.
	mostWorkers = 10_000
)

func (o Options[T]) check(primary inspect.Informer) error {
	durations := map[string]time.Duration{
		"Timeout": o.Timeout, "FirstDelay": o.FirstDelay, "MaxDelay": o.MaxDelay,
		"Resync": o.Resync, "MaxStaleness": o.MaxStaleness, "StopGrace": o.StopGrace,
	}
	for name, d := range durations {
		if d < 0 {
			return fmt.Errorf("%s is %v: use 0 or more", "Options."+name, d)
		}
	}
	for name, d := range map[string]time.Duration{"MaxDelay": o.MaxDelay, "Resync": o.Resync} {
		if d > 0 && d < leastPeriod {
			return fmt.Errorf("%s is %v: use %v or more, or 0 for the default",
				"Options."+name, d, leastPeriod)
		}
	}
	switch {
	case o.Workers < 0 || o.Workers > mostWorkers:
		return fmt.Errorf("Options.Workers is %d: use 1 to %d", o.Workers, mostWorkers)
	case o.MaxDelay > 0 && o.FirstDelay > o.MaxDelay:
		return fmt.Errorf("Options.FirstDelay is %v, longer than MaxDelay, which is %v",
			o.FirstDelay, o.MaxDelay)
	case o.Guard == nil && primary.Selects():
		return errors.New("the informer has a label or field selector, and the server reports " +
			"an object that leaves it as deleted: set Options.Guard, which asks whether it exists")
	case o.Slots == nil && primary.Slots() != nil:
		return fmt.Errorf("informer %s has Selection.Slots: set Options.Slots, and give the informer "+
			"its Held()", primary.Name())
	}
	if o.Slots != nil {
		return o.Slots.check(primary, o.Guard != nil)
	}
	return nil
}

func (o Options[T]) withDefaults() Options[T] {
	o.Workers = max(o.Workers, 1)
	if o.StopGrace == 0 {
		o.StopGrace = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Logger = o.Logger.With("controller", o.Name)
	return o
}

// Guard wraps the clients that controllers write with; package guard describes it.
type Guard = guard.Guard

// GuardOptions are the choices of a [Guard]. The zero value is ready.
type GuardOptions = guard.Options

// NewGuard returns a guard for the server that config names. It does not change config.
func NewGuard(config *rest.Config, o GuardOptions) (*Guard, error) { return guard.New(config, o) }
