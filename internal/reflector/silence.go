package reflector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

const (
	// quietPeriods is how many times the longest wait between two of its bookmarks a
	// watch may be quiet. API servers send them about once a minute, with a quarter
	// of jitter, so that a healthy watch is not taken for a dead one before three of
	// them in a row have gone missing.
	quietPeriods = 4
	// leastQuiet is the least time that a watch may be quiet, for servers and proxies
	// that send a few bookmarks close together.
	leastQuiet = 30 * time.Second
)

var (
	// errOutlived is a watch that the server should have ended.
	errOutlived = errors.New("the watch outlived the timeout it was opened with: its connection is taken for dead")
	// errQuiet is a watch that has ceased to bring bookmarks.
	errQuiet = fmt.Errorf("the watch was quiet for %d times as long as between two of its bookmarks: its connection is taken for dead", quietPeriods)
)

// watched is a running watch that is torn down when it outlives its timeout, or when
// it is quiet for too long (P15).
type watched[T any] struct {
	source.Stream[T]
	name   string // of the collection
	at     string // the version of the last event, or that at which the watch began
	behind bool   // the watch began before the version that was reached, and is there still
	ctx    context.Context
	cancel context.CancelCauseFunc
	end    context.CancelFunc // of the timeout

	bookmark time.Time     // of the last bookmark
	longest  time.Duration // between two bookmarks of this watch, 0 before the second
	timer    *time.Timer   // cancels; nil before the second bookmark
	patience *patience     // while a list is streamed, nil before and after
}

// openStream begins a watch.
func (r *Reflector[T]) openStream(ctx context.Context, o source.WatchOptions) error {
	o.Timeout = sum(r.o.WatchTimeout, jitter(r.o.WatchTimeout))
	w := &watched[T]{name: r.o.Name, at: o.Version, behind: !o.SendInitialEvents && o.Version != r.version}
	ctx, w.end = context.WithTimeoutCause(ctx, sum(o.Timeout, r.o.Grace), errOutlived)
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	if o.SendInitialEvents {
		w.patience = &patience{limit: r.o.MaxSilence, cancel: w.cancel}
		o.OnActivity = w.heard
	}
	r.recorder.change(func(h *health.Watch) { h.Watches++ })
	r.progressed, r.moved = false, false
	stream, err := r.source.Watch(w.ctx, o)
	r.opened = time.Now() // a client may have tried for long
	if err != nil {
		err = w.causeOf(err)
		w.free()
		return err
	}
	w.Stream = stream
	r.stream = w
	return nil
}

func (w *watched[T]) free() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.endList()
	w.cancel(nil)
	w.end()
}

// heard notes a sign of life while a list is streamed.
func (w *watched[T]) heard() {
	if w.patience != nil {
		w.patience.heard()
	}
}

// endList notes that the list was streamed.
func (w *watched[T]) endList() {
	if w.patience != nil {
		w.patience.pause()
		w.patience = nil
	}
}

// Next waits for events. Only the wait is timed: a consumer that is slow to take the
// events is no fault of the connection.
func (w *watched[T]) Next() ([]source.Event[T], error) {
	if w.timer != nil {
		w.timer.Reset(max(quietPeriods*w.longest, leastQuiet))
	}
	w.heard()
	events, err := w.Stream.Next()
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.patience != nil {
		w.patience.pause()
	}
	if err != nil {
		return nil, w.causeOf(err)
	}
	for i := range events {
		if events[i].Type == source.Bookmark {
			w.keepTime()
		}
	}
	return events, nil
}

// keepTime learns from a bookmark how often they come.
func (w *watched[T]) keepTime() {
	now := time.Now()
	if !w.bookmark.IsZero() {
		w.longest = max(w.longest, now.Sub(w.bookmark))
		if w.timer == nil {
			w.timer = time.AfterFunc(time.Hour, func() { w.cancel(errQuiet) }) // Next says when
			w.timer.Stop()
		}
	}
	w.bookmark = now
}

// causeOf says why a watch ended if that was the reflector's doing.
func (w *watched[T]) causeOf(err error) error {
	switch cause := context.Cause(w.ctx); {
	case isSilent(cause):
		return cause
	case errors.Is(cause, source.ErrSilent) && !errors.Is(err, source.ErrSilent): // the source does not say
		return &source.Error{Op: "watch", Resource: w.name, Phase: source.Streaming, Err: cause}
	default:
		return err
	}
}

