package sharedinformer

import (
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/metaindex"
	"github.com/tidings-go/tidings/store"
)

// Candidates yields objects of a namespace, "" being all, among which are all that the
// selector matches; exact says that all of them match. It is what the lists of
// clientgo/cache ask for when they are given this cache.
func (x *indexer) Candidates(namespace string, selector labels.Selector) (found iter.Seq2[string, any], exact bool) {
	known := x.known.Load() // before the snapshot, which then has these indexes
	snapshot := x.store.Snapshot()
	if f := known.indexers[cache.NamespaceIndex]; namespace != "" && !known.byNamespace && f != nil {
		// The program says by a function of its own what is in a namespace; where it
		// fails, client-go looks at the objects.
		values, err := f(&metav1.ObjectMeta{Namespace: namespace})
		if index, missing := snapshot.Index(cache.NamespaceIndex); err == nil && missing == nil {
			return index.LookupAny(values), selector == nil || selector.Empty()
		}
	}
	return metaindex.Candidates(snapshot, scopeOf(namespace), selector, func(label string) (store.Index[any], bool) {
		if !known.labels[label] {
			return store.Index[any]{}, false
		}
		index, err := snapshot.Index(tidings.LabelIndex(label))
		return index, err == nil
	})
}

// OwnerCandidates does so for the objects that have an owner of that UID.
func (x *indexer) OwnerCandidates(namespace string, uid types.UID) iter.Seq2[string, any] {
	known := x.known.Load()
	snapshot := x.store.Snapshot()
	if known.owners {
		if index, err := snapshot.Index(tidings.OwnerIndex); err == nil {
			return index.Within(scopeOf(namespace)).Lookup(string(uid))
		}
	}
	return snapshot.Prefix(scopeOf(namespace))
}

// scopeOf returns the prefix of the keys of a namespace, "" being all.
func scopeOf(namespace string) string {
	if namespace == "" {
		return ""
	}
	return namespace + "/"
}
