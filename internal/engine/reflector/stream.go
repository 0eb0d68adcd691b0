package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tidings-go/tidings/internal/engine/tape"
	"github.com/tidings-go/tidings/source"
)

const (
	// grace is the time by which a watch may outlast its timeout.
	grace = 30 * time.Second
	// quietPeriods is how many times the longest wait between two bookmarks a watch may be quiet:
	// of its own, or of an earlier watch while it has not had two. API servers send bookmarks about
	// once a minute, with a quarter of jitter: a healthy watch is closed only if three in a row are
	// missing.
	quietPeriods = 4
	// leastQuiet is the least time that a watch may be quiet, for servers and proxies that send a
	// few bookmarks close together.
	leastQuiet = 30 * time.Second
	// leastQuietFirst is the least time that a watch may be quiet before it has had two bookmarks.
	// Of several servers, one that lags sends none to a watch from a version that it does not have,
	// and some may send no bookmark at all.
	leastQuietFirst = 4 * time.Minute
)

var (
	// errOutlived is a watch that the server should have ended.
	errOutlived = tornError("the watch outlived the timeout it was opened with: " +
		"its connection is taken for dead")
	// errQuiet is a watch that brings no bookmarks, or no more of them.
	errQuiet = tornError(fmt.Sprintf("the watch was quiet for %d times as long as between two "+
		"bookmarks: its connection is taken for dead", quietPeriods))
)

// tornError is why the reflector ended a watch that it tears. A replay ends a watch with the text
// of such an error and tape.ErrTorn.
type tornError string

func (e tornError) Error() string      { return string(e) }
func (tornError) Is(target error) bool { return target == tape.ErrTorn }

// idleTimer ends a request that brings nothing for too long.
type idleTimer struct {
	cancel context.CancelCauseFunc // of the request's context
	limit  time.Duration
	timer  *time.Timer // nil for no limit
}

// set sets the limit, not above 0 for none, and the error that the request ends with. It does not
// start the timer.
func (t *idleTimer) set(limit time.Duration, cause error) {
	t.stop()
	t.limit, t.timer = limit, nil
	if limit > 0 {
		t.timer = time.AfterFunc(time.Hour, func() { t.cancel(cause) })
		t.timer.Stop()
	}
}

// restart begins the time anew.
func (t *idleTimer) restart() {
	if t.timer != nil {
		t.timer.Reset(t.limit)
	}
}

func (t *idleTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// silence is the error of a list that brings nothing for a time.
func silence(d time.Duration) error { return fmt.Errorf("%w for %v", source.ErrSilent, d) }

// stream is a running watch. It ends when it outlives its timeout or is quiet for too long (P15).
type stream[T any] struct {
	source.Stream[T]
	name   string // of the collection
	span   span   // of the watch, not of a list that it streams
	events int    // of the watch
	ctx    context.Context
	cancel context.CancelCauseFunc
	end    context.CancelFunc // of the timeout
	opened time.Time

	asked      selection            // of the watch
	at         string               // the version of the last event, or that at which the watch began
	behind     bool                 // it resumed before the reached version and has not passed that
	progressed bool                 // it brought something
	moved      bool                 // it brought something new
	replays    map[recentEvent]bool // events that were handed on before it began

	opening  bool          // the server has not begun it
	listing  bool          // it streams a list
	idle     idleTimer     // of the opening, of the list, and then of the watch
	bookmark time.Time     // when the last bookmark came
	longest  time.Duration // between two bookmarks of this watch, 0 before the second
	earlier  time.Duration // between two bookmarks of earlier watches
}

// close ends the watch. It may be called more than once.
func (s *stream[T]) close() {
	if s != nil && s.Stream != nil {
		s.Close() //nolint:errcheck // the stream is over in any case
		s.Stream = nil
		s.free()
		s.span.end(nil, slog.String("end", string(stopped)), slog.Int("events", s.events))
	}
}

func (s *stream[T]) free() {
	s.idle.stop()
	s.cancel(nil)
	s.end()
}

// active restarts the timer while a watch is opened and while a list is streamed.
func (s *stream[T]) active() {
	if s != nil && (s.opening || s.listing) {
		s.idle.restart()
	}
}

// limitQuiet sets the time that a watch may be quiet, if the wait between two bookmarks is known.
func (s *stream[T]) limitQuiet() {
	if s.listing {
		return
	}
	switch {
	case s.longest > 0:
		s.idle.set(max(quietPeriods*s.longest, leastQuiet), errQuiet)
	case s.earlier > 0:
		s.idle.set(max(quietPeriods*s.earlier, leastQuietFirst), errQuiet)
	default:
		s.idle.set(0, nil)
	}
}

// Next waits for events. Only this wait is timed: a queue that is slow to take the events is no
// fault of the connection.
func (s *stream[T]) Next() ([]source.Event[T], error) {
	s.idle.restart()
	events, err := s.Stream.Next()
	s.idle.stop()
	if err != nil {
		return nil, s.causeOf(err)
	}
	if !s.listing {
		s.events += len(events)
	}
	for i := range events {
		if events[i].Type == source.Bookmark {
			s.noteBookmark()
		}
	}
	return events, nil
}

// noteBookmark learns how often bookmarks come.
func (s *stream[T]) noteBookmark() {
	now := time.Now()
	if !s.bookmark.IsZero() {
		s.longest = max(s.longest, now.Sub(s.bookmark), 1)
	}
	s.bookmark = now
	s.limitQuiet()
}

// causeOf returns why the reflector ended the watch, or err if it did not.
func (s *stream[T]) causeOf(err error) error {
	switch cause := context.Cause(s.ctx); {
	case errors.Is(cause, tape.ErrTorn) || errors.Is(cause, errSlotsCame):
		return cause
	case errors.Is(cause, source.ErrSilent) && !errors.Is(err, source.ErrSilent):
		// Not every source returns the cause.
		return &source.Error{Op: "watch", Resource: s.name, Phase: source.Streaming, Err: cause}
	default:
		return err
	}
}

// endSpan ends the span of the watch. A watch that the server ended in good order, one that slots
// have outgrown, and one that ended with Run, have no error.
func (s *stream[T]) endSpan(ctx context.Context, err error, begun bool) {
	if s == nil || s.span.open == nil {
		return
	}
	c := classify(err, begun).cause
	if ctx.Err() != nil {
		c = stopped
	}
	if c == stopped || c == outgrown || c == finished {
		err = nil
	}
	s.span.end(err, slog.String("end", string(c)), slog.Int("events", s.events))
}
