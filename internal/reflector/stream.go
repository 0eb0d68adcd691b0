package reflector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

const (
	// grace is how much longer than its timeout a watch may last.
	grace = 30 * time.Second
	// quietPeriods is how many times the longest wait between two of its bookmarks a watch may
	// be quiet. API servers send bookmarks about once a minute, with a quarter of jitter: a
	// healthy watch is closed only if three in a row are missing.
	quietPeriods = 4
	// leastQuiet is the least time that a watch may be quiet, for servers and proxies that
	// send a few bookmarks close together.
	leastQuiet = 30 * time.Second
)

var (
	// errOutlived is a watch that the server should have ended.
	errOutlived = errors.New("the watch outlived the timeout it was opened with: its connection is taken for dead")
	// errQuiet is a watch that has ceased to bring bookmarks.
	errQuiet = fmt.Errorf("the watch was quiet for %d times as long as between two of its bookmarks: its connection is taken for dead", quietPeriods)
)

// idleTimer ends a list that is silent for too long. Each sign of activity restarts it, so that
// a list may take as long as it needs.
type idleTimer struct {
	limit  time.Duration           // below 0 for none
	cancel context.CancelCauseFunc // of the request's context
	timer  *time.Timer             // nil before the first activity
}

// restart begins the time anew.
func (t *idleTimer) restart() {
	switch {
	case t.limit < 0:
	case t.timer == nil:
		t.timer = time.AfterFunc(t.limit, func() {
			t.cancel(fmt.Errorf("%w for %v", source.ErrSilent, t.limit))
		})
	default:
		t.timer.Reset(t.limit)
	}
}

// stop stops the timer until the next activity.
func (t *idleTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}

// stream is a running watch, which ends when it outlives its timeout or is quiet for too long
// (P15). While it streams a list, idle ends it instead.
type stream[T any] struct {
	source.Stream[T]
	name   string // of the collection
	ctx    context.Context
	cancel context.CancelCauseFunc
	end    context.CancelFunc // of the timeout
	opened time.Time

	at         string // the version of the last event, or that at which the watch began
	behind     bool   // the watch resumed before the reached version and has not passed it
	progressed bool   // it brought something
	moved      bool   // it brought something new

	bookmark time.Time     // when the last bookmark came
	longest  time.Duration // between two bookmarks of this watch, 0 before the second
	quiet    *time.Timer   // nil before the second bookmark
	idle     *idleTimer    // nil unless a list is streamed
}

// open begins a watch.
func (r *Reflector[T]) open(ctx context.Context, o source.WatchOptions) (*stream[T], error) {
	o.Timeout = sum(r.o.WatchTimeout, rand.N(r.o.WatchTimeout))
	s := &stream[T]{name: r.o.Name, at: o.Version}
	ctx, s.end = context.WithTimeoutCause(ctx, sum(o.Timeout, grace), errOutlived)
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	if o.SendInitialEvents {
		s.idle = &idleTimer{limit: r.o.MaxSilence, cancel: s.cancel}
		o.Heard = s.active
	} else {
		s.behind = o.Version != r.history.version
	}
	r.recorder.change(func(h *health.Watch) { h.Watches++ })
	var err error
	s.Stream, err = r.source.Watch(s.ctx, o)
	s.opened = time.Now() // after Watch: a client may have tried for long
	if err != nil {
		err = s.causeOf(err)
		s.free()
		return nil, err
	}
	return s, nil
}

// close ends the watch. It may be called more than once.
func (s *stream[T]) close() {
	if s != nil && s.Stream != nil {
		s.Close() //nolint:errcheck // the stream is over in any case
		s.Stream = nil
		s.free()
	}
}

func (s *stream[T]) free() {
	if s.quiet != nil {
		s.quiet.Stop()
	}
	s.endList()
	s.cancel(nil)
	s.end()
}

// active restarts the idle timer of a streamed list.
func (s *stream[T]) active() {
	if s != nil && s.idle != nil {
		s.idle.restart()
	}
}

// endList stops the idle timer: the list is complete.
func (s *stream[T]) endList() {
	if s.idle != nil {
		s.idle.stop()
		s.idle = nil
	}
}

// Next waits for events. Only this wait is timed: a queue that is slow to take the events is no
// fault of the connection.
func (s *stream[T]) Next() ([]source.Event[T], error) {
	if s.quiet != nil {
		s.quiet.Reset(max(quietPeriods*s.longest, leastQuiet))
	}
	s.active()
	events, err := s.Stream.Next()
	if s.quiet != nil {
		s.quiet.Stop()
	}
	if s.idle != nil {
		s.idle.stop()
	}
	if err != nil {
		return nil, s.causeOf(err)
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
		s.longest = max(s.longest, now.Sub(s.bookmark))
		if s.quiet == nil {
			s.quiet = time.AfterFunc(time.Hour, func() { s.cancel(errQuiet) }) // Next sets the time
			s.quiet.Stop()
		}
	}
	s.bookmark = now
}

// causeOf returns why the reflector ended the watch, or err if it did not.
func (s *stream[T]) causeOf(err error) error {
	switch cause := context.Cause(s.ctx); {
	case errors.Is(cause, errOutlived) || errors.Is(cause, errQuiet):
		return cause
	case errors.Is(cause, source.ErrSilent) && !errors.Is(err, source.ErrSilent): // not every source says so
		return &source.Error{Op: "watch", Resource: s.name, Phase: source.Streaming, Err: cause}
	default:
		return err
	}
}
