package delta

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidings-go/tidings/internal/change"
)

// scope is a key prefix with a producer of its own.
type scope struct {
	prefix   string
	index    int32  // into resolver.listed
	reached  string // the version at the end of the queue
	applied  string // the version of the last processed batch
	replaced bool   // its first Replace has been processed
	removed  bool   // RemoveScope was called: it takes nothing any more
}

// scope returns the scope of a call, or an error that is ErrUnknownScope.
func (q *Queue[T]) scope(operation, prefix string) (*scope, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if sc := q.scopes[prefix]; sc != nil {
		return sc, nil
	}
	return nil, errUnknown(operation, prefix)
}

func errUnknown(operation, prefix string) error {
	return fmt.Errorf("%w: %s of %q; it is neither one of Options.Scopes nor was it added with AddScope, or it was removed", ErrUnknownScope, operation, prefix)
}

// checkKey returns an error that is ErrForeignKey if a key cannot be one of the scope.
func (sc *scope) checkKey(operation, key string) error {
	if !strings.HasPrefix(key, sc.prefix) {
		return fmt.Errorf("%w: %s of scope %q with key %q; drop objects that were not asked for", ErrForeignKey, operation, sc.prefix, key)
	}
	return nil
}

// AddScope adds a key prefix with a producer of its own. Until the initial set is complete it becomes part of that; afterwards the adds of its
// first Replace are not marked Initial. Errors: ErrOverlap, ErrClosed.
func (q *Queue[T]) AddScope(prefix string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return q.closed
	}
	for other := range q.scopes {
		if strings.HasPrefix(prefix, other) || strings.HasPrefix(other, prefix) {
			return fmt.Errorf("%w: %q with %q; a key must belong to one scope", ErrOverlap, prefix, other)
		}
	}
	q.addScopeLocked(prefix)
	return nil
}

func (q *Queue[T]) addScopeLocked(prefix string) {
	q.scopes[prefix] = &scope{prefix: prefix, index: q.freeIndexLocked()}
	q.unsynced++
}

// freeIndexLocked returns an index into resolver.listed that no scope has.
func (q *Queue[T]) freeIndexLocked() int32 {
	if n := len(q.freeIndexes); n > 0 {
		index := q.freeIndexes[n-1]
		q.freeIndexes = q.freeIndexes[:n-1]
		return index
	}
	q.indexes++
	return q.indexes - 1
}

// RemoveScope ends a scope. Its producer gets ErrUnknownScope from now on, also one that waits for room. What is pending is still handed on, and then
// a batch that deletes everything known of the scope, as tombstones, because what becomes of those objects is not known any more. It is alone in its batch,
// which says Removed. A removed scope is not waited for: if it was the last one without a list, that batch completes the initial set. The
// prefix may be added again at once. RemoveScope does not wait. Errors: ErrUnknownScope, ErrClosed, and one for the scope "", which is everything:
// [Queue.ReplaceScopes] ends that.
func (q *Queue[T]) RemoveScope(prefix string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return q.closed
	}
	if prefix == "" {
		return fmt.Errorf("delta: the scope %q of everything cannot be removed: close the queue, or use ReplaceScopes", prefix)
	}
	sc := q.scopes[prefix]
	if sc == nil {
		return errUnknown("removal", prefix)
	}
	q.removeScopesLocked([]*scope{sc})
	q.settleLocked()
	return nil
}

// ReplaceScopes ends all scopes, as RemoveScope does, in one batch, and adds others in their place, which may overlap with the ones before. They
// are waited for: if the initial set was not complete, it is that of the new scopes. Errors: ErrOverlap if prefixes overlap, ErrClosed;
// nothing is changed then.
func (q *Queue[T]) ReplaceScopes(prefixes ...string) error {
	prefixes = slices.Sorted(slices.Values(prefixes))
	if err := checkOverlap(prefixes); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed != nil {
		return q.closed
	}
	q.removeScopesLocked(slices.Collect(maps.Values(q.scopes)))
	for _, prefix := range prefixes {
		q.addScopeLocked(prefix)
	}
	q.settleLocked()
	return nil
}

// checkOverlap returns an error that is ErrOverlap if a key may belong to two scopes, of ascending prefixes.
func checkOverlap(prefixes []string) error {
	for i := 1; i < len(prefixes); i++ {
		// In ascending order a prefix stands directly before the first string that begins with it.
		if strings.HasPrefix(prefixes[i], prefixes[i-1]) {
			return fmt.Errorf("%w: %q with %q; a key must belong to one scope", ErrOverlap, prefixes[i], prefixes[i-1])
		}
	}
	return nil
}

// removeScopesLocked ends scopes, and puts the removal of what is known of them at the end of the queue.
func (q *Queue[T]) removeScopesLocked(scopes []*scope) {
	slices.SortFunc(scopes, func(a, b *scope) int { return strings.Compare(a.prefix, b.prefix) })
	for _, sc := range scopes {
		sc.removed = true
		delete(q.scopes, sc.prefix)
	}
	q.openLocked().removal = scopes
	for _, w := range q.waiters {
		if w.scope.removed {
			select {
			case w.wake <- struct{}{}:
			default: // it has been told
			}
		}
	}
}

// removedLocked notes that the removal of a scope is applied.
func (q *Queue[T]) removedLocked(sc *scope) {
	if !sc.replaced {
		q.unsynced--
	}
	q.freeIndexes = append(q.freeIndexes, sc.index)
}

// removeScopes resolves the removal of scopes: all that is known of them goes.
func (r *resolver[T]) removeScopes(scopes []*scope) []change.Change[T] {
	for _, sc := range scopes {
		for key, object := range r.known.Prefix(sc.prefix) {
			r.deltas = append(r.deltas, change.Change[T]{Type: change.Deleted, Key: key, Old: object, New: object, Tombstone: true})
		}
		r.deletes.reset(sc.prefix)
		*r.listedAt(sc.index) = ""
	}
	return r.deltas
}

// listedAt returns the place of a scope's entry in listed.
func (r *resolver[T]) listedAt(index int32) *string {
	for int(index) >= len(r.listed) {
		r.listed = append(r.listed, "")
	}
	return &r.listed[index]
}
