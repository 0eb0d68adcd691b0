package reflector

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
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
	s.pages = s.requests.beginPages(ctx, s.requests.source, o)
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

// pageTries is the number of times in a row that a failed page is asked for again. With the default
// backoff that takes two minutes; continue tokens live for five to ten.
const pageTries = 8

// pageReader reads a list in pages, whatever asks for it: a first list, a relist, or slots that
// come.
type pageReader[T any] struct {
	requests *requests[T]
	source   source.Source[T]
	o        source.ListOptions // of every page, but for the token
	span     span               // of all pages
	tokens   tokens             // where the list is

	version  string // of the first page
	read     int    // pages
	last     bool   // the last page was read
	failures int    // of the present page, in a row
}

// next reads the next page. The version of the list is the one of its first page, so that a watch
// from there brings every change that was made while the others were read.
func (p *pageReader[T]) next() (source.Page[T], error) {
	p.tokens.first, p.tokens.repeated = "", false
	o := p.o
	o.Continue, o.Selects = p.tokens.token, p.tokens.noting(o.Selects)
	if isCached := o.IsCached; isCached != nil {
		o.IsCached = func(key, version, uid string) bool {
			p.tokens.note(key)
			return isCached(key, version, uid)
		}
	}
	page, err := p.requests.page(p.span.ctx, p.source, o)
	if err != nil {
		return page, err
	}
	p.failures = 0
	p.read++
	if p.tokens.token == "" {
		p.version = page.Version
	}
	for _, item := range page.Items {
		p.tokens.note(item.Key)
	}
	if p.last = page.Continue == ""; p.last {
		return page, nil
	}
	return page, p.tokens.follow(page.Continue)
}

// fate is what follows a page that failed.
type fate uint8

const (
	listFails   fate = iota
	pageAgain        // after a wait
	listUnpaged      // the list begins anew, without pages
)

// fateOf returns what follows a page that failed, and counts the failure. It does not count the next
// request, which next makes: a list that is demanded does not ask again.
//
//	the pages have no end, or a token has expired, and the list has pages  → listUnpaged
//	a later page may succeed, and has not failed pageTries times in a row  → pageAgain
//	any other failure                                                      → listFails
func (p *pageReader[T]) fateOf(end ending) fate {
	switch later := p.tokens.token != ""; {
	case p.o.Limit > 0 && (end.cause == endless || later && end.cause == expired):
		return listUnpaged
	case later && end.transient && p.failures < pageTries:
		p.failures++
		return pageAgain
	}
	return listFails
}

// end ends the span of the list.
func (p *pageReader[T]) end(err error, objects int) {
	p.span.end(err, slog.String("version", p.version), slog.Int("pages", p.read),
		slog.Int("objects", objects))
}

// emptyPages is the number of empty pages in a row, none of them the last, that make a list
// endless.
const emptyPages = 3

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

// tokens follows the continue tokens of a list, and finds out that they lead to no end: by a token
// or an object of an earlier page, or by too many empty pages.
type tokens struct {
	token    string // of the page that is asked for, "" for the first
	first    string // the first object of that page
	repeated bool   // that page has seenObject
	empty    int    // pages in a row without an object
	followed int    // tokens

	// One token is remembered, with the first object of the page that it came with.
	seenToken, seenObject string
}

// note notes an object of the page by its key, or by its UID.
func (p *tokens) note(object string) {
	if object == "" {
		return
	}
	p.repeated = p.repeated || object == p.seenObject
	if p.first == "" {
		p.first = strings.Clone(object)
	}
}

// noting returns selects, and notes the objects that it is called with: a page whose objects are
// not wanted is not empty.
func (p *tokens) noting(selects source.Selects) source.Selects {
	if selects == nil {
		return nil
	}
	return func(uid, namespace string) bool {
		p.note(uid)
		return selects(uid, namespace)
	}
}

// follow moves to the next page, unless this one shows that the pages have no end. A later token is
// remembered after twice as many pages each time, so that in the end it is one of any cycle of
// tokens, or of pages with ever new tokens.
func (p *tokens) follow(token string) error {
	if p.empty++; p.first != "" {
		p.empty = 0
	}
	switch {
	case p.repeated:
		return errRepeatedPage
	case token == p.token || token == p.seenToken:
		return errRepeatedToken
	case p.empty >= emptyPages:
		return errEmptyPages
	}
	if p.followed++; p.followed&(p.followed-1) == 0 {
		p.seenToken, p.seenObject = token, p.first
	}
	p.token = token
	return nil
}
