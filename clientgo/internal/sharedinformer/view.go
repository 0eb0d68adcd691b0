package sharedinformer

import (
	"cmp"
	"iter"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/source"
)

// Inspect returns a view of the informer, for the pages and metrics of this module.
func (i *Informer) Inspect() inspect.View { return view{i} }

// Inspect returns a view of the informer, for programs that have only its cache.
func (x *indexer) Inspect() inspect.View { return x.informer.Inspect() }

// view is an inspect.View of an informer.
type view struct{ *Informer }

func (v view) Resource() source.Resource { return v.o.Resource }

func (v view) Keys() iter.Seq[string] { return v.collection.Keys() }

func (v view) Object(key string) (any, bool) { return v.collection.Object(key) }

func (v view) Sample(n int) []any { return v.collection.Sample(n) }

func (v view) Usage() inspect.Usage { return v.collection.Usage() }

// Follow leaves out the updates without a change, which a list publishes.
func (v view) Follow(name string, f func(inspect.Change)) (remove func(), err error) {
	return v.collection.Follow(name, func(made inspect.Change) {
		if made.Type != change.Updated || made.Resync || !v.isUnchanged(made.Old, made.New) {
			f(made)
		}
	})
}

// resourceOf returns the kind of an example, "" if it may be an object of any kind. The example may
// be a nil pointer, which has a type alone.
func resourceOf(example runtime.Object) (of source.Resource) {
	if example == nil {
		return of
	}
	v := reflect.ValueOf(example)
	if v.Kind() != reflect.Pointer || !v.IsNil() {
		kind := example.GetObjectKind().GroupVersionKind()
		of = source.Resource{Group: kind.Group, Version: kind.Version, Kind: kind.Kind}
	}
	switch example.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
	default:
		t := v.Type()
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		of.Kind = cmp.Or(of.Kind, t.Name())
	}
	return of
}
