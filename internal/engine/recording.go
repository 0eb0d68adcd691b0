package engine

import (
	"context"
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
	rewound  chan struct{}             // one token: the versions of the server went back
}

// rewind leaves the report of a server that went back to the goroutine of reportEvents, because a
// report takes as long as the recording that is written.
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

// recorder records the reads of the parts.
type recorder[T any] struct {
	*subscriptions[T]
	begun sync.Once // the goroutine of reportEvents was started
}

// record returns the source of a part, recorded if the options have a recorder. end ends that.
func (r *recorder[T]) record(
	p *part[T], src source.Source[T], o *reflector.Options[T],
) (recorded source.Source[T], end func()) {
	end = func() {}
	if o.Recorder == nil || o.Recorder.Ring() == nil {
		return src, end
	}
	ring := o.Recorder.Ring()
	r.recording.ring.Store(ring)
	o.OnRewind = r.recording.rewind
	r.begun.Do(func() { r.goroutines.start("recorder", r.reportEvents) })
	return source.Record(src, ring, r.Name(), func() tape.Base { return r.base(p) })
}

// base returns the cached objects of a part.
func (r *recorder[T]) base(p *part[T]) tape.Base {
	snapshot, describe := r.store.Snapshot(), r.o.Describe
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

// reportEvents reports handlers that become stuck, and servers that went back, until Run ends. Run
// waits for the report that it is making.
func (r *recorder[T]) reportEvents(ctx context.Context) {
	tick := time.NewTicker(stuckInterval)
	defer tick.Stop()
	for stuck := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-r.recording.rewound:
			r.recording.event(tape.ReasonRewind)
			continue
		case <-tick.C:
		}
		before := stuck
		stuck = 0
		for _, s := range r.log.Subscriptions() {
			if HandlerHealth(s).State == health.HandlerStuck {
				stuck++
			}
		}
		if stuck > before {
			r.recording.event(tape.ReasonStuck)
		}
	}
}
