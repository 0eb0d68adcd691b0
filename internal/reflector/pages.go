package reflector

import (
	"strings"

	"github.com/tidings-go/tidings/source"
)

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
