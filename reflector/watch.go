package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/tidings-go/tidings/delta"
	"github.com/tidings-go/tidings/source"
)

var (
	// errOutlived is a watch that the server should have ended.
	errOutlived = errors.New("the watch outlived the timeout it was opened with: its connection is taken for dead")
	// errShortWatch is a watch that ended at once and brought nothing.
	errShortWatch = errors.New("the server ended the watch at once, without an event")
)

// watch follows the changes from the last version. What leads out of it: the end
// of the stream (watch), an expired version (list), an error (backoff).
func (r *Reflector[T]) watch(ctx context.Context) stateFunc[T] {
	if r.stream == nil {
		if (r.version == "" || r.version == "0") && !r.fresh {
			return r.list() // without a version there is nowhere to resume
		}
		r.fresh = false
		if err := r.openStream(ctx, source.WatchOptions{Version: r.version}); err != nil {
			return r.ended(ctx, err)
		}
		r.record.enter(Watching)
	}
	for {
		events, err := r.stream.Next()
		if err != nil {
			return r.ended(ctx, r.streamError(err))
		}
		if err := r.handOn(ctx, events); err != nil {
			return r.ended(ctx, err)
		}
	}
}

// ended decides what follows a watch.
func (r *Reflector[T]) ended(ctx context.Context, err error) stateFunc[T] {
	lasted := time.Since(r.opened)
	wasOpen := r.stream != nil
	r.closeStream()
	if !wasOpen || !errors.Is(err, io.EOF) {
		r.failed(ctx, stepOf(wasOpen), err)
	}
	if wasOpen && lasted >= shortWatch {
		r.failures = 0 // a watch that lasted is no failing server
	}
	switch {
	case ctx.Err() != nil || errors.Is(err, delta.ErrClosed):
		return nil
	case errors.Is(err, errOutlived):
		r.record.change(func(h *Health) { h.LastError, h.LastErrorAt = err, time.Now() })
		r.record.enter(Silent)
		return r.watch
	case errors.Is(err, io.EOF) && (lasted >= shortWatch || r.progressed):
		if lasted < shortWatch {
			r.wait, r.afterBackoff = r.o.Backoff.delay(1, 0), r.watch
			return r.backoff
		}
		return r.watch
	case errors.Is(err, io.EOF):
		return r.retry(ctx, fmt.Errorf("watch %s: %w", r.o.Name, errShortWatch), r.watch)
	case needsList(err):
		if source.IsExpired(err) && r.failures == 0 {
			r.failures++
			r.record.change(func(h *Health) { h.LastError, h.LastErrorAt = err, time.Now() })
			return r.list()
		}
		return r.retry(ctx, err, r.list())
	case isDecoding(err):
		if r.undecodable {
			return r.retry(ctx, err, r.list())
		}
		r.undecodable = true
		return r.retry(ctx, err, r.watch)
	default:
		return r.retry(ctx, err, r.watch)
	}
}

// stepOf says what the end of a watch ended.
func stepOf(wasOpen bool) Step {
	if wasOpen {
		return RunningWatch
	}
	return OpenWatch
}

func isDecoding(err error) bool {
	sourceErr, ok := errors.AsType[*source.Error](err)
	return ok && sourceErr.Phase == source.Decoding
}

// openStream begins a watch that is torn down when it outlives its timeout.
func (r *Reflector[T]) openStream(ctx context.Context, o source.WatchOptions) error {
	o.Timeout = r.o.WatchTimeout + rand.N(r.o.WatchTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout+r.o.Grace, errOutlived)
	r.record.change(func(h *Health) { h.Watches++ })
	r.opened = time.Now()
	r.progressed = false
	stream, err := r.source.Watch(ctx, o)
	if err != nil {
		err = causeOf(ctx, err)
		cancel()
		return err
	}
	r.stream, r.streamEnd = &causedStream[T]{stream, ctx}, cancel
	return nil
}

// causedStream is a stream whose errors say why its context ended.
type causedStream[T any] struct {
	source.Stream[T]
	ctx context.Context
}

func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errOutlived) {
		return cause
	}
	return err
}

func (r *Reflector[T]) streamError(err error) error {
	if s, ok := r.stream.(*causedStream[T]); ok {
		return causeOf(s.ctx, err)
	}
	return err
}

func (r *Reflector[T]) closeStream() {
	if r.stream == nil {
		return
	}
	r.stream.Close() //nolint:errcheck // the stream is over whatever it answers
	r.streamEnd()
	r.stream, r.streamEnd = nil, nil
}

// handOn pushes what the events say to the queue and moves the version.
func (r *Reflector[T]) handOn(ctx context.Context, events []source.Event[T]) error {
	if len(events) == 0 {
		return nil
	}
	version := r.version
	r.changes = r.changes[:0]
	for i := range events {
		event := &events[i]
		if event.Version != "" {
			version = event.Version
		}
		switch event.Type {
		case source.Added, source.Modified:
			r.changed(event.Item)
		case source.Deleted:
			r.deleted(event.Item)
		}
	}
	var err error
	if len(r.changes) == 0 {
		err = r.queue.Bookmark(ctx, r.o.Scope, version)
	} else {
		err = r.queue.Push(ctx, r.o.Scope, version, r.changes)
	}
	clear(r.changes)
	if err != nil {
		return err
	}
	r.version = version
	r.progressed = true
	r.undecodable = false
	r.heard()
	r.failures = 0
	return nil
}
