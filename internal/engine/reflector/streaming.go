package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tidings-go/tidings/source"
)

// errStreamIncomplete is a streamed list that ended before all of it was sent.
var errStreamIncomplete = errors.New("the streamed list ended before it was complete")

// streaming reads the collection as the beginning of a watch. Out of it lead:
//
//	the end of the initial events        → watching, with the same stream
//	the server does not stream lists     → paging
//	the stream falls silent              → paging
//	an error, with PagesAfterFailure     → paging
//	any other error                      → backingOff, then a list
type streaming[T any] struct {
	*Reflector[T]
	running *list[T]
	stream  *stream[T] // nil until it is open
	span    span       // of the list
}

func (s *streaming[T]) close() {
	s.stream.close()
	s.span.end(context.Canceled)
}

// endSpan ends the span of the list.
func (s *streaming[T]) endSpan(err error, version string, objects int) {
	s.span.end(err, slog.String("version", version), slog.Bool("streamed", true),
		slog.Int("objects", objects))
}

func (s *streaming[T]) step(ctx context.Context) state[T] {
	s.running = s.beginList(ctx)
	s.span = s.requests.startList(ctx)
	var err error
	s.stream, err = s.requests.watch(s.span.ctx, source.WatchOptions{
		SendInitialEvents: true,
		Selects:           s.slots.selects(),
		IsCached:          s.running.isCachedUnlessRewound(s.isCached),
	}, s.running.asked, s.server.betweenBookmarks)
	if errors.Is(err, source.ErrStreamedListRefused) {
		s.server.noStreams = true
		s.endSpan(err, "", 0)
		return s.list()
	}
	if err != nil {
		switch classify(err, false).cause {
		case refused, undecodable, expired:
			s.server.failedStreams++ // a list in pages may succeed
		}
		return s.failed(ctx, err)
	}
	for {
		events, err := s.stream.Next()
		if err != nil {
			s.server.failedStreams++
			return s.failed(ctx, fmt.Errorf("%w: %w", errStreamIncomplete, err))
		}
		s.server.lastContact = time.Now()
		for i, event := range events {
			if event.Type == source.InitialEventsEnd {
				return s.complete(ctx, event.Version, events[i+1:])
			}
			s.stageEvent(event)
		}
		s.count.set(s.running.staged.len())
	}
}

// isCached is asked by the source before it decodes an object.
func (s *streaming[T]) isCached(key, version, uid string) bool {
	if !s.running.isCached(key, version, uid) {
		return false
	}
	s.stream.active()
	s.running.staged.bound()
	return true
}

// stageEvent stages an event of the list. Servers send only Added events before its end, but the
// protocol allows a change in between.
func (s *streaming[T]) stageEvent(event source.Event[T]) {
	if event.Unselected {
		return
	}
	leaves := event.Type == source.Deleted
	if event.Type == source.Added || event.Type == source.Modified {
		accepted := s.running.stage(event.Item)
		leaves = event.Type == source.Modified && !accepted && event.Err == nil
		s.running.staged.bound()
	}
	if leaves {
		s.running.remove(event.Key)
	}
}

// complete hands on the list. The same stream goes on as the watch; rest came with the end of the
// list, in a slice that the hand-over does not touch.
func (s *streaming[T]) complete(
	ctx context.Context, version string, rest []source.Event[T],
) state[T] {
	objects := s.running.staged.len() // handOn takes them
	err := s.running.handOn(ctx, version, true)
	s.endSpan(err, version, objects)
	if err != nil {
		s.close()
		return s.listAgain(ctx, StreamedList, err)
	}
	s.stream.listing = false
	s.stream.limitQuiet()
	s.stream.span = s.requests.startSpan(ctx, "watch", slog.String("version", version))
	s.stream.events = len(rest)
	s.stream.at, s.stream.progressed, s.stream.moved = version, true, true
	s.server.failedStreams, s.server.silentStreams = 0, 0
	return &watching[T]{Reflector: s.Reflector, stream: s.stream, rest: rest}
}

// failed returns the state that follows a streamed list that failed.
func (s *streaming[T]) failed(ctx context.Context, err error) state[T] {
	s.endSpan(err, "", s.running.staged.len())
	s.close()
	s.count.set(0)
	s.report(ctx, StreamedList, err)
	end := classify(err, false)
	switch {
	case ctx.Err() != nil:
		return nil
	case end.silent:
		s.recorder.noteError(err)
		s.recorder.log.Log(ctx, s.recorder.level,
			"a streamed list was silent; the collection is listed in pages", "error", source.Bound(err))
		return &paging[T]{Reflector: s.Reflector, limit: s.o.PageSize, afterSilence: true}
	case s.o.PagesAfterFailure && !end.unready:
		return &paging[T]{Reflector: s.Reflector, limit: s.o.PageSize}
	default:
		return s.retry(ctx, err, s.list())
	}
}
