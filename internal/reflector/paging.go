package reflector

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

// pageTries is the number of times in a row that a failed page is asked for again. With the
// default backoff that takes two minutes; continue tokens live for five to ten.
const pageTries = 8

// paging reads the collection page by page. Out of it lead:
//
//	the last page                          → opening
//	the continue token has expired         → paging, without a limit
//	pages that have no end                 → paging, without a limit
//	a later page fails and may succeed     → backingOff, then the same page
//	any other error                        → backingOff, then a list
type paging[T any] struct {
	*Reflector[T]
	limit        int64 // objects per page, 0 for no limit
	afterSilence bool  // a streamed list has just fallen silent

	span     span       // of all pages
	staged   *staged[T] // nil until the list begins
	from     string     // the version that is asked for: "" or "0"
	version  string     // of the first page
	pages    pages      // where the list is
	failures int        // of this page in a row
	read     int        // pages
}

// close ends the span of a list that is given up, as Run ends.
func (s *paging[T]) close() {
	if s.staged != nil {
		s.endSpan(context.Canceled, s.staged.len())
	}
}

// endSpan ends the span of the list.
func (s *paging[T]) endSpan(err error, objects int) {
	s.span.end(err, slog.String("version", s.version), slog.Int("pages", s.read),
		slog.Int("objects", objects))
}

// step asks for page after page. The version of the list is that of its first page, so that a
// watch from there brings every change that was made while the others were read.
func (s *paging[T]) step(ctx context.Context) state[T] {
	if s.staged == nil {
		s.staged = s.beginList(ctx)
		s.span = s.startSpan(ctx, "list")
		if h := &s.history; !s.listed && !h.overtaken && !s.o.ConsistentFirstList {
			s.from = "0"
		}
	}
	s.recorder.enter(health.StateListing)
	for {
		last, err := s.readPage()
		if err != nil {
			return s.failed(ctx, err)
		}
		if last {
			return s.complete(ctx)
		}
	}
}

// readPage stages one page and reports whether it was the last one. A page that fails leaves
// nothing staged.
func (s *paging[T]) readPage() (last bool, err error) {
	cached := len(s.staged.cached)
	page, err := s.fetch()
	if err != nil {
		s.staged.cached = s.staged.cached[:cached]
		return false, err
	}
	s.failures = 0
	s.read++
	if s.pages.token == "" {
		s.version = page.Version
	}
	for _, item := range page.Items {
		s.pages.note(item.Key)
		s.stage(s.staged, item)
	}
	s.server.lastContact = time.Now()
	s.countListed(s.staged)
	if page.Continue == "" {
		return true, nil
	}
	return false, s.pages.follow(page.Continue)
}

// fetch asks for a page.
func (s *paging[T]) fetch() (source.Page[T], error) {
	s.pages.begin()
	return s.listPage(s.span.ctx, s.source, source.ListOptions{
		Version: s.from, Limit: s.limit, Continue: s.pages.token,
		Selects: s.pages.noting(s.selects()), ShardSelector: s.staged.asked.selector,
		IsCached: s.unlessRewound(func(key, version, uid string) bool {
			s.pages.note(key)
			return s.stageCached(s.staged, key, version, uid)
		}),
	})
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
	switch {
	case ctx.Err() != nil:
		return nil
	case s.limit > 0 && (end.cause == endless || s.pages.token != "" && end.cause == expired):
		s.endSpan(err, s.staged.len())
		s.noteError(err)
		return &paging[T]{Reflector: s.Reflector, afterSilence: s.afterSilence}
	case s.pages.token != "" && end.transient && s.failures < pageTries:
		s.failures++
		s.report(ctx, PagedList, err)
		return s.retryAfter(err, end, s.failures, s)
	default:
		s.endSpan(err, s.staged.len())
		s.report(ctx, PagedList, err)
		return s.retry(ctx, err, s.list())
	}
}

// complete hands on the list.
func (s *paging[T]) complete(ctx context.Context) state[T] {
	objects := s.staged.len() // endList takes them
	err := s.endList(ctx, s.staged, s.version, s.from == "")
	s.endSpan(err, objects)
	if err != nil {
		return s.listAgain(ctx, PagedList, err)
	}
	s.server.failedStreams = 0
	if s.afterSilence {
		s.server.silentStreams++
	}
	return &opening[T]{Reflector: s.Reflector, afterList: true}
}
