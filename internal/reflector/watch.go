package reflector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

var (
	// errShortWatch is a watch that ended at once and brought nothing.
	errShortWatch = errors.New("the server ended the watch at once, without anything new")
	// errBackwards is a bookmark from before the version that was reached, or, in a watch that
	// was resumed from before that, any such event.
	errBackwards = errors.New("the server sent an event of an older version than it has sent before")
	// errOddBookmark is a bookmark of no number from a server whose versions were numbers.
	errOddBookmark = fmt.Errorf("%w: a bookmark of a version that is no number", source.ErrMalformed)
)

// fruitlessWatches is how many watches in a row may be fruitless, that is refused, ended with
// an error event or within a second, or not understood, with nothing new between them, before
// the collection is listed.
const fruitlessWatches = 3

// watch follows the changes from the last version. What leads out of it: the end
// of the stream (watch), an expired version (list), an error (backoff).
func (r *Reflector[T]) watch(ctx context.Context) stateFunc[T] {
	if r.stream == nil {
		if (r.version == "" || r.version == "0") && !r.fresh {
			return r.list() // without a version there is nowhere to resume
		}
		if r.doubtful && r.looks < mostLooks {
			return r.probe
		}
		r.fresh = false
		if err := r.openStream(ctx, source.WatchOptions{Version: r.resume}); err != nil {
			return r.ended(ctx, err)
		}
		r.looks = 0
		r.recorder.enter(health.Watching)
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
	wasOpen := r.stream != nil
	end := endingOf(err, wasOpen)
	lasted := wasOpen && time.Since(r.opened) >= shortWatch
	r.closeStream()
	if end == finished {
		r.touch()
	} else {
		r.failed(ctx, stepOf(wasOpen), err)
	}
	if lasted && (end == finished || end == torn || end == busy || end == broken) {
		r.useful() // a watch that lasted is no failing server
		r.lists = 0
	}
	if lasted && !r.progressed && (end == finished || end == torn) {
		r.doubt() // not even the bookmark that servers send before they end a watch
	}
	if ctx.Err() != nil {
		return nil
	}
	switch end {
	case stopped:
		return nil
	case torn:
		r.noteError(err)
		r.recorder.enter(health.Silent)
		return r.watch
	case finished:
		return r.finished(ctx, lasted)
	case broken:
		if wasOpen && !lasted && !r.moved {
			return r.wasFruitless(ctx, err, end, false)
		}
		r.answering = false
		return r.retry(ctx, err, r.watch)
	case expired:
		if r.failures == 0 {
			// No failure of the server, but one that all its clients may have at once.
			r.failures++
			r.noteError(err)
			r.recorder.enter(health.Listing)
			r.wait, r.afterBackoff = r.o.Backoff.delay(max(1, r.lists), 0), r.list()
			return r.backoff
		}
		return r.retry(ctx, err, r.list())
	case lost:
		return r.retry(ctx, err, r.list())
	case undecodable, refused:
		return r.wasFruitless(ctx, err, end, wasOpen)
	default: // busy
		return r.retry(ctx, err, r.watch)
	}
}

// finished decides what follows a watch that the server ended in good order.
func (r *Reflector[T]) finished(ctx context.Context, lasted bool) stateFunc[T] {
	switch {
	case lasted:
		return r.watch
	case r.moved:
		r.wait, r.afterBackoff = r.o.Backoff.delay(max(1, r.lists), 0), r.watch
		return r.backoff
	default:
		return r.wasFruitless(ctx, fmt.Errorf("watch %s: %w", r.o.Name, errShortWatch), finished, true)
	}
}

// wasFruitless decides what follows a fruitless watch. The first ones are resumed. Then the
// collection is listed, but only from a server that answers: before the last attempt, one that
// refuses or cuts watches is asked for its version, so that one which was away is not listed by
// all its clients when it is back.
func (r *Reflector[T]) wasFruitless(ctx context.Context, err error, end ending, answers bool) stateFunc[T] {
	r.fruitless++
	again := end == undecodable && r.undecodable
	r.undecodable = r.undecodable || end == undecodable
	r.answering = r.answering || answers
	switch {
	case again, r.barren, r.fruitless >= fruitlessWatches && r.answering:
		err = fmt.Errorf("%d watches in a row brought nothing new, so the collection is listed again: %w", r.fruitless, err)
		r.barren = true
		return r.retry(ctx, err, r.list())
	case r.fruitless >= fruitlessWatches-1 && !r.answering:
		return r.retry(ctx, err, r.probe)
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

// handOn pushes what the events say to the queue and moves the version.
func (r *Reflector[T]) handOn(ctx context.Context, events []source.Event[T]) error {
	if len(events) == 0 {
		return nil
	}
	version, resume, highest := r.version, r.resume, r.highest
	var bad error
	r.changes = r.changes[:0]
	for i := range events {
		event := &events[i]
		mark := event.Type == source.Bookmark || event.Type == source.InitialEventsEnd
		if (mark || r.stream.behind) && r.isOlder(event.Version, version) {
			bad = fmt.Errorf("%w: %s, from %s", errBackwards, event.Version, version)
			continue
		}
		if mark && event.Version != "" && isNumber(version) && !isNumber(event.Version) {
			bad = fmt.Errorf("%w: %.40q, from %s", errOddBookmark, event.Version, version)
			continue
		}
		r.stream.behind = r.stream.behind && event.Version == "" // it has caught up
		version, resume = r.moveTo(event.Type, event.Version, version, resume)
		highest = r.higher(highest, event.Version)
		switch event.Type {
		case source.Added, source.Modified:
			r.changed(event.Item)
		case source.Deleted:
			r.deleted(event.Item)
		}
	}
	changed := len(r.changes) > 0
	var err error
	if changed {
		err = r.queue.Push(ctx, r.o.Scope, version, r.changes)
	} else {
		err = r.queue.Bookmark(ctx, r.o.Scope, version)
	}
	clear(r.changes)
	if err != nil {
		return err
	}
	r.handedOn(version, resume, highest, changed)
	if errors.Is(bad, errBackwards) {
		r.doubt()
	}
	return bad
}

// moveTo takes note of the version of an event, and returns which version is reached with it
// and where a watch is to resume after it.
//
// A server may delete several objects at one version, such as events whose lease ends
// (kubernetes/kubernetes#110210). A watch from that version would not bring those of them
// that the stream has not brought yet, so it resumes from the version before, until a later
// version or a bookmark closes the group. What comes twice is dropped by the queue.
func (r *Reflector[T]) moveTo(t source.EventType, to, version, resume string) (reached, resumeAt string) {
	at := r.stream.at
	if to == "" {
		return version, resume
	}
	r.stream.at = to
	switch {
	case t != source.Deleted:
		return to, to
	case to == at:
		return to, resume
	case r.isOlder(at, to):
		return to, at
	default:
		return to, to
	}
}

// isOlder reports whether version a is known to be before b.
func (r *Reflector[T]) isOlder(a, b string) bool {
	order, ok := r.o.Compare(a, b)
	return ok && order < 0
}

// isNumber reports whether a version is one that can be compared.
func isNumber(version string) bool {
	_, ok := delta.CompareDecimal(version, version)
	return ok
}

// handedOn notes that everything up to a version was handed on. One that is lower than the
// highest comes from events in another order, or from a server that was set back.
func (r *Reflector[T]) handedOn(version, resume, highest string, changed bool) {
	news := changed // what is no number may be another one each time
	if isNumber(version) {
		news = version != r.version || resume != r.resume
	}
	if r.isOlder(r.highest, highest) {
		r.doubtful = false // the server is where the watch began, and further
	}
	r.version, r.resume, r.highest = version, resume, highest
	if r.isOlder(version, highest) {
		r.doubt()
	}
	r.progressed = true
	r.heard()
	if news {
		r.moved, r.undecodable = true, false
		r.useful()
	}
}

// useful notes that watching works.
func (r *Reflector[T]) useful() {
	r.failures, r.fruitless, r.answering, r.barren = 0, 0, false, false
}
