package inspect

import (
	"iter"
	"reflect"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/source"
)

// View has the methods by which package debug shows an informer. Its methods may be called from any
// goroutine.
type View interface {
	// Health describes the informer.
	Health() health.Informer
	// Resource returns the resource that it holds, as far as it is known without asking the server.
	Resource() source.Resource
	// Keys yields the keys of the cached objects, in ascending order.
	Keys() iter.Seq[string]
	// Object returns a cached object, which is read-only.
	Object(key string) (any, bool)
	// Sample returns up to n cached objects, which are read-only.
	Sample(n int) []any
	// Usage describes the memory of the cache beside its objects.
	Usage() Usage
	// Follow calls f for each change from now on, until remove is called. f must return soon:
	// it is called in order, as a handler of the name.
	Follow(name string, f func(Change)) (remove func(), err error)
}

// Usage describes the memory of a cache beside its objects.
type Usage struct {
	// Objects is the number of cached objects.
	Objects int
	// KeyBytes is an estimate of the memory of the keys, and of the tree and the table that find an
	// object by its key.
	KeyBytes int
	Indexes  []Index
}

// Index describes an index.
type Index struct {
	Name    string `json:"name"`
	Entries int    `json:"entries"`
	// Bytes is an estimate of its memory, its values included.
	Bytes int `json:"bytes"`
}

// Change is a change of an object. The objects are read-only.
type Change struct {
	Type     change.Type
	Resync   bool
	Key      string
	Old, New any // nil for the state before an addition, and after a deletion
}

// ViewsOf returns the views of the informers of a factory of this module, in the order in which
// they were asked for, or the view of an informer. An informer that was released has no view. ok is
// false for any other value, and for a nil pointer.
func ViewsOf(of any) (views []View, ok bool) {
	if v := reflect.ValueOf(of); v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, false
	}
	switch of := of.(type) {
	case interface{ Inspect() (Informer, error) }: // a *tidings.Informer
		i, err := of.Inspect()
		if err != nil {
			return nil, true // it was released
		}
		return []View{i}, true
	case interface{ Inspect() Factory }: // a *tidings.Factory
		return of.Inspect().Views(), true
	case interface{ Inspect() []View }: // a drop-in
		return of.Inspect(), true
	case interface{ Inspect() View }:
		return []View{of.Inspect()}, true
	}
	return nil, false
}
