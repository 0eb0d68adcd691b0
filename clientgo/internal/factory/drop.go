package factory

import (
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

// Drop maps the key of a factory to the paths of the fields that are left out. The paths under
// the zero key are left out of all objects. The zero value is ready.
type Drop[K comparable] map[K][]string

// Add adds paths to those of a key. The caller has checked them.
func (d *Drop[K]) Add(key K, paths []string) {
	if *d == nil {
		*d = Drop[K]{}
	}
	(*d)[key] = append((*d)[key], paths...)
}

// Of returns the paths that are left out of the objects of a key.
func (d Drop[K]) Of(key K) []string {
	var all K
	return slices.Concat(d[all], d[key])
}

// CheckDrop panics if paths cannot be left out, because options return no error. The message
// begins with the name of the option.
func CheckDrop(option string, paths []string, check func(fieldpath.Tree) error) {
	drop, err := fieldpath.Parse(paths)
	if err == nil {
		err = check(drop)
	}
	if err != nil {
		panic(fmt.Sprintf("%s: %v", option, err))
	}
}

// CheckDropFor is CheckDrop for an option of one resource, which must have a name.
func CheckDropFor(option string, gvr schema.GroupVersionResource, paths []string,
	check func(fieldpath.Tree) error) {
	option = fmt.Sprintf("%s(%v)", option, gvr)
	CheckDrop(option, paths, check)
	if gvr.Resource == "" {
		panic(option + ": the resource has no name: give it group, version and plural name, " +
			"as in example.com, v1, widgets")
	}
}

// OfMetadata accepts only fields of the metadata, which objects of all types have.
func OfMetadata(drop fieldpath.Tree) error {
	for name := range drop {
		if name != "metadata" {
			return fmt.Errorf("not every type has %q: name a field of the metadata, "+
				"as in \"metadata.managedFields\", or use WithDropFor", fieldpath.Tree{name: drop[name]})
		}
	}
	return OfUnstructured(drop)
}

// OfUnstructured accepts any field. It checks the fields of the metadata, whose type is known.
func OfUnstructured(drop fieldpath.Tree) error {
	return drop.CheckField("metadata", reflect.TypeFor[metav1.ObjectMeta]())
}

// OfType accepts the fields of a Go type.
func OfType(t reflect.Type) func(fieldpath.Tree) error {
	return func(drop fieldpath.Tree) error { return drop.Check(t) }
}

// remover returns a function that removes the fields of paths from objects of the type of
// the example; nil without paths.
func remover(example runtime.Object, paths []string) func(runtime.Object) {
	drop, err := fieldpath.Parse(paths)
	if err != nil {
		panic(fmt.Sprintf("factory: fields that are left out were not checked: %v", err))
	}
	if len(drop) == 0 {
		return nil
	}
	if _, ok := example.(*unstructured.Unstructured); ok {
		return func(obj runtime.Object) { drop.Remove(obj.(*unstructured.Unstructured).Object) }
	}
	clearer := fieldpath.NewClearer(drop, reflect.TypeOf(example))
	return func(obj runtime.Object) { clearer.Clear(obj) }
}
