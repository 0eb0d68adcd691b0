package sharedinformer

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/store"
)

// indexer is the cache.Indexer of an informer. Reads are answered from one state of
// the store and take no lock. Writes are for programs that fill a cache by hand, as
// tests do; they change the cache and tell no handler.
//
// The index by namespace that every factory asks for costs nothing: keys begin with
// the namespace and are ordered.
type indexer struct {
	health  func() tidings.Health
	store   *store.Store[any]
	writing lock      // Informer.writing; before adding
	taken   *takenOut // Informer.takenOut

	adding lock // held while indexes are added
	known  atomic.Pointer[indexSet]
}

var (
	_ cache.Indexer          = (*indexer)(nil)
	_ cache.TransactionStore = (*indexer)(nil)
)

func newIndexer(i *Informer, indexers cache.Indexers) *indexer {
	x := &indexer{health: i.Health, store: i.store, writing: i.writing, adding: newLock(), taken: &i.takenOut}
	x.known.Store(newIndexSet(indexers))
	return x
}

// lookup returns the objects under a value of an index, and how many they are.
func (x *indexer) lookup(name, value string) (found iter.Seq2[string, any], count int, err error) {
	known := x.known.Load() // before the snapshot, which then has these indexes
	if err := known.check(name); err != nil {
		return nil, 0, err
	}
	snapshot := x.store.Snapshot()
	if known.isByNamespace(name) {
		found, count = inNamespace(snapshot, value)
		return found, count, nil
	}
	index, err := snapshot.Index(name)
	if err != nil {
		return nil, 0, err
	}
	return index.Lookup(value), index.Len(value), nil
}

// inNamespace yields the objects of a namespace, those without one for "", and counts
// them.
func inNamespace(snapshot store.Snapshot[any], namespace string) (found iter.Seq2[string, any], count int) {
	if namespace != "" {
		prefix := namespace + "/"
		return snapshot.Prefix(prefix), snapshot.PrefixLen(prefix)
	}
	found = func(yield func(string, any) bool) {
		for key, obj := range snapshot.All() {
			if !strings.Contains(key, "/") && !yield(key, obj) {
				return
			}
		}
	}
	for range found {
		count++
	}
	return found, count
}

// Health says how the informer is, to those who have no more of it than its cache.
func (x *indexer) Health() tidings.Health { return x.health() }

// Get returns the cached object with the key of obj.
func (x *indexer) Get(obj any) (item any, exists bool, err error) {
	key, err := keyOf(obj)
	if err != nil {
		return nil, false, err
	}
	return x.GetByKey(key)
}

// GetByKey returns the object of a key. The error is always nil.
func (x *indexer) GetByKey(key string) (item any, exists bool, err error) {
	item, exists = x.store.Get(key)
	return item, exists, nil
}

// List returns all objects, ascending by key.
func (x *indexer) List() []any {
	snapshot := x.store.Snapshot()
	return collect(snapshot.All(), snapshot.Len())
}

func collect(found iter.Seq2[string, any], count int) []any {
	list := make([]any, 0, count)
	for _, obj := range found {
		list = append(list, obj)
	}
	return list
}

// ListKeys returns all keys, ascending.
func (x *indexer) ListKeys() []string {
	snapshot := x.store.Snapshot()
	return collectKeys(snapshot.All(), snapshot.Len())
}

func collectKeys(found iter.Seq2[string, any], count int) []string {
	keys := make([]string, 0, count)
	for key := range found {
		keys = append(keys, key)
	}
	return keys
}

// ByIndex returns the objects that an index has under a value, ascending by key.
func (x *indexer) ByIndex(name, value string) ([]any, error) {
	found, count, err := x.lookup(name, value)
	if err != nil {
		return nil, err
	}
	return collect(found, count), nil
}

// IndexKeys returns the keys that an index has under a value, ascending.
func (x *indexer) IndexKeys(name, value string) ([]string, error) {
	found, count, err := x.lookup(name, value)
	if err != nil {
		return nil, err
	}
	return collectKeys(found, count), nil
}

// Index returns the objects that share a value of an index with obj, each once, ascending
// by key.
func (x *indexer) Index(name string, obj any) ([]any, error) {
	known := x.known.Load()
	if err := known.check(name); err != nil {
		return nil, err
	}
	if o, ok := obj.(metav1.Object); ok && known.isByNamespace(name) {
		return x.ByIndex(name, o.GetNamespace())
	}
	values, err := known.indexers[name](obj)
	if err != nil {
		return nil, fmt.Errorf("index %q of %T: %w", name, obj, err)
	}
	if len(values) == 1 {
		return x.ByIndex(name, values[0])
	}
	index, err := x.store.Snapshot().Index(name)
	if err != nil {
		return nil, err
	}
	return collect(index.LookupAny(values), 0), nil
}

// ListIndexFuncValues returns the values of an index, ascending; none if there is no
// such index.
func (x *indexer) ListIndexFuncValues(name string) []string {
	known := x.known.Load()
	snapshot := x.store.Snapshot()
	if known.isByNamespace(name) {
		return namespaces(snapshot)
	}
	index, err := snapshot.Index(name)
	if err != nil {
		return []string{}
	}
	return slices.AppendSeq([]string{}, index.Values())
}

// namespaces returns the namespaces of the objects, ascending.
func namespaces(snapshot store.Snapshot[any]) []string {
	list := []string{}
	for key := range snapshot.All() {
		namespace, _, found := strings.Cut(key, "/")
		if !found {
			namespace = ""
		}
		if n := len(list); n == 0 || list[n-1] != namespace {
			list = append(list, namespace)
		}
	}
	slices.Sort(list) // keys without a namespace stand among the others
	return slices.Compact(list)
}

// GetIndexers returns a copy of the index functions.
func (x *indexer) GetIndexers() cache.Indexers { return maps.Clone(x.known.Load().indexers) }

// AddIndexers adds indexes, all or none of them. Those of LabelIndexers and OwnerIndexers
// may be there already: their names say what they do.
func (x *indexer) AddIndexers(indexers cache.Indexers) error {
	x.adding.Lock()
	defer x.adding.Unlock()
	known := x.known.Load()
	added := cache.Indexers{}
	for _, name := range names(indexers) {
		switch f := indexers[name]; {
		case name == "":
			return store.ErrIndexName
		case f == nil:
			return fmt.Errorf("index %q: %w", name, store.ErrIndexFunc)
		case known.indexers[name] == nil:
			added[name] = f
		case !isShared(name, f) || !isShared(name, known.indexers[name]):
			return fmt.Errorf("indexer conflict: index %q exists already, with a function that may be another: choose another name, or ask GetIndexers first", name)
		}
	}
	for name, f := range indexFuncs(added) {
		if err := x.store.AddIndex(name, f); err != nil {
			return err
		}
	}
	all := maps.Clone(known.indexers)
	maps.Copy(all, added)
	x.known.Store(newIndexSet(all))
	return nil
}

// LastStoreSyncResourceVersion returns the version up to which everything is in the
// cache, "" while client-go's gate AtomicFIFO is off.
func (x *indexer) LastStoreSyncResourceVersion() string {
	if !clientfeatures.FeatureGates().Enabled(clientfeatures.AtomicFIFO) {
		return ""
	}
	return x.store.Snapshot().Version()
}
