package main

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
)

// group is an accessor of client-go's shared informer factory.
type group struct {
	name   string // of the method, such as Apps
	source string // import path of the package of its result
}

// row is a resource for which client-go has an informer.
type row struct {
	resource   schema.GroupVersionResource
	kind       string
	namespaced bool
	goType     reflect.Type // the struct
	client     string       // method of kubernetes.Interface, such as AppsV1
	accessor   string       // method of its result, such as Deployments
}

// facts are the contents of the generated files.
type facts struct {
	groups []group
	rows   []row
}

// gather reads the facts off client-go.
func gather() (facts, error) {
	var all facts
	factory := reflect.TypeFor[informers.SharedInformerFactory]()
	for m := range factory.Methods() {
		if !isGroup(m) {
			continue
		}
		all.groups = append(all.groups, group{name: m.Name, source: m.Type.Out(0).PkgPath()})
		for version := range m.Type.Out(0).Methods() {
			for accessor := range version.Type.Out(0).Methods() {
				r, err := rowOf(m.Name+version.Name, accessor.Name)
				if err != nil {
					return facts{}, err
				}
				all.rows = append(all.rows, r)
			}
		}
	}
	slices.SortFunc(all.rows, func(a, b row) int {
		return cmp.Or(
			cmp.Compare(a.resource.Group, b.resource.Group),
			cmp.Compare(a.resource.Version, b.resource.Version),
			cmp.Compare(a.resource.Resource, b.resource.Resource),
		)
	})
	return all, nil
}

// isGroup tells the accessors of groups from the factory's other methods.
func isGroup(m reflect.Method) bool {
	if m.Type.NumIn() != 0 || m.Type.NumOut() != 1 {
		return false
	}
	out := m.Type.Out(0)
	return out.Name() == "Interface" && strings.HasPrefix(out.PkgPath(), "k8s.io/client-go/informers/")
}

// rowOf describes the resource that a clientset has behind c.client().accessor(),
// and checks that client-go's informers know it under the same name.
func rowOf(client, accessor string) (row, error) {
	open, ok := reflect.TypeFor[kubernetes.Interface]().MethodByName(client)
	if !ok {
		return row{}, fmt.Errorf("kubernetes.Interface has no method %s, but the informers have that group and version", client)
	}
	resource, ok := open.Type.Out(0).MethodByName(accessor)
	if !ok {
		return row{}, fmt.Errorf("%s has no method %s, but the informers have that resource", open.Type.Out(0), accessor)
	}
	get, ok := resource.Type.Out(0).MethodByName("Get")
	if !ok {
		return row{}, fmt.Errorf("%s has no method Get, which says what its objects are", resource.Type.Out(0))
	}
	goType := get.Type.Out(0).Elem()
	kind, err := kindOf(goType)
	if err != nil {
		return row{}, err
	}
	r := row{
		resource:   kind.GroupVersion().WithResource(strings.ToLower(accessor)),
		kind:       kind.Kind,
		namespaced: resource.Type.NumIn() == 1,
		goType:     goType,
		client:     client,
		accessor:   accessor,
	}
	if _, err := informers.NewSharedInformerFactory(nil, 0).ForResource(r.resource); err != nil {
		return row{}, fmt.Errorf("client-go does not know %s under that name: %w", accessor, err)
	}
	return r, nil
}

// kindOf returns the one kind under which the scheme has a type.
func kindOf(goType reflect.Type) (schema.GroupVersionKind, error) {
	object, ok := reflect.New(goType).Interface().(runtime.Object)
	if !ok {
		return schema.GroupVersionKind{}, fmt.Errorf("*%s is no runtime.Object", goType)
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(object)
	if err != nil {
		return schema.GroupVersionKind{}, err
	}
	if len(kinds) != 1 {
		return schema.GroupVersionKind{}, fmt.Errorf("the scheme has %s under several kinds: %v", goType, kinds)
	}
	return kinds[0], nil
}
