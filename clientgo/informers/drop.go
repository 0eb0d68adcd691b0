package informers

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/internal/fieldpath"
)

// WithDrop leaves fields of the metadata out of the objects of all the factory's own
// informers, as if they had never been set; WithDropFor does so for the fields of one type:
//
//	informers.WithDrop("metadata.managedFields")
//	informers.WithDropFor[*corev1.Pod]("spec.containers.env", "status.conditions")
//
// A path names fields as JSON does, joined by dots. It goes through lists and ends at a
// field of any type, which is left out whole; it cannot go into a map, nor leave out what
// objects are told apart by. Where both options are used, or one several times, the paths
// add up.
//
// Where informers read through the REST client of a clientset, the bytes of such a field
// are not even decoded. What another client has decoded is cleared in its objects, before
// any transform. Informers that a caller's function makes (see InformerFor) are left as they
// are, except those of ForGroup with a Config.
//
// Do not give an object of such an informer to an Update: the server takes a field that is
// not there as one to be removed. Use a Patch, or read the object anew.
//
// It panics if a path is wrong: paths are fixed when the program is compiled, so that any
// run of that line shows the mistake.
func WithDrop(paths ...string) SharedInformerOption {
	drop := parseDrop("WithDrop", paths)
	for _, path := range drop.Paths() {
		if !strings.HasPrefix(path, "metadata.") {
			panic(fmt.Sprintf("informers.WithDrop: not every type has %q: name a field of the metadata, as in \"metadata.managedFields\", or use WithDropFor", path))
		}
	}
	if err := drop.CheckField("metadata", reflect.TypeFor[metav1.ObjectMeta]()); err != nil {
		panic(fmt.Sprintf("informers.WithDrop: %v", err))
	}
	return func(f *factory) { f.drop.add(nil, paths) }
}

// WithDropFor is WithDrop for the informer of one type, which may have any fields. The type
// may be that of a custom resource, for ForGroup with a Config.
func WithDropFor[T Object](paths ...string) SharedInformerOption {
	t := reflect.TypeFor[T]()
	if err := parseDrop("WithDropFor", paths).Check(t); err != nil {
		panic(fmt.Sprintf("informers.WithDropFor[%v]: %v", t, err))
	}
	return func(f *factory) { f.drop.add(t, paths) }
}

func parseDrop(option string, paths []string) fieldpath.Tree {
	drop, err := fieldpath.Parse(paths)
	if err != nil {
		panic(fmt.Sprintf("informers.%s: %v", option, err))
	}
	return drop
}

// drops has the paths that are left out, by type; nil is every type. The zero value is
// ready. It does not change once the factory is made.
type drops map[reflect.Type][]string

func (d *drops) add(t reflect.Type, paths []string) {
	if *d == nil {
		*d = drops{}
	}
	(*d)[t] = append((*d)[t], paths...)
}

// of returns what is left out of objects of the type of obj.
func (d drops) of(obj runtime.Object) []string {
	return slices.Concat(d[nil], d[reflect.TypeOf(obj)])
}

// clearing returns what clears the fields of paths, which the options have checked, in
// objects of the type of example; nil if there are none.
func clearing(example runtime.Object, paths []string) func(runtime.Object) {
	t := reflect.TypeOf(example)
	clearer := fieldpath.NewClearer(parseDrop("WithDropFor", paths), t)
	if clearer == nil {
		return nil
	}
	return func(obj runtime.Object) {
		if reflect.TypeOf(obj) == t {
			clearer.Clear(obj)
		}
	}
}
