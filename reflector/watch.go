package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/delta"
	"github.com/tidings-go/tidings/source"
)

var (
	// errShortWatch is a watch that ended at once and brought nothing.
	errShortWatch = errors.New("the server ended the watch at once, without an event")
	// errBackwards is a bookmark from before the version that the watch began at.
	errBackwards = errors.New("the server sent a bookmark of an older version than the watch was asked for")
)

// watch follows the changes from the last version. What leads out of it: the end
// of the stream (watch), an expired version (list), an error (backoff).
func (r *Reflector[T]) watch(ctx context.Context) stateFunc[T] {
	if r.stream == nil {
		if (r.version == "" || r.version == "0") && !r.fresh {
			return r.list() // without a version there is nowhere to resume
		}
		if r.doubtful {
			return r.probe
		}
		r.fresh = false
		if err := r.openStream(ctx, source.WatchOptions{Version: r.version}); err != nil {
			return r.ended(ctx, err)
		}
		r.record.enter(Watching)
		if r.reached(); r.doubtful {
			return r.probe
		}
	}
	for {
		events, err := r.stream.Next()
		if err != nil {
			return r.ended(ctx, err)
		}
		r.touch()
		if err := r.handOn(ctx, events); err != nil {
			return r.ended(ctx, err)
		}
	}
}

// ended decides what follows a watch.
func (r *Reflector[T]) ended(ctx context.Context, err error) stateFunc[T] {
	lasted := time.Since(r.opened)
	wasOpen := r.stream != nil
	finished := wasOpen && errors.Is(err, io.EOF) // an EOF in the place of an answer is a broken connection
	r.closeStream()
	if finished {
		r.touch()
	} else {
		r.failed(ctx, stepOf(wasOpen), err)
	}
	if wasOpen && lasted >= shortWatch {
		r.failures = 0 // a watch that lasted is no failing server
	}
	if wasOpen && lasted >= shortWatch && !r.progressed && (finished || isSilent(err)) {
		r.doubt() // not even the bookmark that servers send before they end a watch
	}
	switch {
	case ctx.Err() != nil || errors.Is(err, delta.ErrClosed):
		return nil
	case isSilent(err):
		r.record.change(func(h *Health) { h.LastError, h.LastErrorAt = err, time.Now() })
		r.record.enter(Silent)
		return r.watch
	case finished && (lasted >= shortWatch || r.progressed):
		if lasted < shortWatch {
			r.wait, r.afterBackoff = r.o.Backoff.delay(1, 0), r.watch
			return r.backoff
		}
		return r.watch
	case finished:
		return r.retry(ctx, fmt.Errorf("watch %s: %w", r.o.Name, errShortWatch), r.watch)
	case needsList(err):
		if source.IsExpired(err) && r.failures == 0 {
			// No failure of the server, but one that all its clients may have at once.
			r.failures++
			r.record.change(func(h *Health) { h.LastError, h.LastErrorAt = err, time.Now() })
			r.record.enter(Listing)
			r.wait, r.afterBackoff = r.o.Backoff.delay(1, 0), r.list()
			return r.backoff
		}
		return r.retry(ctx, err, r.list())
	case isDecoding(err) || isInvalid(err):
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

// isInvalid reports whether the server cannot make sense of what a watch was asked for,
// which may be the version, if that came from something else than the server.
func isInvalid(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// handOn pushes what the events say to the queue and moves the version.
func (r *Reflector[T]) handOn(ctx context.Context, events []source.Event[T]) error {
	if len(events) == 0 {
		return nil
	}
	version := r.version
	var backwards error
	r.changes = r.changes[:0]
	for i := range events {
		event := &events[i]
		if order, ok := delta.CompareDecimal(event.Version, version); event.Type == source.Bookmark && ok && order < 0 {
			backwards = fmt.Errorf("%w: %s, from %s", errBackwards, event.Version, version)
			continue
		}
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
	if order, ok := delta.CompareDecimal(version, r.version); ok && order > 0 {
		r.doubtful = false // the server is where the watch began, and further
	}
	r.version = version
	r.progressed = true
	r.undecodable = false
	r.heard()
	r.failures = 0
	if backwards != nil {
		r.doubt()
	}
	return backwards
}