func isSilent(err error) bool { return errors.Is(err, errOutlived) || errors.Is(err, errQuiet) }

func (r *Reflector[T]) closeStream() {
	if r.stream == nil {
		return
	}
	r.stream.Close() //nolint:errcheck // the stream is over whatever it answers
	r.stream.free()
	r.stream = nil
}

// longOutage is how long a server may have been out of touch without its versions being
// looked at: it takes longer to restore a backup.
const longOutage = 10 * time.Second

// mostLooks is how many looks at the server's version may fail before the next watch begins
// without one. A server may be fit to be watched, and not to be listed: for want of a
// permission, or for one object that it cannot read. The next look is when the watch has begun.
const mostLooks = 3

// errUnanswered is a look at the server's version that had no answer.
var errUnanswered = errors.New("the server did not answer a list of one object in time")

// errRewound is a server that is at an older version than the one that was reached.
var errRewound = errors.New("the server's resource versions went back, as after a restored backup")

// doubt notes that the server may have gone back to an older state (P16). A watch from
// a version that the server does not have any more is quiet until it has it again.
func (r *Reflector[T]) doubt() {
	if isNumber(r.version) {
		r.doubtful = true
	}
}

// touch notes that the server has just shown that it is there.
func (r *Reflector[T]) touch() { r.contact = time.Now() }

// touchBy notes what an error shows. An answer that refuses comes from the server itself;
// one that regrets (500 and above) also from what stands in front of it, or from one whose
// storage is away. A short wait that a refusal asks for is not out of touch either: all
// clients of a busy server would look at once when it is over.
func (r *Reflector[T]) touchBy(err error) {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError {
		asked, _ := source.RetryAfter(err)
		r.contact = time.Now().Add(min(asked, longOutage))
	}
}

// reached notes that a watch has begun. What the server was before does not matter if it
// was out of touch for long: not when requests failed counts, but when something came from
// it before that.
func (r *Reflector[T]) reached() {
	if time.Since(r.contact) >= longOutage {
		r.doubt()
	}
	r.touch()
}

// probe asks which version the server is at, with a list of one object. What leads out of
// it: an older version than the last one (list, which begins a new history), any other
// (watch), an error (backoff, or the watch if it has begun already: what it brings answers
// as well, and a server that lists badly may still be followed).
func (r *Reflector[T]) probe(ctx context.Context) stateFunc[T] {
	page, err := r.listOne(ctx)
	if err != nil {
		return r.unknown(ctx, err)
	}
	r.doubtful, r.answering, r.looks = false, true, 0
	r.touch()
	if order, comparable := delta.CompareDecimal(page.Version, r.version); comparable && order < 0 || r.isOlder(page.Version, r.highest) {
		// A version may be of any length.
		err := source.Bound(fmt.Errorf("%w: from %s to %s", errRewound, r.higher(r.version, r.highest), page.Version))
		r.rewound = true
		if r.lists > 1 { // no watch has lasted since the last list
			return r.retry(ctx, err, r.list())
		}
		r.noteError(err)
		r.recorder.log.Warn("listing again", "reason", err)
		return r.list()
	}
	return r.watch
}

// unknown decides what follows a look at the server's version that failed. A list would fail
// as well.
func (r *Reflector[T]) unknown(ctx context.Context, err error) stateFunc[T] {
	r.looks++
	r.failed(ctx, OpenWatch, err)
	switch {
	case ctx.Err() != nil:
		return nil
	case apierrors.IsNotFound(err): // as it is told in health, and to those that it is optional for
		return r.retry(ctx, err, r.list())
	case r.stream != nil:
		r.noteError(err)
		return r.watch
	default:
		return r.retry(ctx, err, r.watch)
	}
}

// listOne lists one object. The connection may be the one that has fallen silent, so
// it is not waited for without end, as a whole list is.
func (r *Reflector[T]) listOne(ctx context.Context) (source.Page[T], error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.o.Grace, errUnanswered)
	defer cancel()
	page, err := r.source.List(ctx, source.ListOptions{Limit: 1})
	if err != nil && errors.Is(context.Cause(ctx), errUnanswered) {
		return page, errUnanswered
	}
	return page, err
}
