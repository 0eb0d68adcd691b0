package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Budget bounds the memory of all pages of lists that are being read at the same time, by
// all sources that share it. A page counts from its first byte until List returns it. The
// zero value is ready.
//
// Where the budget is used up, the pages wait, except the oldest, which is read to its end:
// so there is always one that makes room for the others, and the pages use at most the
// budget and one page ([Transport].MaxListBytes). A server may give up on a page that waits
// for a minute; then that list fails, and is tried again as after any failure.
//
// Several goroutines may use it at once.
type Budget struct {
	// MaxBytes is the number of bytes; 0 means 4 GiB, where int has 32 bits 1 GiB. It is set
	// before the first use.
	MaxBytes int64

	mu    sync.Mutex // guards the rest; not held while waiting
	used  int64
	pages []*pageReader // that have used something, the oldest first
	freed chan struct{} // closed when a page is done; nil while no page waits
}

// defaultBudget is twice a page.
const defaultBudget int64 = 2 * defaultMaxListBytes

// take counts more bytes of a page, and waits while there are too many.
func (b *Budget) take(ctx context.Context, r *pageReader, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.used == 0 {
		b.pages = append(b.pages, r)
	}
	r.used += n
	b.used += n
	for b.used > cmp.Or(b.MaxBytes, defaultBudget) && b.pages[0] != r {
		if b.freed == nil {
			b.freed = make(chan struct{})
		}
		freed := b.freed
		b.mu.Unlock()
		err := r.wait(ctx, freed)
		b.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Budget) give(r *pageReader) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages = slices.DeleteFunc(b.pages, func(other *pageReader) bool { return other == r })
	b.used -= r.used
	r.used = 0
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// pageReader reads the body of a page and bounds its memory. It belongs to the goroutine that
// called List.
type pageReader struct {
	ctx        context.Context
	body       io.Reader
	onActivity func() // may be nil
	limit      int64  // of total
	total      int64
	read       int64 // bytes of the body
	objectSize int64 // least memory of an object
	budget     *Budget
	used       int64 // of the budget; guarded by its mutex
}

// Read reads from the body, and fails beyond the limit.
func (r *pageReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	r.read += int64(n)
	if tooLarge := r.take(int64(n)); tooLarge != nil {
		return 0, tooLarge
	}
	return n, err
}

// object counts the memory of an object that will be decoded from so many bytes. Its Go type
// may take more.
func (r *pageReader) object(size int) error {
	return r.take(r.objectSize - int64(size))
}

func (r *pageReader) take(n int64) error {
	if r.total += max(n, 0); r.total > r.limit {
		what := "an answer"
		if r.read <= r.limit {
			what = "a list that takes memory"
		}
		return fmt.Errorf("%s %w of %d bytes", what, ErrFrameTooLarge, r.limit)
	}
	if r.budget == nil || n <= 0 {
		return nil
	}
	return r.budget.take(r.ctx, r, n)
}

// wait waits until another page is done. Meanwhile, the server does not count as silent.
func (r *pageReader) wait(ctx context.Context, freed <-chan struct{}) error {
	keepActive(r.onActivity, freed, ctx.Done())
	select {
	case <-freed:
		return nil
	default:
		return fmt.Errorf("waiting until other lists are read, "+
			"as there is no more memory for them (ListBudget): %w", context.Cause(ctx))
	}
}

func (r *pageReader) done() {
	if r.budget != nil {
		r.budget.give(r)
	}
}

// readBody reads a body, which bounds itself.
func readBody(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(body)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("%w after %d bytes: %w", ErrCutFrame, len(data), err)
	}
	return data, err
}
