package listwatch

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/source"
)

// kind is what the objects of a collection are expected to be.
type kind struct {
	goType reflect.Type            // nil accepts all
	gvk    schema.GroupVersionKind // of unstructured objects; empty accepts all
}

// kindOf returns the kind of an example, nil accepting everything.
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

// check returns why an object is not one of the kind, or nil.
func (k kind) check(obj runtime.Object) error {
	if got := reflect.TypeOf(obj); k.goType != nil && got != k.goType {
		return fmt.Errorf("received an object of type %v instead of %v", got, k.goType)
	}
	if k.gvk.Empty() && k.goType != reflect.TypeFor[*unstructured.Unstructured]() {
		return nil
	}
	got := obj.GetObjectKind().GroupVersionKind()
	switch {
	case !k.gvk.Empty() && got != k.gvk:
		return source.WrongKind(got, k.gvk)
	case got.Kind == "Table" && got.Group == metav1.GroupName:
		return fmt.Errorf("received a Table, which is for people to read: ask for objects")
	}
	return nil
}

// item describes an object of the kind. An object of another kind, or one without
// metadata, is an item that says so.
func (k kind) item(obj runtime.Object) source.Item[any] {
	if obj == nil {
		return source.Item[any]{Err: fmt.Errorf("received nothing where an object was expected")}
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

// checkList refuses a list that is a table.
func (k kind) checkList(list runtime.Object) error {
	gvk := list.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "Table" && gvk.Group == metav1.GroupName {
		return fmt.Errorf("the lister returned a Table, which is for people to read: ask for objects")
	}
	return nil
}
