package tidings

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tidings-go/tidings/internal/engine/metaindex"
	"github.com/tidings-go/tidings/store"
)

// Errors of adding indexes.
var (
	// ErrLabelKey is an index of a label whose key no label can have.
	ErrLabelKey = errors.New("no label has such a key")
	errNilIndex = errors.New("the index is nil: make one with NewIndex")
	errNoLabels = errors.New("IndexLabels has no keys: name the labels to index")
)

// Index finds objects by values that a function takes from them. Make one with [NewIndex]
// for all informers of a type, add it to an informer with AddIndex, and give it to the
// lister's ByIndex:
//
//	byNode := tidings.NewIndex("node", func(p *corev1.Pod) []string {
//		return []string{p.Spec.NodeName}
//	})
//	err := pods.AddIndex(byNode)
//	for _, pod := range pods.Lister().ByIndex(byNode, "node-1") { … }
type Index[T Object] struct {
	name   string
	values func(T) []string
}

// NewIndex returns an index. Logs and health call it name. The function returns the values
// under which the index finds an object, none or any number; it must not change the object.
// A panic costs the object its entry in the index and is counted in Health.
func NewIndex[T Object](name string, values func(T) []string) *Index[T] {
	return &Index[T]{name, values}
}

// String returns the name.
func (x *Index[T]) String() string { return x.name }

func (x *Index[T]) check() error {
	switch {
	case x == nil:
		return errNilIndex
	case x.name == "":
		return store.ErrIndexName
	case x.values == nil:
		return fmt.Errorf("index %q: %w", x.name, store.ErrIndexFunc)
	}
	return nil
}

func (x *Index[T]) function() store.IndexFunc[T] {
	return func(obj T) ([]string, error) { return x.values(obj), nil }
}

// has reports whether the function gives an object a value. A panic counts as no value, as it
// does in an index that was added.
func (x *Index[T]) has(obj T, value string) (found bool) {
	defer func() { _ = recover() }()
	return slices.Contains(x.values(obj), value)
}

// AddIndex adds an index. It may be called at any time; cached objects are indexed before it
// returns. An index that was added before, also by another user of the informer, changes
// nothing.
func (i *Informer[T]) AddIndex(index *Index[T]) error {
	if err := index.check(); err != nil {
		return informerError(i.Name(), err)
	}
	return i.addIndex(index, index.function())
}

// IndexLabels adds indexes of the labels of these keys: Select then finds objects by them
// where the selector names values of one of the labels, as "app=web" and "tier in (a,b)" do,
// and visits no other objects. The result of Select does not depend on it. It may be called
// at any time; cached objects are indexed before it returns. Other users of the informer
// profit too, and may ask for the same.
//
// An index costs about 90 bytes per object that has the label, 60 if it is not the first
// index. A label whose value is the object's own is better looked up by name.
func (i *Informer[T]) IndexLabels(keys ...string) error {
	if len(keys) == 0 {
		return informerError(i.Name(), errNoLabels)
	}
	for _, key := range keys {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return informerError(i.Name(), fmt.Errorf("index of label %q: %w: %s",
				key, ErrLabelKey, strings.Join(problems, "; ")))
		}
	}
	for _, key := range keys {
		values := func(obj T) ([]string, error) { return metaindex.LabelValues(obj, key), nil }
		if err := i.addIndex(metaindex.Label(key), values); err != nil {
			return err
		}
	}
	return nil
}

// IndexOwners adds an index of the UIDs of owners: Owned and Controlled then find objects by
// it. Their results do not depend on it. See IndexLabels for when it may be called, and for its
// cost.
func (i *Informer[T]) IndexOwners() error {
	return i.addIndex(metaindex.Owners, func(obj T) ([]string, error) {
		return metaindex.OwnerUIDs(obj), nil
	})
}

func (i *Informer[T]) addIndex(id any, f store.IndexFunc[T]) error {
	c, err := i.held()
	if err != nil {
		return err
	}
	return c.addIndex(id, f)
}

// indexed yields the objects of a namespace that an index has under a value, out of one
// snapshot. Without the index it looks at all objects.
func (l Lister[T]) indexed(prefix string, index *Index[T], value string) iter.Seq2[string, T] {
	snapshot := l.Snapshot()
	if added, ok := snapshot.Index(index); ok {
		return added.Within(prefix).Lookup(value)
	}
	return filtered(snapshot.Prefix(prefix), func(obj T) bool { return index.has(obj, value) })
}

// selected yields the objects of a namespace whose labels match, out of one snapshot.
func (l Lister[T]) selected(prefix string, selector labels.Selector) iter.Seq2[string, T] {
	candidates, exact := metaindex.Candidates(l.Snapshot(), prefix, selector)
	if exact {
		return candidates
	}
	return filtered(candidates, func(obj T) bool { return metaindex.Matches(selector, obj) })
}

// owned yields the objects of a namespace that have an owner, out of one snapshot.
func (l Lister[T]) owned(prefix string, uid types.UID, controller bool) iter.Seq2[string, T] {
	candidates := metaindex.OwnerCandidates(l.Snapshot(), prefix, uid)
	return filtered(candidates, func(obj T) bool { return metaindex.Owned(obj, uid, controller) })
}

// filtered yields the objects that match.
func filtered[T any](all iter.Seq2[string, T], match func(T) bool) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for key, obj := range all {
			if match(obj) && !yield(key, obj) {
				return
			}
		}
	}
}
