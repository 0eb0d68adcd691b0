package fanout

import "github.com/tidings-go/tidings/internal/engine/change"

// The sizes of a chunk, in notifications. A log starts with small chunks, so that an idle one is
// small, and doubles them while it is behind. A call that never returns keeps a chunk alive, so a
// chunk stays below a size that matters beside the backlog limit.
const (
	smallChunk = 32
	largeChunk = 256
)

// chunk is one link of the log: entries[i] is the notification with the number base+i. Links lead
// forward only, so a chunk is garbage once every cursor has passed it.
//
// Everything but the links already published is written under Log.mu. Readers look only at entries
// below Log.end, which is stored after they were written.
type chunk[T any] struct {
	base    uint64
	entries []change.Change[T] // nil until something is published to an empty tail
	next    *chunk[T]          // set before the first notification in it is published
	lent    bool               // a run of a reader that has left the log may still lie in it
}

// full reports whether nothing more fits below the number end.
func (c *chunk[T]) full(end uint64) bool { return end == c.base+uint64(len(c.entries)) }

// after returns the chunk that follows c and holds the notification base, or c itself if it was
// empty.
func (c *chunk[T]) after(base uint64) *chunk[T] {
	if c.entries == nil {
		c.entries = make([]change.Change[T], smallChunk)
		return c
	}
	size := min(2*len(c.entries), largeChunk)
	c.next = &chunk[T]{base: base, entries: make([]change.Change[T], size)}
	return c.next
}

// write copies notifications to the end of the log, of which tail is the last chunk and end the
// number of the next notification. It returns the new tail and end.
func (tail *chunk[T]) write(batch []change.Change[T], end uint64) (*chunk[T], uint64) {
	for len(batch) > 0 {
		if tail.full(end) {
			tail = tail.after(end)
		}
		n := copy(tail.entries[end-tail.base:], batch)
		batch, end = batch[n:], end+uint64(n)
	}
	return tail, end
}

// run returns the notifications from number from up to number to, as far as they lie in one chunk,
// and that chunk. There must be at least one.
func (c *chunk[T]) run(from, to uint64) (*chunk[T], []change.Change[T]) {
	if c.full(from) {
		c = c.next
	}
	lo, hi := from-c.base, min(to-c.base, uint64(len(c.entries)))
	return c, c.entries[lo:hi:hi]
}
