package byresource

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/fieldpath"
)

// Drop has the fields that are left out, by resource; those of the zero resource are left
// out of all. The zero value is ready.
type Drop map[schema.GroupVersionResource][]string

// Add adds paths, which were checked.
func (d *Drop) Add(gvr schema.GroupVersionResource, paths []string) {
	if *d == nil {
		*d = Drop{}
	}
	(*d)[gvr] = append((*d)[gvr], paths...)
}

// of returns what is left out of the objects of a resource.
func (d Drop) of(gvr schema.GroupVersionResource) []string {
	return slices.Concat(d[schema.GroupVersionResource{}], d[gvr])
}

// CheckDrop returns why paths cannot be left out of objects that are held as the type of
// example. Of those that are held as maps, the metadata alone is known; alone says that
// they must not name anything else.
func CheckDrop(example runtime.Object, paths []string, alone bool) error {
	drop, err := fieldpath.Parse(paths)
	if err != nil {
		return err
	}
	if alone {
		for name := range drop {
			if name != "metadata" {
				return fmt.Errorf("not every resource has %q: name a field of the metadata, as in \"metadata.managedFields\", or use WithDropFor",
					fieldpath.Tree{name: drop[name]}.String())
			}
		}
	}
	if _, ok := example.(*unstructured.Unstructured); ok {
		return drop.CheckField("metadata", reflect.TypeFor[metav1.ObjectMeta]())
	}
	return drop.Check(reflect.TypeOf(example))
}

// clearing returns what takes paths, which were checked, away from objects that are held as
// the type of example; nil if there are none.
func clearing(example runtime.Object, paths []string) (func(runtime.Object), error) {
	drop, err := fieldpath.Parse(paths)
	if err != nil || len(drop) == 0 {
		return nil, err
	}
	t := reflect.TypeOf(example)
	clearer := fieldpath.NewClearer(drop, t)
	return func(obj runtime.Object) {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			drop.Remove(u.Object)
		} else if reflect.TypeOf(obj) == t {
			clearer.Clear(obj)
		}
	}, nil
}

// ErrNoResource is a resource without a name.
var ErrNoResource = errors.New("the resource has no name: give it group, version and plural name, as in example.com, v1, widgets")
