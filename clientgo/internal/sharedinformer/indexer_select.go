package sharedinformer

import (
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/internal/engine"
	"github.com/tidings-go/tidings/internal/engine/metaindex"
)

// Candidates yields objects of a namespace, "" being all. They include every object that the
// selector matches; exact reports whether all of them match. The lists of clientgo/cache call
// it.
func (x *indexer) Candidates(
	namespace string, selector labels.Selector) (found iter.Seq2[string, any], exact bool) {
	f := (*x.indexers.Load())[cache.NamespaceIndex] // before the snapshot, which then has this index
	snapshot := x.store.Snapshot()
	if namespace != "" && f != nil && !isByNamespace(cache.NamespaceIndex, f) {
		// The program has an index function of its own for namespaces. If it fails, the keys
		// decide, as in client-go.
		values, err := f(&metav1.ObjectMeta{Namespace: namespace})
		if index, ok := snapshot.Index(cache.NamespaceIndex); ok && err == nil {
			return index.LookupAny(values), selector == nil || selector.Empty()
		}
	}
	return metaindex.Candidates(snapshot, engine.Prefix(namespace), selector)
}

// OwnerCandidates yields objects of a namespace, "" being all. They include every object with an
// owner of that UID.
func (x *indexer) OwnerCandidates(namespace string, uid types.UID) iter.Seq2[string, any] {
	return metaindex.OwnerCandidates(x.store.Snapshot(), engine.Prefix(namespace), uid)
}
