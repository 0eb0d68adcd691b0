package reflector

import (
	"context"
	"fmt"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

// paging reads the collection page by page. Out of it lead:
//
//	the last page                          → opening
//	the continue token has expired         → paging, without a limit
//	pages that have no end                 → paging, without a limit
//	a later page fails and may succeed     → backingOff, then the same page
//	any other error                        → backingOff, then a list
//	any error of a list that is demanded   → backingOff, then a watch from the last version
type paging[T any] struct {
	*Reflector[T]
	limit        int64 // objects per page, 0 for no limit
	afterSilence bool  // a streamed list has just fallen silent
	demanded     bool  // by CatchUp, in the place of a watch that may go on

	running *list[T] // nil until the list begins
	pages   *pageReader[T]
}

// close ends the span of a list that is given up, as Run ends.
func (s *paging[T]) close() {
	if s.running != nil {
		s.pages.end(context.Canceled, s.running.staged.len())
	}
}

// begin begins the list.
func (s *paging[T]) begin(ctx context.Context) {
	s.running = s.beginList(ctx)
	o := source.ListOptions{
		Limit: s.limit, Selects: s.slots.selects(), ShardSelector: s.running.asked.selector,
		IsCached: s.running.isCachedUnlessRewound(s.running.isCached),
	}
	if !s.listed && !s.history.overtaken && !s.o.ConsistentFirstList {
		o.Version = "0"
	}
	s.pages = s.requests.pages(ctx, s.requests.source, o)
}

// step asks for page after page.
func (s *paging[T]) step(ctx context.Context) state[T] {
	if s.running == nil {
		s.begin(ctx)
	}
	s.recorder.enter(health.StateListing)
	for !s.pages.last {
		if err := s.stagePage(); err != nil {
			return s.failed(ctx, err)
		}
	}
	return s.complete(ctx)
}

// stagePage stages one page. A page that fails leaves nothing staged.
func (s *paging[T]) stagePage() error {
	staged := &s.running.staged
	cached := len(staged.cached)
	page, err := s.pages.next()
	if err != nil {
		staged.cached = staged.cached[:cached]
		return err
	}
	for _, item := range page.Items {
		s.running.stage(item)
	}
	s.server.lastContact = time.Now()
	s.count.set(staged.len())
	return nil
}

// failed returns the state that follows a page that failed.
func (s *paging[T]) failed(ctx context.Context, err error) state[T] {
	end := classify(err, false)
	if end.cause == endless {
		err = fmt.Errorf("list %s: %w", s.o.Name, err)
	}
	if ctx.Err() != nil {
		return nil
	}
	fate := s.pages.fateOf(end)
	if fate == pageAgain && !s.demanded {
		s.report(ctx, PagedList, err)
		return s.retryAfter(err, end, s.pages.failures, s)
	}
	s.pages.end(err, s.running.staged.len())
	s.count.set(0)
	if fate == listUnpaged {
		s.recorder.noteError(err)
		return &paging[T]{Reflector: s.Reflector, afterSilence: s.afterSilence, demanded: s.demanded}
	}
	s.report(ctx, PagedList, err)
	if s.demanded {
		return s.retry(ctx, err, s.resume())
	}
	return s.retry(ctx, err, s.list())
}

// complete hands on the list.
func (s *paging[T]) complete(ctx context.Context) state[T] {
	objects := s.running.staged.len() // handOn takes them
	err := s.running.handOn(ctx, s.pages.version, s.pages.o.Version == "")
	s.pages.end(err, objects)
	if err != nil {
		return s.listAgain(ctx, PagedList, err)
	}
	s.server.failedStreams = 0
	if s.afterSilence {
		s.server.silentStreams++
	}
	return &opening[T]{Reflector: s.Reflector, afterList: true}
}
