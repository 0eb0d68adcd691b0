package reflector

import (
	"context"
	"log/slog"
	"strings"

	"github.com/tidings-go/tidings/source"
)

// pageTries is the number of times in a row that a failed page is asked for again. With the
// default backoff that takes two minutes; continue tokens live for five to ten.
const pageTries = 8

// pageReader reads a list in pages, whatever asks for it: a first list, a relist, or slots that come.
type pageReader[T any] struct {
	requests *requests[T]
	ctx      context.Context // of the list
	source   source.Source[T]
	o        source.ListOptions // of every page, but for the token
	span     span               // of all pages
	pages    pages              // where the list is

	version  string // of the first page
	read     int    // pages
	last     bool   // the last page was read
	failures int    // of the present page, in a row
}

// next reads the next page. The version of the list is that of its first page, so that a watch from
// there brings every change that was made while the others were read.
func (p *pageReader[T]) next() (source.Page[T], error) {
	p.pages.begin()
	o := p.o
	o.Continue, o.Selects = p.pages.token, p.pages.noting(o.Selects)
	if isCached := o.IsCached; isCached != nil {
		o.IsCached = func(key, version, uid string) bool {
			p.pages.note(key)
			return isCached(key, version, uid)
		}
	}
	page, err := p.requests.page(p.span.ctx, p.source, o)
	if err != nil {
		return page, err
	}
	p.failures = 0
	p.read++
	if p.pages.token == "" {
		p.version = page.Version
	}
	for _, item := range page.Items {
		p.pages.note(item.Key)
	}
	if p.last = page.Continue == ""; p.last {
		return page, nil
	}
	return page, p.pages.follow(page.Continue)
}

// fate is what follows a page that failed.
type fate uint8

const (
	listFails   fate = iota
	pageAgain        // after a wait
	listUnpaged      // the list begins anew, without pages
)

// fateOf returns what follows a page that failed, and counts the failure.
//
//	the pages have no end, or a token has expired, and the list has pages  → listUnpaged
//	a later page may succeed, and has not failed pageTries times in a row  → pageAgain
//	any other failure                                                      → listFails
func (p *pageReader[T]) fateOf(end ending) fate {
	switch later := p.pages.token != ""; {
	case p.o.Limit > 0 && (end.cause == endless || later && end.cause == expired):
		return listUnpaged
	case later && end.transient && p.failures < pageTries:
		p.failures++
		return pageAgain
	}
	return listFails
}

// unpaged ends the list for an error, after some objects, and returns a reader that begins it anew in
// one page.
func (p *pageReader[T]) unpaged(err error, objects int) *pageReader[T] {
	p.end(err, objects)
	o := p.o
	o.Limit = 0
	return p.requests.pages(p.ctx, p.source, o)
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

// pages follows the continue tokens of a list, and finds out that they lead to no end: by a token
// or an object of an earlier page, or by too many empty pages.
type pages struct {
	token    string // of the page that is asked for, "" for the first
	first    string // the first object of that page
	repeated bool   // that page has seenObject
	empty    int    // pages in a row without an object
	tokens   int    // that were followed

	// One token is remembered, with the first object of the page that it came with.
	seenToken, seenObject string
}

// begin is called before each request for a page.
func (p *pages) begin() { p.first, p.repeated = "", false }

// note notes an object of the page by its key, or by its UID.
func (p *pages) note(object string) {
	if object == "" {
		return
	}
	p.repeated = p.repeated || object == p.seenObject
	if p.first == "" {
		p.first = strings.Clone(object)
	}
}

// noting returns selects, and notes the objects that it is called with: a page whose objects are not
// wanted is not empty.
func (p *pages) noting(selects source.Selects) source.Selects {
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
func (p *pages) follow(token string) error {
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
	if p.tokens++; p.tokens&(p.tokens-1) == 0 {
		p.seenToken, p.seenObject = token, p.first
	}
	p.token = token
	return nil
}
