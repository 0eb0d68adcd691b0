package source

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Budget bounds what all pages of lists that are being read at the same time have in
// memory, together: those of all sources that share it. A page counts from its first byte
// until List returns it. The zero value is ready.
//
// Where the budget is used up, the pages wait, except the oldest, which is read to its end:
// so there is always one that makes room for the others, and what is in memory is at most
// the budget and one page ([RESTOptions].MaxListBytes). A server may give up on a page that
// waits for a minute; then that list fails, and is tried again as after any failure.
//
// It may be used by several goroutines at once.
type Budget struct {
	// MaxBytes is how many bytes; 0 means 4 GiB, where int has 32 bits 1 GiB. It is set
	// before the first use.
	MaxBytes int64

	mu    sync.Mutex // guards the rest; not held while waiting
	used  int64
	pages []*reading    // that have used something, the oldest first
	freed chan struct{} // closed when a page is over; nil while no page waits
}

// defaultBudget is twice a page.
const defaultBudget = 2 * defaultMaxListBytes

// stillHere is how often a page that waits calls Heard.
const stillHere = 100 * time.Millisecond

// take notes that a page uses more bytes, and waits while there are too many.
func (b *Budget) take(ctx context.Context, r *reading, n int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.used == 0 {
		b.pages = append(b.pages, r)
	}
	r.used += n
	b.used += n
	for b.used > b.limit() && b.pages[0] != r {
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

func (b *Budget) limit() int64 {
	if b.MaxBytes == 0 {
		return defaultBudget
	}
	return b.MaxBytes
}

// give notes that a page is over.
func (b *Budget) give(r *reading) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages = slices.DeleteFunc(b.pages, func(other *reading) bool { return other == r })
	b.used -= r.used
	r.used = 0
	if b.freed != nil {
		close(b.freed)
		b.freed = nil
	}
}

// reading is a page that is being read: its body, and what it takes. A nil one counts
// nothing. It belongs to the goroutine that called List.
type reading struct {
	ctx    context.Context
	body   io.Reader
	heard  func() // may be nil
	limit  int64  // of total
	total  int64
	read   int64 // bytes of the body
	least  int64 // what an object takes at least
	budget *Budget
	used   int64 // of the budget; guarded by its mutex
}

// Read reads from the body, and fails beyond the limit.
func (r *reading) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	r.read += int64(n)
	if tooLarge := r.take(int64(n)); tooLarge != nil {
		return 0, tooLarge
	}
	return n, err
}

// object notes that an object of so many bytes is to be decoded. It takes the memory of its
// Go type, though the bytes may be fewer.
func (r *reading) object(size int) error {
	if r == nil {
		return nil
	}
	return r.take(r.least - int64(size))
}

func (r *reading) take(n int64) error {
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

// wait waits until another page is over. It is no silence of the server.
func (r *reading) wait(ctx context.Context, freed <-chan struct{}) error {
	tick := time.NewTicker(stillHere)
	defer tick.Stop()
	for {
		select {
		case <-freed:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("waiting until other lists are read, as there is no more memory for them (ListBudget): %w", context.Cause(ctx))
		case <-tick.C:
			if r.heard != nil {
				r.heard()
			}
		}
	}
}

// done gives back what the page has used.
func (r *reading) done() {
	if r != nil && r.budget != nil {
		r.budget.give(r)
	}
}
