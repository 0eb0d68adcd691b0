package sharedinformer

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/metaindex"
	"github.com/tidings-go/tidings/store"
)

// indexSet is the indexes of an indexer, and what is known of them. It does not change.
type indexSet struct {
	indexers    cache.Indexers
	byNamespace bool            // the index named cache.NamespaceIndex is client-go's own
	labels      map[string]bool // keys of the labels that have an index of LabelIndexers
	owners      bool            // there is the index of OwnerIndexers
}

func newIndexSet(indexers cache.Indexers) *indexSet {
	known := &indexSet{indexers: maps.Clone(indexers), labels: map[string]bool{}}
	if known.indexers == nil {
		known.indexers = cache.Indexers{}
	}
	for name, f := range indexers {
		switch label, isLabel := strings.CutPrefix(name, tidings.LabelIndex("")); {
		case isByNamespace(name, f):
			known.byNamespace = true
		case !isShared(name, f):
		case isLabel:
			known.labels[label] = true
		default:
			known.owners = true
		}
	}
	return known
}

// check says that there is no such index.
func (s *indexSet) check(name string) error {
	if s.indexers[name] == nil {
		return fmt.Errorf("index %q does not exist: there are %q; add it with AddIndexers", name, names(s.indexers))
	}
	return nil
}

// isByNamespace reports whether an index is the one by namespace.
func (s *indexSet) isByNamespace(name string) bool {
	return s.byNamespace && name == cache.NamespaceIndex
}

// indexFuncs returns the functions of indexers that the store has to keep.
func indexFuncs(indexers cache.Indexers) map[any]store.IndexFunc[any] {
	functions := make(map[any]store.IndexFunc[any], len(indexers))
	for name, f := range indexers {
		if !isByNamespace(name, f) {
			functions[name] = store.IndexFunc[any](f)
		}
	}
	return functions
}

// The code of index functions that are recognized: all functions of one literal share it.
var (
	namespaceCode = codeOf(cache.MetaNamespaceIndexFunc)
	labelCode     = codeOf(byLabel(""))
	ownerCode     = codeOf(byOwner)
)

func codeOf(f cache.IndexFunc) uintptr { return reflect.ValueOf(f).Pointer() }

// isByNamespace reports whether an index says what the keys say already.
func isByNamespace(name string, f cache.IndexFunc) bool {
	return name == cache.NamespaceIndex && codeOf(f) == namespaceCode
}

// isShared reports whether an index is one of LabelIndexers or OwnerIndexers.
func isShared(name string, f cache.IndexFunc) bool {
	if name == tidings.OwnerIndex {
		return codeOf(f) == ownerCode
	}
	return strings.HasPrefix(name, tidings.LabelIndex("")) && codeOf(f) == labelCode
}

// LabelIndexers returns index functions for the labels of these keys.
func LabelIndexers(keys ...string) cache.Indexers {
	indexers := make(cache.Indexers, len(keys))
	for _, key := range keys {
		indexers[tidings.LabelIndex(key)] = byLabel(key)
	}
	return indexers
}

// OwnerIndexers returns the index function for the UIDs of owners.
func OwnerIndexers() cache.Indexers { return cache.Indexers{tidings.OwnerIndex: byOwner} }

// byLabel returns the index function of a label. Inlined, each caller would have a copy of
// the literal, with other code.
//
//go:noinline
func byLabel(key string) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		if m := metadata(obj); m != nil {
			return metaindex.LabelValues(m, key), nil
		}
		return nil, nil
	}
}

func byOwner(obj any) ([]string, error) {
	if m := metadata(obj); m != nil {
		return metaindex.OwnerUIDs(m), nil
	}
	return nil, nil
}
