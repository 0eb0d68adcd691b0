package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/fanout"
	"github.com/tidings-go/tidings/internal/engine/reflector"
	"github.com/tidings-go/tidings/internal/engine/tape"
	"github.com/tidings-go/tidings/source"
)

// recording is where the reads of a collection are recorded. It does not refer to the collection:
// the log, which outlives that, reports panics through it.
type recording struct {
	informer func() string             // its present name
	ring     atomic.Pointer[tape.Ring] // nil without a recorder
	begin    sync.Once                 // starts the goroutine of reportEvents
	rewound  chan struct{}             // one token: the versions of the server went back
}

func newRecording(informer func() string) *recording {
	return &recording{informer: informer, rewound: make(chan struct{}, 1)}
}

// rewind leaves the report of a server that went back to the goroutine of reportEvents, because
// a report takes as long as the recording that is written.
func (r *recording) rewind() {
	select {
	case r.rewound <- struct{}{}:
	default: // an earlier one waits
	}
}

// event reports an event that may be a reason to keep a recording. It may block.
func (r *recording) event(reason string) {
	if ring := r.ring.Load(); ring != nil {
		ring.Event(reason, r.informer())
	}
}

// onPanic returns a function that reports a panic before it calls next, which may be nil.
func (r *recording) onPanic(next func(fanout.Panic)) func(fanout.Panic) {
	return func(p fanout.Panic) {
		if p.Value != fanout.ErrGoexit { // a failing test
			r.event(tape.ReasonPanic)
		}
		if next != nil {
			next(p)
		}
	}
}

// ReportPanic reports a handler's panic that the log does not see, because the façade recovers
// from it.
func (c *Collection[T]) ReportPanic() { c.recording.event(tape.ReasonPanic) }

// record returns the source of a part, recorded if the options have a recorder. end ends that.
func (c *Collection[T]) record(
	p *part[T], src source.Source[T], o *reflector.Options[T],
) (recorded source.Source[T], end func()) {
	end = func() {}
	if o.Recorder == nil || o.Recorder.Ring() == nil {
		return src, end
	}
	ring := o.Recorder.Ring()
	c.recording.ring.Store(ring)
	o.OnRewind = c.recording.rewind
	c.recording.begin.Do(c.reportEvents)
	return source.Record(src, ring, c.Name(), func() tape.Base { return c.base(p) })
}

// base returns the cached objects of a part.
func (c *Collection[T]) base(p *part[T]) tape.Base {
	snapshot, describe := c.store.Snapshot(), c.o.Describe
	return tape.Base{
		Version: p.health().Version,
		Objects: func(yield func(tape.Object) bool) {
			for key, obj := range snapshot.Prefix(p.prefix) {
				version, uid := describe(obj)
				if !yield(tape.Object{Key: key, Version: version, UID: uid, Object: obj}) {
					return
				}
			}
		},
	}
}

// stuckInterval is the period of the search of recorded informers for stuck handlers.
const stuckInterval = 5 * time.Second

// reportEvents starts the goroutine that reports handlers that become stuck, and servers that went
// back, until Run ends. Run waits for the report that it is making.
func (c *Collection[T]) reportEvents() {
	c.parts.mu.Lock()
	ctx := c.parts.running
	c.parts.mu.Unlock()
	c.parts.group.Go(func() { // its caller is in the group
		c.label(ctx, "recorder")
		tick := time.NewTicker(stuckInterval)
		defer tick.Stop()
		for stuck := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-c.recording.rewound:
				c.recording.event(tape.ReasonRewind)
				continue
			case <-tick.C:
			}
			before := stuck
			if stuck = c.stuckHandlers(); stuck > before {
				c.recording.event(tape.ReasonStuck)
			}
		}
	})
}

// stuckHandlers returns the number of stuck handlers.
func (c *Collection[T]) stuckHandlers() (stuck int) {
	for _, s := range c.log.Subscriptions() {
		if HandlerHealth(s).State == health.HandlerStuck {
			stuck++
		}
	}
	return stuck
}
