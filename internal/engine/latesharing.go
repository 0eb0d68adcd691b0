package engine

import (
	"context"
	"maps"
	"reflect"
	"time"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/store"
)

const (
	// quietTime is the least time for which an object stays unchanged before its parts are shared.
	quietTime = 10 * time.Second
	// sharedAtOnce is the number of shared objects that are cached together. Batches wait
	// meanwhile: about 0.1 ms.
	sharedAtOnce = 32
)

// lateSharing shares the parts of objects that watches have brought, when they have not changed for
// a while: most states of an object that changes often are replaced before that pays.
type lateSharing[T any] struct {
	*shared[T]
	share   func(T) T           // nil shares nothing; written before Run starts the reflectors
	changed map[string]struct{} // keys since the last round; guarded by applyMu
	begun   chan struct{}       // one token: changed has a first key
}

// begin is called when the collection begins to run.
func (l *lateSharing[T]) begin() {
	if l.o.Share != nil {
		l.share = l.o.Share()
	}
	if l.share != nil {
		l.goroutines.start("sharing", l.run)
	}
}

// note notes the objects that a watch has brought. The lists' are shared already. It is called
// under applyMu.
func (l *lateSharing[T]) note(changes []change.Change[T]) {
	if l.share == nil {
		return
	}
	for i := range changes {
		if changes[i].Type != change.Deleted {
			l.changed[changes[i].Key] = struct{}{}
		}
	}
	if len(l.changed) > 0 {
		select {
		case l.begun <- struct{}{}:
		default:
		}
	}
}

// run shares, once in quietTime, the objects that have changed before it alone.
func (l *lateSharing[T]) run(ctx context.Context) {
	var before map[string]struct{}
	for {
		if len(before) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-l.begun:
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(quietTime):
		}
		l.applyMu.Lock()
		changed := l.changed
		l.changed = map[string]struct{}{}
		l.applyMu.Unlock()
		maps.DeleteFunc(before, func(key string, _ struct{}) bool {
			_, again := changed[key]
			return again
		})
		l.shareParts(ctx, before)
		before = changed
	}
}

// shareParts shares the parts of the cached objects of some keys.
func (l *lateSharing[T]) shareParts(ctx context.Context, keys map[string]struct{}) {
	var found []change.Change[T]
	for key := range keys {
		obj, ok := l.store.Get(key)
		if !ok {
			continue
		}
		shared := l.share(obj)
		if areSame(shared, obj) {
			continue
		}
		found = append(found, change.Change[T]{Type: change.Updated, Key: key, Old: obj, New: shared})
		if len(found) == sharedAtOnce {
			l.replaceEqual(found)
			found = found[:0]
		}
		if ctx.Err() != nil {
			return
		}
	}
	l.replaceEqual(found)
}

// replaceEqual caches New where Old, which equals it, is still cached. No handler receives that.
func (l *lateSharing[T]) replaceEqual(equal []change.Change[T]) {
	l.applyMu.Lock()
	defer l.applyMu.Unlock()
	replaced := equal[:0]
	l.store.Update(func(b *store.Batch[T]) {
		for _, e := range equal {
			if cached, ok := b.Get(e.Key); ok && areSame(cached, e.Old) {
				b.SetEqual(e.Key, e.New)
				replaced = append(replaced, e)
			}
		}
	})
	if l.o.Observe != nil {
		l.o.Observe(replaced)
	}
}

// areSame reports whether two objects are one. Only those behind pointers can be.
func areSame[T any](a, b T) bool {
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	return v.Kind() == reflect.Pointer && w.Kind() == reflect.Pointer && v.Pointer() == w.Pointer()
}
