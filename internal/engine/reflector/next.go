package reflector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
)

// errShortWatch is a watch that ended at once and brought nothing.
var errShortWatch = errors.New("the server ended the watch at once, without anything new")

const (
	// mostUseless is the number of watches in a row that may be useless before the collection is
	// listed: refused, ended with an error event or within a second, or not understood, with
	// nothing new between them.
	mostUseless = 3
	// shortWatch is the time that a watch must last for the next one to begin without a wait.
	shortWatch = time.Second
)

// watchEnded closes a watch that has ended, records how it ended, and returns the state that
// follows. stream is nil if the watch did not begin.
func (r *Reflector[T]) watchEnded(ctx context.Context, err error, stream *stream[T]) state[T] {
	w := endedWatch{ending: classify(err, stream != nil), err: err, begun: stream != nil}
	step, progressed := OpenWatch, false
	if w.begun {
		step, progressed = RunningWatch, stream.progressed
		w.lasted, w.moved = time.Since(stream.opened) >= shortWatch, stream.moved
		r.server.betweenBookmarks = cmp.Or(stream.longest, r.server.betweenBookmarks)
		stream.endSpan(ctx, err, true)
		stream.close()
	}
	r.mistrust.watchEnded(err)
	switch w.cause {
	case finished:
		r.server.lastContact = time.Now()
		r.history.absent.watchEnded(stream.opened)
	case outgrown: // by its reader
	default:
		r.report(ctx, step, err)
	}
	inOrder := w.cause == finished || w.cause == torn
	if w.lasted && (inOrder || w.cause == outgrown || w.cause == busy || w.cause == broken) {
		r.attempts.progress() // a server whose watches last does not fail
		r.attempts.lists = 0
	}
	switch {
	case inOrder && w.lasted && !progressed,
		w.cause == finished && (r.history.cut || r.history.absent.key != ""):
		r.history.suspect() // servers send a bookmark before they end a watch
	case w.cause == broken, w.cause == refused, w.cause == busy:
		r.history.cutOff()
	}
	if ctx.Err() != nil {
		return nil
	}
	return r.afterWatch(ctx, w)
}

// endedWatch describes a watch that has ended or did not begin.
type endedWatch struct {
	ending
	err    error
	begun  bool
	lasted bool // it lasted for shortWatch
	moved  bool // it brought something new
}

// afterWatch returns the state that follows a watch.
func (r *Reflector[T]) afterWatch(ctx context.Context, w endedWatch) state[T] {
	switch w.cause {
	case stopped:
		return nil
	case torn:
		r.recorder.noteError(w.err)
		r.recorder.enter(health.StateSilent)
		return r.resume()
	case outgrown:
		r.history.recent.clear() // it may have events that push has refused
		return r.resume()
	case finished:
		switch {
		case w.lasted:
			return r.resume()
		case w.moved:
			return r.pause(r.resume())
		}
		w.err = fmt.Errorf("watch %s: %w", r.o.Name, errShortWatch)
		return r.uselessWatch(ctx, w, true)
	case broken:
		if w.begun && !w.lasted && !w.moved {
			return r.uselessWatch(ctx, w, false)
		}
		r.attempts.answered = false
		return r.retry(ctx, w.err, r.resume())
	case expired:
		if r.attempts.failures > 0 {
			return r.retry(ctx, w.err, r.list())
		}
		// The server has not failed, but all its clients may find their version expired at once.
		r.attempts.failures++
		r.recorder.noteError(w.err)
		r.recorder.enter(health.StateListing)
		return r.pause(r.list())
	case lost:
		return r.retry(ctx, w.err, r.list())
	case undecodable, refused:
		return r.uselessWatch(ctx, w, w.begun)
	default: // busy
		return r.retry(ctx, w.err, r.resume())
	}
}

// uselessWatch returns the state that follows a useless watch; answered says that the server has
// begun it. The first useless watches are resumed. Then the collection is listed, if the server
// answers: a server that refuses or cuts watches is asked for its version before the last attempt.
// Otherwise a server that was away would be listed by all its clients as soon as it is back.
func (r *Reflector[T]) uselessWatch(ctx context.Context, w endedWatch, answered bool) state[T] {
	a := &r.attempts
	a.uselessInRow++
	again := w.cause == undecodable && a.undecodable
	a.undecodable = a.undecodable || w.cause == undecodable
	a.answered = a.answered || answered
	switch {
	case again, a.relisted, a.uselessInRow >= mostUseless && a.answered:
		err := fmt.Errorf("%d watches in a row brought nothing new, "+
			"so the collection is listed again: %w", a.uselessInRow, w.err)
		a.relisted = true
		return r.retry(ctx, err, r.list())
	case a.uselessInRow >= mostUseless-1 && !a.answered:
		return r.retry(ctx, w.err, &checking[T]{Reflector: r})
	default:
		return r.retry(ctx, w.err, r.resume())
	}
}

// wentBack is called when the server was found to have gone back, or may have. It closes the watch,
// which may be nil, and returns the list that follows.
func (r *Reflector[T]) wentBack(ctx context.Context, err error, stream *stream[T]) state[T] {
	stream.endSpan(ctx, err, true)
	stream.close()
	r.history.rewound = errors.Is(err, errRewound) // if not, the list decides
	if r.attempts.lists > 1 {                      // no watch has lasted since the last list
		return r.retry(ctx, err, r.list())
	}
	r.recorder.noteError(err)
	message := "the versions of the server went back; the collection is listed again"
	if !r.history.rewound {
		message = "the watches have not brought what the server has; the collection is listed again"
	}
	r.recorder.log.Warn(message, "error", err)
	return r.list()
}

// listAgain returns the state that follows a list that was not handed on. There is no wait where
// the next one does not have the reason: the server answers.
func (r *Reflector[T]) listAgain(ctx context.Context, step Step, err error) state[T] {
	switch {
	case errors.Is(err, errSlotsCame):
		if r.attempts.voided++; r.attempts.voided > 1 {
			return &backingOff[T]{delay(r.o.Backoff, r.attempts.voided-1, 0), r.list()}
		}
		return r.list()
	case errors.Is(err, errRewound):
		r.recorder.noteError(err)
		return r.list()
	}
	r.report(ctx, step, err)
	return r.retry(ctx, err, r.list())
}

// retry records a failure and returns the state that waits before next. The wait also grows with
// the number of lists since a watch last lasted: watches that bring something new and end at once
// may come from a server whose events are ahead of its lists.
func (r *Reflector[T]) retry(ctx context.Context, err error, next state[T]) state[T] {
	if ctx.Err() != nil || errors.Is(err, delta.ErrClosed) {
		return nil
	}
	end := classify(err, false)
	if r.handleMissing(ctx, end) != nil {
		return nil // the queue is closed, or ctx has ended
	}
	r.attempts.failures++
	return r.retryAfter(err, end, max(r.attempts.failures, r.attempts.lists), next)
}

// retryAfter returns the state that waits before next, after a number of failures in a row. end is
// the class of err.
func (r *Reflector[T]) retryAfter(err error, end ending, failures int, next state[T]) state[T] {
	wait, err := waitAfter(r.o.Backoff, err, end, failures)
	r.recorder.failed(end.state, err, time.Now().Add(wait))
	return &backingOff[T]{wait, next}
}

// pause returns the state that waits before next, after an end that is no failure.
func (r *Reflector[T]) pause(next state[T]) state[T] {
	return &backingOff[T]{delay(r.o.Backoff, max(1, r.attempts.lists), 0), next}
}
