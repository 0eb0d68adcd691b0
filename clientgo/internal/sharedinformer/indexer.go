package sharedinformer

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

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
	writing *sync.Mutex // Informer.writing; before mu

	mu       sync.Mutex // guards the rest
	indexers cache.Indexers
}

var (
	_ cache.Indexer          = (*indexer)(nil)
	_ cache.TransactionStore = (*indexer)(nil)
)

func newIndexer(i *Informer, indexers cache.Indexers) *indexer {
	own := maps.Clone(indexers)
	if own == nil {
		own = cache.Indexers{}
	}
	return &indexer{health: i.Health, store: i.store, writing: &i.writing, indexers: own}
}

// indexFuncs returns the functions of indexers that the store has to keep.
func indexFuncs(indexers cache.Indexers) map[string]store.IndexFunc[any] {
	functions := make(map[string]store.IndexFunc[any], len(indexers))
	for name, f := range indexers {
		if !isByNamespace(name, f) {
			functions[name] = store.IndexFunc[any](f)
		}
	}
	return functions
}

// byNamespace identifies client-go's index function for the namespace.
var byNamespace = reflect.ValueOf(cache.MetaNamespaceIndexFunc).Pointer()

// isByNamespace reports whether an index says what the keys say already.
func isByNamespace(name string, f cache.IndexFunc) bool {
	return name == cache.NamespaceIndex && reflect.ValueOf(f).Pointer() == byNamespace
}

// function returns a named index function.
func (x *indexer) function(name string) (cache.IndexFunc, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if f, ok := x.indexers[name]; ok {
		return f, nil
	}
	return nil, fmt.Errorf("index %q does not exist: there are %q; add it with AddIndexers", name, names(x.indexers))
}

// lookup returns the objects under a value of an index, and how many they are.
func (x *indexer) lookup(name, value string) (found iter.Seq2[string, any], count int, err error) {
	f, err := x.function(name)
	if err != nil {
		return nil, 0, err
	}
	snapshot := x.store.Snapshot()
	if isByNamespace(name, f) {
		found = inNamespace(snapshot, value)
		for range found {
			count++
		}
		return found, count, nil
	}
	index, err := snapshot.Index(name)
	if err != nil {
		return nil, 0, err
	}
	return index.Lookup(value), index.Len(value), nil
}

// inNamespace yields the objects of a namespace, those without one for "".
func inNamespace(snapshot store.Snapshot[any], namespace string) iter.Seq2[string, any] {
	if namespace != "" {
		return snapshot.Prefix(namespace + "/")
	}
	return func(yield func(string, any) bool) {
		for key, obj := range snapshot.All() {
			if !strings.Contains(key, "/") && !yield(key, obj) {
				return
			}
		}
	}
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

// Index returns the objects that share a value of an index with obj, each once.
func (x *indexer) Index(name string, obj any) ([]any, error) {
	f, err := x.function(name)
	if err != nil {
		return nil, err
	}
	values, err := f(obj)
	if err != nil {
		return nil, fmt.Errorf("index %q of %T: %w", name, obj, err)
	}
	if len(values) == 1 {
		return x.ByIndex(name, values[0])
	}
	return x.union(name, values)
}

// union returns the objects that an index has under any of the values.
func (x *indexer) union(name string, values []string) ([]any, error) {
	snapshot := x.store.Snapshot()
	index, err := snapshot.Index(name)
	if err != nil {
		return nil, err
	}
	list := []any{}
	seen := make(map[string]struct{})
	for _, value := range values {
		for key, obj := range index.Lookup(value) {
			if _, again := seen[key]; !again {
				seen[key] = struct{}{}
				list = append(list, obj)
			}
		}
	}
	return list, nil
}

// ListIndexFuncValues returns the values of an index, ascending; none if there is no
// such index.
func (x *indexer) ListIndexFuncValues(name string) []string {
	f, err := x.function(name)
	if err != nil {
		return []string{}
	}
	snapshot := x.store.Snapshot()
	if isByNamespace(name, f) {
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
func (x *indexer) GetIndexers() cache.Indexers {
	x.mu.Lock()
	defer x.mu.Unlock()
	return maps.Clone(x.indexers)
}

// AddIndexers adds indexes, all or none of them.
func (x *indexer) AddIndexers(indexers cache.Indexers) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, name := range names(indexers) {
		switch {
		case name == "":
			return store.ErrIndexName
		case indexers[name] == nil:
			return fmt.Errorf("index %q: %w", name, store.ErrIndexFunc)
		case x.indexers[name] != nil:
			return fmt.Errorf("indexer conflict: index %q exists already, with a function that may be another: choose another name, or ask GetIndexers first", name)
		}
	}
	functions := indexFuncs(indexers)
	for name, f := range functions {
		if err := x.store.AddIndex(name, f); err != nil {
			return err
		}
	}
	maps.Copy(x.indexers, indexers)
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
