package cache

import (
	"iter"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/internal/engine/metaindex"
)

// candidates is a cache of this module. Candidates yields objects of a namespace, among them
// all that the selector matches; exact reports whether all of them match.
type candidates interface {
	Candidates(namespace string, selector labels.Selector) (found iter.Seq2[string, any], exact bool)
}

// ListAll calls appendFn with every object of a store that the selector matches. It is
// client-go's [cache.ListAll], except that it uses the [IndexLabels] of this module's informers
// and does not copy their caches first.
func ListAll(store Store, selector labels.Selector, appendFn AppendFunc) error {
	if c, ok := store.(candidates); ok {
		return listCandidates(c, metav1.NamespaceAll, selector, appendFn)
	}
	return cache.ListAll(store, selector, appendFn)
}

// ListAllByNamespace is [ListAll] within a namespace, [metav1.NamespaceAll] being all. This
// module's informers need no index for it.
func ListAllByNamespace(indexer Indexer, namespace string, selector labels.Selector,
	appendFn AppendFunc) error {
	if c, ok := indexer.(candidates); ok {
		return listCandidates(c, namespace, selector, appendFn)
	}
	return cache.ListAllByNamespace(indexer, namespace, selector, appendFn)
}

func listCandidates(c candidates, namespace string, selector labels.Selector,
	appendFn AppendFunc) error {
	found, exact := c.Candidates(namespace, selector)
	for _, obj := range found {
		if !exact {
			m, err := meta.Accessor(obj)
			if err != nil {
				return err
			}
			if !metaindex.Matches(selector, m) {
				continue
			}
		}
		appendFn(obj)
	}
	return nil
}
