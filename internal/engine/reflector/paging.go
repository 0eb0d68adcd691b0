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

	staged *staged[T] // nil until the list begins
	pages  *pageReader[T]
}

// close ends the span of a list that is given up, as Run ends.
func (s *paging[T]) close() {
	if s.staged != nil {
		s.pages.end(context.Canceled, s.staged.len())
	}
}

// begin begins the list.
func (s *paging[T]) begin(ctx context.Context) {
	s.staged = s.beginList(ctx)
	o := source.ListOptions{
		Limit: s.limit, Selects: s.selects(), ShardSelector: s.staged.asked.selector,
		IsCached: s.unlessRewound(func(key, version, uid string) bool {
			return s.stageCached(s.staged, key, version, uid)
		}),
	}
	if !s.listed && !s.history.overtaken && !s.o.ConsistentFirstList {
		o.Version = "0"
	}
	s.pages = s.readPages(ctx, s.source, o)
}

// step asks for page after page.
func (s *paging[T]) step(ctx context.Context) state[T] {
	if s.staged == nil {
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
	cached := len(s.staged.cached)
	page, err := s.pages.next()
	if err != nil {
		s.staged.cached = s.staged.cached[:cached]
		return err
	}
	for _, item := range page.Items {
		s.stage(s.staged, item)
	}
	s.server.lastContact = time.Now()
	s.countListed(s.staged.len())
	return nil
}

// listPage asks for a page. The request ends if it is silent for Options.MaxSilence.
func (r *Reflector[T]) listPage(
	ctx context.Context, src source.Source[T], o source.ListOptions,
) (source.Page[T], error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := idleTimer{cancel: cancel}
	idle.set(r.o.MaxSilence, silence(r.o.MaxSilence))
	defer idle.stop()
	o.OnActivity = idle.restart
	page, err := src.List(ctx, o)
	r.noteSharding(o.ShardSelector, page.Sharded, err)
	return page, err
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
	s.pages.end(err, s.staged.len())
	s.countListed(0)
	if fate == listUnpaged {
		s.noteError(err)
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
	objects := s.staged.len() // endList takes them
	err := s.endList(ctx, s.staged, s.pages.version, s.pages.o.Version == "")
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
