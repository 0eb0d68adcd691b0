package cache

import (
	"fmt"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/internal/engine/metaindex"
)

// IndexLabels adds indexes of objects by the labels of these keys to an informer of this
// module, at any time. [Select], [ListAll] and the listers use them for selectors with values of
// such a label, as "app=web" and "tier in (a,b)". An index that exists already is no error. An
// informer of another module is an error.
func IndexLabels(informer SharedIndexInformer, keys ...string) error {
	x, err := indexerOf(informer)
	if err != nil {
		return fmt.Errorf("cache.IndexLabels: %w", err)
	}
	return x.IndexLabels(keys...)
}

// IndexOwners adds the index of objects by the UIDs of their owners to an informer of this
// module, at any time. [Owned] and [Controlled] use it. An index that exists already is no error.
// An informer of another module is an error.
func IndexOwners(informer SharedIndexInformer) error {
	x, err := indexerOf(informer)
	if err != nil {
		return fmt.Errorf("cache.IndexOwners: %w", err)
	}
	return x.IndexOwners()
}

// metaIndexer is the cache of an informer of this module.
type metaIndexer interface {
	IndexLabels(keys ...string) error
	IndexOwners() error
}

func indexerOf(informer SharedIndexInformer) (metaIndexer, error) {
	if x, ok := informer.GetIndexer().(metaIndexer); ok {
		return x, nil
	}
	return nil, fmt.Errorf("the informer is a %T, which is not of this module: "+
		"add an index function with its AddIndexers", informer)
}

// Select yields the objects of a namespace, [metav1.NamespaceAll] being all, whose labels
// match. It lists any cache. The cache of this module's informers is not copied: its objects come
// in the order of their keys, found by the indexes of [IndexLabels]. An object that is not a T
// makes it panic, as in client-go's listers.
func Select[T any](indexer Indexer, namespace string, selector labels.Selector) iter.Seq[T] {
	found, exact := listed(indexer, namespace), selector == nil || selector.Empty()
	if c, ok := indexer.(candidates); ok {
		found, exact = c.Candidates(namespace, selector)
	}
	match := func(m metav1.Object) bool { return metaindex.Matches(selector, m) }
	return only[T](found, match, exact)
}

// Owned yields the objects of a namespace, [metav1.NamespaceAll] being all, that have an owner
// with that UID, as [Select] does.
func Owned[T any](indexer Indexer, namespace string, uid types.UID) iter.Seq[T] {
	return owned[T](indexer, namespace, uid, false)
}

// Controlled yields the objects of a namespace, [metav1.NamespaceAll] being all, whose
// controller has that UID, as [Select] does.
func Controlled[T any](indexer Indexer, namespace string, uid types.UID) iter.Seq[T] {
	return owned[T](indexer, namespace, uid, true)
}

func owned[T any](indexer Indexer, namespace string, uid types.UID, controller bool) iter.Seq[T] {
	found := listed(indexer, namespace)
	if c, ok := indexer.(interface {
		OwnerCandidates(namespace string, uid types.UID) iter.Seq2[string, any]
	}); ok {
		found = c.OwnerCandidates(namespace, uid)
	}
	match := func(m metav1.Object) bool { return metaindex.Owned(m, uid, controller) }
	return only[T](found, match, false)
}

// listed yields the objects of a namespace of any cache, without keys.
func listed(indexer Indexer, namespace string) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for _, obj := range listOf(indexer, namespace) {
			if !yield("", obj) {
				return
			}
		}
	}
}

func listOf(indexer Indexer, namespace string) []any {
	if namespace == metav1.NamespaceAll {
		return indexer.List()
	}
	list, err := indexer.Index(NamespaceIndex, &metav1.ObjectMeta{Namespace: namespace})
	if err == nil {
		return list
	}
	return slices.DeleteFunc(indexer.List(), func(obj any) bool { // without the index
		m, err := meta.Accessor(obj)
		return err != nil || m.GetNamespace() != namespace
	})
}

// only yields the objects whose metadata match. With exact, all of them match.
func only[T any](found iter.Seq2[string, any], match func(metav1.Object) bool,
	exact bool) iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, obj := range found {
			if !exact {
				if m, err := meta.Accessor(obj); err != nil || !match(m) {
					continue
				}
			}
			if !yield(obj.(T)) {
				return
			}
		}
	}
}
