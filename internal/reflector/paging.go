package reflector

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

const (
	// pageTries is how many failures of one page in a row are answered by asking for it again.
	// With the default backoff that takes two minutes; continue tokens live for five to ten.
	pageTries = 8
	// emptyPages is how many pages in a row may be empty and not be the last.
	emptyPages = 3
)

// endlessError is the error of a list whose pages lead to no end.
type endlessError string

func (e endlessError) Error() string { return string(e) }

const (
	errRepeatedToken = endlessError("the server sent a continue token " +
		"that it has sent before in this list")
	errRepeatedPage = endlessError("the server sent a page " +
		"with an object of an earlier page of this list")
	errEmptyPages = endlessError("the server sent 3 pages in a row without an object, " +
		"and a continue token with each")
)

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
	token    string     // of the page that is asked for, "" for the first
	failures int        // of this page in a row
	empty    int        // pages in a row without an object
	tokens   int        // pages that had a token
	pages    int        // that were read

	// One token is remembered, with the first object of its page.
	seenToken, seenKey string
}

// close ends the span of a list that is given up, as Run ends.
func (s *paging[T]) close() {
	if s.staged != nil {
		s.endSpan(context.Canceled, s.staged.len())
	}
}

// endSpan ends the span of the list.
func (s *paging[T]) endSpan(err error, objects int) {
	s.span.end(err, slog.String("version", s.version), slog.Int("pages", s.pages),
		slog.Int("objects", objects))
}

// step asks for page after page. The version of the list is that of its first page, so that a
// watch from there brings every change that was made while the others were read.
func (s *paging[T]) step(ctx context.Context) state[T] {
	if s.staged == nil {
		s.staged = s.beginList(ctx)
		s.span = s.startSpan(ctx, "list")
		if !s.history.listed && !s.o.ConsistentFirstList {
			s.from = "0"
		}
	}
	s.recorder.enter(health.StateListing)
	for {
		last, err := s.read()
		if err != nil {
			return s.failed(ctx, err)
		}
		if last {
			return s.complete(ctx)
		}
	}
}

// read stages one page and reports whether it was the last one. A page that fails leaves
// nothing staged.
func (s *paging[T]) read() (last bool, err error) {
	cached := len(s.staged.cached)
	page, err := s.fetch()
	if err != nil {
		s.staged.cached = s.staged.cached[:cached]
		return false, err
	}
	s.failures = 0
	s.pages++
	if s.token == "" {
		s.version = page.Version
	}
	first, repeated := "", false
	check := func(key string) {
		repeated = repeated || s.seenKey != "" && key == s.seenKey
		first = cmp.Or(first, key)
	}
	for _, item := range s.staged.cached[cached:] {
		check(item.Key)
	}
	for _, item := range page.Items {
		check(item.Key)
		s.stage(s.staged, item)
	}
	s.server.lastContact = time.Now()
	s.countListed(s.staged)
	switch {
	case page.Continue == "":
		return true, nil
	case repeated:
		return false, errRepeatedPage
	}
	return false, s.follow(page.Continue, first)
}

// fetch asks for a page.
func (s *paging[T]) fetch() (source.Page[T], error) {
	return s.listPage(s.span.ctx, s.source, source.ListOptions{
		Version: s.from, Limit: s.limit, Continue: s.token,
		Selects: s.selects(), ShardSelector: s.staged.asked.selector,
		IsCached: s.unlessRewound(func(key, version, uid string) bool {
			return s.stageCached(s.staged, key, version, uid)
		}),
	})
}

// follow moves to the next page, unless this one shows that the pages have no end: by too many
// empty ones in a row, or by a token that was sent before. A later token is remembered after
// twice as many pages each time, so that in the end it is one of any cycle of tokens, or of
// pages with ever new tokens.
func (s *paging[T]) follow(token, first string) error {
	if s.empty++; first != "" {
		s.empty = 0
	}
	switch {
	case token == s.token || token == s.seenToken:
		return errRepeatedToken
	case s.empty >= emptyPages:
		return errEmptyPages
	}
	if s.tokens++; s.tokens&(s.tokens-1) == 0 {
		s.seenToken, s.seenKey = token, first
	}
	s.token = token
	return nil
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
	case s.limit > 0 && (end.cause == endless || s.token != "" && end.cause == expired):
		s.endSpan(err, s.staged.len())
		s.noteError(err)
		return &paging[T]{Reflector: s.Reflector, afterSilence: s.afterSilence}
	case s.token != "" && end.transient && s.failures < pageTries:
		s.failures++
		s.report(ctx, PagedList, err)
		s.noteContact(end)
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
	if s.isVoid(err) {
		return s.list()
	}
	if err != nil {
		s.report(ctx, PagedList, err)
		return s.retry(ctx, err, s.list())
	}
	s.server.failedStreams = 0
	if s.afterSilence {
		s.server.silentStreams++
	}
	return &opening[T]{Reflector: s.Reflector, afterList: true}
}
