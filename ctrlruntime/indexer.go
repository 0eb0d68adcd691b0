package ctrlruntime

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/internal/engine/metaindex"
)

// OwnerField is a field for List of a cache of [NewCache] that needs no IndexField: the UIDs of
// the owners of an object.
//
//	err := c.List(ctx, &pods, client.InNamespace(owner.Namespace),
//		client.MatchingFields{ctrlruntime.OwnerField: string(owner.UID)})
//
// An index that the program adds under this name replaces it.
const OwnerField = "metadata.ownerReferences.uid"

const (
	// labelsField is a field that stands for requirements on labels. No program uses it.
	labelsField = "tidings.labels"

	// indexPrefix is the prefix of the names of indexes of fields, and everywhere the prefix of
	// the values for all namespaces. Both are controller-runtime's.
	indexPrefix = "field:"
	everywhere  = "__all_namespaces"

	// maxLabelIndexes bounds the indexes that lists add to an informer. Programs select by few
	// labels.
	maxLabelIndexes = 8
)

// requirement selects objects whose label has one of the values.
type requirement struct {
	Label  string
	Values []string
}

// byLabels returns the options of a list. If they have a label selector that names values and no
// field selector, they also have the field selector that stands for it. A selector of the program's
// own has no values that are known.
func byLabels(opts []client.ListOption) []client.ListOption {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.LabelSelector == nil || o.FieldSelector != nil {
		return opts
	}
	all, _ := metaindex.Requirements(o.LabelSelector)
	var named []requirement
	for i := range all {
		switch all[i].Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			named = append(named, requirement{all[i].Key(), all[i].ValuesUnsorted()})
		}
	}
	if len(named) == 0 {
		return opts
	}
	text, err := json.Marshal(named)
	if err != nil {
		return opts
	}
	selector := fields.OneTermEqualSelector(labelsField, string(text))
	return append(slices.Clip(opts), client.MatchingFieldsSelector{Selector: selector})
}

// informer is a drop-in informer with an indexer that finds objects by labels and owners.
type informer struct {
	cache.SharedIndexInformer
	indexer *indexer
}

// newInformer returns an informer of package clientgo/cache with such an indexer.
func newInformer(of cache.SharedIndexInformer) cache.SharedIndexInformer {
	store, ok := of.GetIndexer().(metaIndexer)
	if !ok {
		return of // not reached: all informers of clientgo/cache have such an indexer
	}
	return &informer{of, &indexer{metaIndexer: store}}
}

// GetIndexer returns the cache with its indexes.
func (i *informer) GetIndexer() cache.Indexer { return i.indexer }

// AddIndexers adds all indexes, or returns an error and adds none. The error of an existing name
// reads as client-go's.
func (i *informer) AddIndexers(added cache.Indexers) error {
	present := i.indexer.metaIndexer.GetIndexers()
	conflicts := make(map[string]struct{})
	for name := range added {
		if present[name] != nil {
			conflicts[name] = struct{}{}
		}
	}
	if len(conflicts) > 0 && !i.IsStopped() {
		return fmt.Errorf("indexer conflict: %v", conflicts)
	}
	return i.SharedIndexInformer.AddIndexers(added)
}

// metaIndexer is the indexer of an informer of package clientgo/cache.
type metaIndexer interface {
	cache.Indexer
	IndexLabels(keys ...string) error
	IndexOwners() error
	Candidates(namespace string, selector labels.Selector) (found iter.Seq2[string, any], exact bool)
	OwnerCandidates(namespace string, uid types.UID) iter.Seq2[string, any]
}

// indexer answers ByIndex for the fields of this package.
type indexer struct {
	metaIndexer

	mu      sync.Mutex // guards the rest
	indexed []string   // keys of labels
	owners  bool
}

// GetIndexers returns the index functions, with that of OwnerField.
func (x *indexer) GetIndexers() cache.Indexers {
	all := x.metaIndexer.GetIndexers()
	if all[indexPrefix+OwnerField] == nil {
		all[indexPrefix+OwnerField] = ownerValues
	}
	return all
}

// ownerValues is an index function as controller-runtime's for a field: values begin with the
// namespace.
func ownerValues(obj any) ([]string, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	var values []string
	for _, uid := range metaindex.OwnerUIDs(m) {
		values = append(values, everywhere+"/"+uid)
		if namespace := m.GetNamespace(); namespace != "" {
			values = append(values, namespace+"/"+uid)
		}
	}
	return values, nil
}

// ByIndex returns the objects that an index has under a value. For requirements on labels the
// result has more objects, among which the caller selects. The error for an index that does not
// exist has the text of client-go's.
func (x *indexer) ByIndex(name, value string) ([]any, error) {
	namespace, rest, _ := strings.Cut(value, "/")
	if namespace == everywhere {
		namespace = ""
	}
	if name == indexPrefix+labelsField {
		return x.byLabels(namespace, rest)
	}
	list, err := x.metaIndexer.ByIndex(name, value)
	switch {
	case err == nil || x.metaIndexer.GetIndexers()[name] != nil:
		return list, err
	case name == indexPrefix+OwnerField:
		return x.byOwner(namespace, types.UID(rest))
	default:
		return nil, fmt.Errorf("%s with name %s does not exist", "Index", name)
	}
}

func (x *indexer) byLabels(namespace, text string) (list []any, err error) {
	var named []requirement
	if err := json.Unmarshal([]byte(text), &named); err != nil {
		return nil, err
	}
	selector := labels.NewSelector()
	for _, r := range named {
		one, err := labels.NewRequirement(r.Label, selection.In, r.Values)
		if err != nil {
			selector = labels.Everything() // no server accepts such a label: return all objects
			named = nil
			break
		}
		selector = selector.Add(*one)
	}
	x.indexOne(named)
	found, _ := x.Candidates(namespace, selector)
	for _, obj := range found {
		list = append(list, obj)
	}
	return list, nil
}

// indexOne adds an index of the first label, unless one of the labels has an index.
func (x *indexer) indexOne(named []requirement) {
	x.mu.Lock()
	defer x.mu.Unlock()
	isIndexed := func(r requirement) bool { return slices.Contains(x.indexed, r.Label) }
	if len(named) == 0 || len(x.indexed) == maxLabelIndexes || slices.ContainsFunc(named, isIndexed) {
		return
	}
	// It fails if the informer has stopped. Then the list tests all objects.
	if err := x.IndexLabels(named[0].Label); err == nil {
		x.indexed = append(x.indexed, named[0].Label)
	}
}

func (x *indexer) byOwner(namespace string, uid types.UID) (list []any, err error) {
	x.indexOwners()
	for _, obj := range x.OwnerCandidates(namespace, uid) {
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		if metaindex.Owned(m, uid, false) {
			list = append(list, obj)
		}
	}
	return list, nil
}

func (x *indexer) indexOwners() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.owners {
		x.owners = x.IndexOwners() == nil
	}
}
