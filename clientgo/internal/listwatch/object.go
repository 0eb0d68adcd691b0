package listwatch

import (
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings/source"
)

// kind is the type of the objects of a collection.
type kind struct {
	goType reflect.Type            // nil accepts all
	gvk    schema.GroupVersionKind // the kind of unstructured objects; empty accepts all
}

// kindOf returns the kind of an example; nil accepts all objects.
func kindOf(example runtime.Object) kind {
	if example == nil {
		return kind{}
	}
	k := kind{goType: reflect.TypeOf(example)}
	if u, ok := example.(*unstructured.Unstructured); ok {
		k.gvk = u.GroupVersionKind()
	}
	return k
}

// registeredKind returns the kind of an example: its own, or that of a built-in Go type.
func registeredKind(example runtime.Object) schema.GroupVersionKind {
	if example == nil {
		return schema.GroupVersionKind{}
	}
	if _, metadata := example.(*metav1.PartialObjectMetadata); metadata {
		return schema.GroupVersionKind{} // the kind of the example may differ from that of the objects
	}
	if gvk := example.GetObjectKind().GroupVersionKind(); gvk.Kind != "" {
		return gvk
	}
	if kinds, _, err := scheme.Scheme.ObjectKinds(example); err == nil {
		return kinds[0]
	}
	return schema.GroupVersionKind{}
}

func (k kind) check(obj runtime.Object) error {
	if got := reflect.TypeOf(obj); k.goType != nil && got != k.goType {
		return fmt.Errorf("received an object of type %v instead of %v", got, k.goType)
	}
	if k.gvk.Empty() && k.goType != reflect.TypeFor[*unstructured.Unstructured]() {
		return nil
	}
	if got := obj.GetObjectKind().GroupVersionKind(); !k.gvk.Empty() && got != k.gvk {
		return source.WrongKind(got, k.gvk)
	}
	return checkTable(obj)
}

// checkTable returns an error for a Table, the form in which kubectl prints lists.
func checkTable(obj runtime.Object) error {
	if gvk := obj.GetObjectKind().GroupVersionKind(); gvk.Kind == "Table" && gvk.Group == metav1.GroupName {
		return errors.New("received a Table, which is for people to read: ask for objects")
	}
	return nil
}

// item describes an object. For an object of another kind, or one without metadata, the item
// has an error.
func (k kind) item(obj runtime.Object) source.Item[any] {
	if obj == nil {
		return source.Item[any]{Err: errors.New("received nothing where an object was expected")}
	}
	if err := k.check(obj); err != nil {
		return source.Item[any]{Err: err}
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return source.Item[any]{Err: fmt.Errorf("received an object of type %T: %w", obj, err)}
	}
	return source.Item[any]{
		Key:     source.Key(m.GetNamespace(), m.GetName()),
		Version: m.GetResourceVersion(),
		UID:     string(m.GetUID()),
		Object:  obj,
	}
}
