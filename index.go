package tidings

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tidings-go/tidings/internal/metaindex"
	"github.com/tidings-go/tidings/store"
)

// Errors of adding indexes.
var (
	// ErrIndexReserved is an index of one's own under a name that belongs to
	// IndexLabels or IndexOwners.
	ErrIndexReserved = errors.New(`the names "owner" and "label:…" are those of IndexOwners and IndexLabels: choose another one`)
	// ErrLabelKey is an index of a label whose key no label can have.
	ErrLabelKey = errors.New("no label has such a key")
)

// IndexFunc returns the values under which an index finds an object, none or any
// number. An error or a panic costs the object its entry in that index and is
// counted in Health.
type IndexFunc[T Object] = store.IndexFunc[T]

// OwnerIndex is the name of the index that IndexOwners adds. Its values are the UIDs of
// owners.
const OwnerIndex = "owner"

const labelPrefix = "label:"

// LabelIndex returns the name of the index that IndexLabels adds for the label of a key.
// Its values are those of the label.
func LabelIndex(key string) string { return labelPrefix + key }

// AddIndex adds an index, which the lister's ByIndex reads. It may be called at any
// time; objects that are cached are indexed before it returns. A name that exists
// is an error: another user of the same informer may have added it, with another
// function. So is a name that IndexLabels or IndexOwners would use.
func (i *Informer[T]) AddIndex(name string, f IndexFunc[T]) error {
	if err := checkIndexName(name); err != nil {
		return informerError(i.Name(), err)
	}
	return i.addIndex(name, f)
}

// IndexLabels has the informer index its objects by the labels of these keys: Select is
// then answered out of an index where the selector names values of one of them, as
// "app=web" and "tier in (a,b)" do, and visits no other objects. What Select yields does
// not depend on it. It may be called at any time; objects that are cached are indexed before
// it returns. Other users of the informer profit too, and may ask for the same.
//
// An index costs about 90 bytes per object that has the label, 60 if it is not the first
// index. A label whose value is the object's own is better looked up by name.
func (i *Informer[T]) IndexLabels(keys ...string) error {
	for _, key := range keys {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return informerError(i.Name(), fmt.Errorf("index of label %q: %w: %s", key, ErrLabelKey, strings.Join(problems, "; ")))
		}
	}
	for _, key := range keys {
		if err := i.shareIndex(LabelIndex(key), func(obj T) ([]string, error) { return metaindex.LabelValues(obj, key), nil }); err != nil {
			return err
		}
	}
	return nil
}

// IndexOwners has the informer index its objects by the UIDs of their owners: Owned and
// Controlled are then answered out of the index. What they yield does not depend on it. When
// it may be called, and what it costs, is as IndexLabels says.
func (i *Informer[T]) IndexOwners() error {
	return i.shareIndex(OwnerIndex, func(obj T) ([]string, error) { return metaindex.OwnerUIDs(obj), nil })
}

// indexesByID returns index functions as the store's options want them.
func indexesByID[T Object](named map[string]IndexFunc[T]) map[any]IndexFunc[T] {
	functions := make(map[any]IndexFunc[T], len(named))
	for name, f := range named {
		functions[name] = f
	}
	return functions
}

// addIndex adds an index under any name.
func (i *Informer[T]) addIndex(name string, f IndexFunc[T]) error {
	c, err := i.held()
	if err != nil {
		return err
	}
	defer c.logIndexErrors()
	if err := c.store.AddIndex(name, f); err != nil {
		return informerError(i.Name(), err)
	}
	return nil
}

// shareIndex adds an index whose name says what its function does, once.
func (i *Informer[T]) shareIndex(name string, f IndexFunc[T]) error {
	if err := i.addIndex(name, f); err != nil && !errors.Is(err, store.ErrIndexExists) {
		return err
	}
	return nil
}

// checkIndexName refuses names that belong to the indexes of this package.
func checkIndexName(name string) error {
	if name == OwnerIndex || strings.HasPrefix(name, labelPrefix) {
		return fmt.Errorf("index %q: %w", name, ErrIndexReserved)
	}
	return nil
}

// selected yields the objects of a scope whose labels match, out of one snapshot.
func (l Lister[T]) selected(scope string, selector labels.Selector) iter.Seq2[string, T] {
	snapshot := l.store.Snapshot()
	candidates, exact := metaindex.Candidates(snapshot, scope, selector, func(key string) (store.Index[T], bool) {
		index, err := snapshot.Index(LabelIndex(key))
		return index, err == nil
	})
	if exact {
		return candidates
	}
	return func(yield func(string, T) bool) {
		for key, obj := range candidates {
			if selector.Matches(metaindex.Labels(obj)) && !yield(key, obj) {
				return
			}
		}
	}
}

// owned yields the objects of a scope that have an owner, out of one snapshot.
func (l Lister[T]) owned(scope string, uid types.UID, controller bool) iter.Seq2[string, T] {
	snapshot := l.store.Snapshot()
	candidates := snapshot.Prefix(scope)
	if index, err := snapshot.Index(OwnerIndex); err == nil {
		candidates = index.Within(scope).Lookup(string(uid))
		if !controller {
			return candidates
		}
	}
	return func(yield func(string, T) bool) {
		for key, obj := range candidates {
			if metaindex.Owned(obj, uid, controller) && !yield(key, obj) {
				return
			}
		}
	}
}

// indexErrors counts failures of index functions.
type indexErrors struct {
	mu       sync.Mutex // guards the rest
	count    uint64
	last     error
	unlogged []store.IndexError
}

func (e *indexErrors) add(err store.IndexError) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	e.last = err
	e.unlogged = append(e.unlogged, err)
}

// take returns the failures since the last call.
func (e *indexErrors) take() []store.IndexError {
	e.mu.Lock()
	defer e.mu.Unlock()
	taken := e.unlogged
	e.unlogged = nil
	return taken
}

func (e *indexErrors) get() (uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.count, e.last
}
