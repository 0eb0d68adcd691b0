package delta

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// partition is a key prefix with a producer of its own. Queue.mu guards it, except listed,
// which belongs to the goroutine in Pop.
type partition struct {
	prefix   string
	reached  string // the version at the end of the queue
	listed   string // the newest list's version: a key that it did not name has no older state
	replaced bool   // its first Replace has been processed
	removed  bool   // it takes nothing more
}

// partition returns the partition of a call, or an error that is ErrUnknownPartition.
func (q *Queue[T]) partition(operation, prefix string) (*partition, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p := q.partitions[prefix]; p != nil {
		return p, nil
	}
	return nil, errUnknown(operation, prefix)
}

func errUnknown(operation, prefix string) error {
	return fmt.Errorf("%w: %s of %q: it is not in Options.Partitions, "+
		"was not added with AddPartition, or was removed", ErrUnknownPartition, operation, prefix)
}

// checkKey returns an error that is ErrForeignKey if a key is outside the partition.
func (p *partition) checkKey(operation, key string) error {
	if !strings.HasPrefix(key, p.prefix) {
		return fmt.Errorf("%w: %s of partition %q with key %q; "+
			"drop objects that were not asked for", ErrForeignKey, operation, p.prefix, key)
	}
	return nil
}

// AddPartition adds a key prefix with a producer of its own. Until the initial set is complete
// the partition becomes part of it; afterwards the adds of its first Replace are not marked
// Initial. Errors: ErrOverlap, ErrClosed.
func (q *Queue[T]) AddPartition(prefix string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return q.closed
	}
	for other := range q.partitions {
		if strings.HasPrefix(prefix, other) || strings.HasPrefix(other, prefix) {
			return errOverlap(prefix, other)
		}
	}
	q.addPartitionsLocked(prefix)
	return nil
}

func (q *Queue[T]) addPartitionsLocked(prefixes ...string) {
	for _, prefix := range prefixes {
		q.partitions[prefix] = &partition{prefix: prefix}
	}
	q.unlisted += len(prefixes)
}

// RemovePartition ends a partition. Its producer gets ErrUnknownPartition from now on, also
// while it waits for room. Pending changes are still handed on, and then a batch, marked
// Removed, that deletes everything known of the partition as tombstones, because later changes
// of those objects are not seen. If it was the last partition without a list, that batch
// completes the initial set. The prefix may be added again at once. RemovePartition does not
// wait. Errors: ErrUnknownPartition, ErrClosed, and one for the partition "" of all keys, which
// [Queue.ReplacePartitions] ends.
func (q *Queue[T]) RemovePartition(prefix string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return q.closed
	}
	if prefix == "" {
		return fmt.Errorf("delta: the partition %q of all keys cannot be removed: "+
			"close the queue, or use ReplacePartitions", prefix)
	}
	p := q.partitions[prefix]
	if p == nil {
		return errUnknown("removal", prefix)
	}
	q.removePartitionsLocked([]*partition{p})
	q.settleLocked()
	return nil
}

// ReplacePartitions ends all partitions, as RemovePartition does, in one batch, and adds others
// in their place, which may overlap with the ones before. If the initial set was not complete,
// it is that of the new partitions. Errors: ErrOverlap, ErrClosed; nothing is changed then.
func (q *Queue[T]) ReplacePartitions(prefixes ...string) error {
	prefixes = slices.Sorted(slices.Values(prefixes))
	if err := checkOverlap(prefixes); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return q.closed
	}
	q.removePartitionsLocked(slices.Collect(maps.Values(q.partitions)))
	q.addPartitionsLocked(prefixes...)
	q.settleLocked()
	return nil
}

// checkOverlap returns an error that is ErrOverlap if a key may belong to two partitions, of
// ascending prefixes.
func checkOverlap(prefixes []string) error {
	for i := 1; i < len(prefixes); i++ {
		// In ascending order a prefix is directly before the first string that begins with it.
		if strings.HasPrefix(prefixes[i], prefixes[i-1]) {
			return errOverlap(prefixes[i], prefixes[i-1])
		}
	}
	return nil
}

func errOverlap(prefix, other string) error {
	return fmt.Errorf("%w: %q with %q; a key must belong to one partition",
		ErrOverlap, prefix, other)
}

// removePartitionsLocked ends partitions and queues their removal.
func (q *Queue[T]) removePartitionsLocked(partitions []*partition) {
	slices.SortFunc(partitions, func(a, b *partition) int {
		return strings.Compare(a.prefix, b.prefix)
	})
	for _, p := range partitions {
		p.removed = true
		delete(q.partitions, p.prefix)
	}
	q.openLocked().removal = partitions
	for _, w := range q.waiters {
		if w.partition.removed {
			w.signal()
		}
	}
}
