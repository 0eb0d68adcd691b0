package reflector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

const (
	// pageTries is how many failures in a row of one page are answered by asking for it
	// again. With the default backoff that is for two minutes; continue tokens live for five
	// to ten.
	pageTries = 8
	// emptyPages is how many pages in a row may be empty and not be the last.
	emptyPages = 3
)

// Errors of a list whose pages lead to no end.
var (
	errRepeatedToken = errors.New("the server sent a continue token that it has sent before in this list")
	errRepeatedPage  = errors.New("the server sent a page with an object of an earlier page of this list")
	errEmptyPages    = fmt.Errorf("the server sent %d pages in a row without an object, and a continue token with each", emptyPages)
)

// pages is a list in pages that is under way. What its pages have brought is in
// Reflector.staged.
type pages struct {
	o       source.ListOptions // of the page that is asked for
	version string             // of the first page
	tries   int                // failures of this page in a row
	empty   int                // pages in a row without an object
	read    int                // pages with a token
	seen    string             // a token from before, which the next ones are compared with
	mark    string             // the key of an object of that page, "" if it had none
}

// pageList begins to read the collection page by page. What leads out of it: readPages.
func (r *Reflector[T]) pageList(context.Context) stateFunc[T] {
	return r.beginPages(r.o.PageSize)
}

// beginPages returns the state that lists in pages of a size, 0 being no limit. The first
// list takes what the server has at hand, unless it is to be consistent.
func (r *Reflector[T]) beginPages(limit int64) stateFunc[T] {
	r.beginList()
	r.pages = pages{o: source.ListOptions{Limit: limit, IsCached: r.mayHold()}}
	if !r.listed && !r.o.ConsistentFirstList {
		r.pages.o.Version = "0"
	}
	return r.readPages
}

// readPages stages page after page. The version of the list is that of its first page, so
// that a watch from it brings whatever changed while the others were read. What leads out of
// it: the last page (watch), an error (backoff, and then the same page or a new list; or the
// list without pages).
func (r *Reflector[T]) readPages(ctx context.Context) stateFunc[T] {
	r.recorder.enter(health.Listing)
	for {
		last, err := r.readPage(ctx)
		if err != nil {
			return r.pageFailed(ctx, err)
		}
		if last {
			return r.endPages(ctx)
		}
	}
}

// readPage stages one page and reports whether it was the last. Of a page that fails,
// nothing stays staged.
func (r *Reflector[T]) readPage(ctx context.Context) (last bool, err error) {
	p := &r.pages
	decoded, held := len(r.staged.decoded), len(r.staged.held)
	page, err := r.listPatiently(ctx, p.o)
	if err != nil {
		r.staged.cut(decoded, held)
		return false, err
	}
	p.tries = 0
	if p.o.Continue == "" {
		p.version = page.Version
	}
	first, repeated := "", false
	bring := func(key string) {
		repeated = repeated || p.mark != "" && key == p.mark
		first = cmp.Or(first, key)
	}
	for _, item := range r.staged.held[held:] {
		bring(item.Key)
	}
	for _, item := range page.Items {
		bring(item.Key)
		r.stage(item)
	}
	r.touch()
	r.countListed()
	switch {
	case page.Continue == "":
		return true, nil
	case repeated:
		return false, errRepeatedPage
	}
	return false, p.follow(page.Continue, first)
}

// follow moves to the next page. The server decides how many there are, so each is compared
// with what shows that there is no end: too many empty ones in a row, or a token that was
// sent before. One token is remembered, with the first object of its page, and a later one
// after twice as many pages each time: in the end that is one of any circle, of tokens or of
// pages with ever new tokens.
func (p *pages) follow(token, first string) error {
	if p.empty++; first != "" {
		p.empty = 0
	}
	switch {
	case token == p.o.Continue || token == p.seen:
		return errRepeatedToken
	case p.empty >= emptyPages:
		return errEmptyPages
	}
	if p.read++; p.read&(p.read-1) == 0 {
		p.seen, p.mark = token, first
	}
	p.o.Continue = token
	return nil
}

// pageFailed decides what follows a page that failed. If the token has expired, or pages lead
// to no end, the list is read again without a limit. If the failure may pass, the same page
// is asked for again: what was read before it stays staged.
func (r *Reflector[T]) pageFailed(ctx context.Context, err error) stateFunc[T] {
	endless := errors.Is(err, errRepeatedToken) || errors.Is(err, errRepeatedPage) || errors.Is(err, errEmptyPages)
	if endless {
		err = fmt.Errorf("list %s: %w", r.o.Name, err)
	}
	switch p := &r.pages; {
	case ctx.Err() != nil:
		return nil
	case p.o.Limit > 0 && (endless || p.o.Continue != "" && source.IsExpired(err)):
		r.noteError(err)
		return r.beginPages(0)
	case p.o.Continue != "" && !endless && mayPass(err) && p.tries < pageTries:
		p.tries++
		r.failed(ctx, PagedList, err)
		r.touchBy(err)
		return r.waitFor(err, p.tries, r.readPages)
	default:
		return r.pagesFailed(ctx, err)
	}
}

// mayPass reports whether the same page may succeed when it is asked for again.
func mayPass(err error) bool {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		code := status.Status().Code
		return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
	}
	return !errors.Is(err, source.ErrFrameTooLarge)
}

// pagesFailed gives the list up.
func (r *Reflector[T]) pagesFailed(ctx context.Context, err error) stateFunc[T] {
	r.mute = false
	r.failed(ctx, PagedList, err)
	return r.retry(ctx, err, r.list())
}

// endPages hands on what all pages have brought.
func (r *Reflector[T]) endPages(ctx context.Context) stateFunc[T] {
	if err := r.endList(ctx, r.pages.version, r.pages.o.Version == ""); err != nil {
		return r.pagesFailed(ctx, err)
	}
	r.streamFails = 0
	if r.mute {
		r.muteStreams++
	}
	r.mute = false
	return r.watch
}
