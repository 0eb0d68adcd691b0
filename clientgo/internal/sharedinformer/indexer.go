package sharedinformer

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine"
	"github.com/tidings-go/tidings/internal/engine/metaindex"
	"github.com/tidings-go/tidings/store"
)

// indexer is the cache.Indexer of an informer. Reads are answered from one state of the
// store and take no lock. Writes are for programs that fill a cache by hand, as tests do;
// they change the cache, and no handler receives them.
//
// The index by namespace that every factory requests takes no memory: keys begin with the
// namespace and are ordered.
type indexer struct {
	progress
	informer *Informer
	store    *store.Store[any] // the store of the informer's collection
	adding   engine.Lock       // held while indexes are added
	indexers atomic.Pointer[cache.Indexers]
}

var (
	_ cache.Indexer          = (*indexer)(nil)
	_ cache.TransactionStore = (*indexer)(nil)
)

func newIndexer(i *Informer, indexers cache.Indexers) *indexer {
	x := &indexer{
		progress: i.collection, informer: i, store: i.collection.Store(), adding: engine.NewLock(),
	}
	x.setIndexers(indexers, nil)
	return x
}

func (x *indexer) setIndexers(present, added cache.Indexers) {
	all := make(cache.Indexers, len(present)+len(added))
	maps.Copy(all, present)
	maps.Copy(all, added)
	x.indexers.Store(&all)
}

func (x *indexer) find(name string) (cache.IndexFunc, error) {
	indexers := *x.indexers.Load()
	if f := indexers[name]; f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("index %q of the informer of %s does not exist: there are %q; "+
		"add it with AddIndexers", name, x.informer.name, names(indexers))
}

// namespaceCode identifies client-go's index function by namespace. The keys contain its values
// already.
var namespaceCode = reflect.ValueOf(cache.MetaNamespaceIndexFunc).Pointer()

func isByNamespace(name string, f cache.IndexFunc) bool {
	return name == cache.NamespaceIndex && reflect.ValueOf(f).Pointer() == namespaceCode
}

// indexFuncs returns the index functions of which the store keeps an index, by name.
func indexFuncs(indexers cache.Indexers) map[any]store.IndexFunc[any] {
	functions := make(map[any]store.IndexFunc[any], len(indexers))
	for name, f := range indexers {
		if !isByNamespace(name, f) {
			functions[name] = store.IndexFunc[any](f)
		}
	}
	return functions
}

// lookup returns the objects under a value of an index, and their number.
func (x *indexer) lookup(name, value string) (found iter.Seq2[string, any], count int, err error) {
	f, err := x.find(name) // before the snapshot, which then has this index
	if err != nil {
		return nil, 0, err
	}
	snapshot := x.store.Snapshot()
	if isByNamespace(name, f) {
		found, count = inNamespace(snapshot, value)
		return found, count, nil
	}
	index, _ := snapshot.Index(name)
	return index.Lookup(value), index.Len(value), nil
}

// inNamespace yields the objects of a namespace, those without one for "", and counts
// them.
func inNamespace(
	snapshot store.Snapshot[any], namespace string) (found iter.Seq2[string, any], count int) {
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

// Health describes the informer, for programs that have only its cache.
func (x *indexer) Health() health.Informer { return x.informer.Health() }

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
	f, err := x.find(name)
	if err != nil {
		return nil, err
	}
	if o, ok := obj.(metav1.Object); ok && isByNamespace(name, f) {
		return x.ByIndex(name, o.GetNamespace())
	}
	values, err := f(obj)
	if err != nil {
		return nil, fmt.Errorf("index %q of %T: %w", name, obj, err)
	}
	if len(values) == 1 {
		return x.ByIndex(name, values[0])
	}
	index, _ := x.store.Snapshot().Index(name)
	return collect(index.LookupAny(values), 0), nil
}

// ListIndexFuncValues returns the values of an index, ascending; none if there is no
// such index.
func (x *indexer) ListIndexFuncValues(name string) []string {
	f, err := x.find(name)
	if err != nil {
		return []string{}
	}
	snapshot := x.store.Snapshot()
	if isByNamespace(name, f) {
		return namespaces(snapshot)
	}
	index, _ := snapshot.Index(name)
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
	slices.Sort(list) // keys without a namespace are among the others
	return slices.Compact(list)
}

// GetIndexers returns a copy of the index functions.
func (x *indexer) GetIndexers() cache.Indexers { return maps.Clone(*x.indexers.Load()) }

// AddIndexers adds indexes, all or none of them.
func (x *indexer) AddIndexers(indexers cache.Indexers) error {
	x.adding.Lock()
	defer x.adding.Unlock()
	present := *x.indexers.Load()
	for _, name := range names(indexers) {
		switch {
		case name == "":
			return store.ErrIndexName
		case indexers[name] == nil:
			return fmt.Errorf("index %q: %w", name, store.ErrIndexFunc)
		case present[name] != nil:
			return fmt.Errorf("indexer conflict: index %q exists already, with a function that may be another: "+
				"choose another name, or call GetIndexers first", name)
		}
	}
	for name, f := range indexFuncs(indexers) {
		if err := x.informer.collection.AddIndex(name, f); err != nil {
			return err
		}
	}
	x.setIndexers(present, indexers)
	return nil
}

// IndexLabels adds indexes of the labels of these keys, unless they exist.
func (x *indexer) IndexLabels(keys ...string) error {
	for _, key := range keys {
		err := x.addMetaIndex(metaindex.Label(key),
			func(m metav1.Object) []string { return metaindex.LabelValues(m, key) })
		if err != nil {
			return err
		}
	}
	return nil
}

// IndexOwners adds the index of the UIDs of owners, unless it exists.
func (x *indexer) IndexOwners() error {
	return x.addMetaIndex(metaindex.Owners,
		func(m metav1.Object) []string { return metaindex.OwnerUIDs(m) })
}

func (x *indexer) addMetaIndex(id any, values func(metav1.Object) []string) error {
	err := x.informer.collection.AddIndex(id, func(obj any) ([]string, error) {
		if m := metadata(obj); m != nil {
			return values(m), nil
		}
		return nil, nil
	})
	if errors.Is(err, store.ErrIndexExists) {
		return nil
	}
	return err
}

// LastStoreSyncResourceVersion returns the version up to which the cache is complete, "" while
// client-go's gate AtomicFIFO is off.
func (x *indexer) LastStoreSyncResourceVersion() string {
	if !clientfeatures.FeatureGates().Enabled(clientfeatures.AtomicFIFO) {
		return ""
	}
	return x.store.Snapshot().Version()
}
