package queue

import (
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Options are the options of a [Queue]. The zero value is ready.
type Options[R comparable] struct {
	// Workers is the number of workers that may call Get; 0 is 1.
	Workers int
	// Flow returns the flow of a key. Nil is the part before the slash: the namespace.
	Flow func(key string) string
	// Step is the time after which a waiting key rises by one band; 0 is 10 seconds.
	Step time.Duration
	// FirstDelay is the delay after the first failure of a key. Each further failure doubles it,
	// up to MaxDelay. Up to a tenth is added at random. The defaults are those of
	// workqueue's rate limiter: 5 milliseconds, and 1,000 seconds.
	FirstDelay, MaxDelay time.Duration
	// Limiter replaces the delays. Its When is called once per failure, its Forget
	// after a success. Nil keeps the delays above.
	Limiter workqueue.TypedRateLimiter[string]
	// Jitter returns a number in [0, 1); nil returns a random one.
	Jitter func() float64
	// Requeued is the reason of runs that a result has requested, and Retried the reason of runs
	// after a failure.
	Requeued, Retried R
	// Metrics makes the metrics of workqueue, under Name. Nil is no metrics.
	Metrics workqueue.MetricsProvider
	Name    string
	// Panicked is called with the panic of the Limiter or of Metrics, and the key that it was for.
	// Then there are the delays above, and no metrics. It must not use the queue. Nil lets the panic
	// go on.
	Panicked func(option, key string, value any)
}

// panicsOf returns Panicked for an option, nil without it.
func (o *Options[R]) panicsOf(option string) func(value any) {
	if o.Panicked == nil {
		return nil
	}
	return func(value any) { o.Panicked(option, "", value) }
}

// recovered is deferred for the panic of an option.
func (o *Options[R]) recovered(option, key string) {
	if o.Panicked == nil {
		return
	}
	if value := recover(); value != nil {
		o.Panicked(option, key, value)
	}
}

func (o Options[R]) withDefaults() Options[R] {
	o.Workers = max(o.Workers, 1)
	if o.Flow == nil {
		o.Flow = namespaceOf
	}
	if o.Step <= 0 {
		o.Step = 10 * time.Second
	}
	if o.FirstDelay <= 0 {
		o.FirstDelay = 5 * time.Millisecond
	}
	if o.MaxDelay <= 0 {
		o.MaxDelay = 1000 * time.Second
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	return o
}

func namespaceOf(key string) string {
	namespace, _, ok := strings.Cut(key, "/")
	if !ok {
		return ""
	}
	return namespace
}

// Ask is a request for a run of a key.
type Ask[R comparable] struct {
	Band   Band
	Reason R
	// Echo reports whether the change is a write of the key's own last run: such a change does
	// not end the wait after a failure.
	Echo bool
}

// Item is a key that a worker has taken.
type Item[R comparable] struct {
	Key string
	// Reasons are the reasons of the asks since the last run: up to eight different ones, in the
	// order in which they came. They are valid until the worker's next Get.
	Reasons []Counted[R]
	// MoreReasons counts the asks whose reasons were left out.
	MoreReasons int
	// Failures is the number of failures of the key in a row.
	Failures int
	// Waited is the time for which the key was queued.
	Waited time.Duration
	// Band is the band in which the key was queued.
	Band Band

	entry uint32
	began int64
}

// Result is the way in which a run has ended.
type Result uint8

// The results.
const (
	// Succeed forgets the failures of the key. Outcome.After is the delay until another run; 0 is
	// no other run. It replaces the delay of an earlier result.
	Succeed Result = iota
	// Fail is a failure that only a change can mend.
	Fail
	// Retry is a failure that is tried again: after the delay of its failures, earlier if the
	// object changes, or after Outcome.After and not before.
	Retry
	// Park gives the item back unused, until Wake is called. A Wake since Get counts too.
	Park
)

// Outcome is a result with its delay.
type Outcome struct {
	Result Result
	// After is the time after which the key runs again. After a failure it replaces the delay, and no
	// change shortens it.
	After time.Duration
	// Least is the least delay after a failure.
	Least time.Duration
}
