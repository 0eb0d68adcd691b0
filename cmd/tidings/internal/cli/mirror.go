package cli

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/internal/builtin"
)

// mirror is the informer of one type, whatever that type is.
type mirror struct {
	of       view.Type
	resource schema.GroupVersionResource
	length   func() int
	all      func() iter.Seq2[string, tidings.Object]
	await    func(ctx context.Context, version string) error
	// handler says how far the view is.
	handler func() tidings.HandlerHealth
}

// mirrored asks a factory for the informer of a built-in type and has take told of its
// changes.
func mirrored[T tidings.Object](f *tidings.Factory, take func(view.Change)) (*mirror, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T))
	if err != nil {
		return nil, err
	}
	resource, ok := builtin.ForGVK(kinds[0])
	if !ok {
		return nil, fmt.Errorf("no resource serves %s", kinds[0])
	}
	informer, err := tidings.For[T](f, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	of := view.Type{Kind: resource.GVK(), Singular: resource.Singular(), Plural: resource.Resource}
	return mirrorOf(informer, of, resource.GVR(), take)
}

// mirroredCustom does the same for a custom type.
func mirroredCustom(f *tidings.Factory, kind schema.GroupVersionKind, resource schema.GroupVersionResource, take func(view.Change)) (*mirror, error) {
	informer, err := tidings.Dynamic(f, resource, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	of := view.Type{Kind: kind, Singular: strings.ToLower(kind.Kind), Plural: resource.Resource}
	return mirrorOf[*unstructured.Unstructured](informer, of, resource, take)
}

func mirrorOf[T tidings.Object](informer *tidings.Informer[T], of view.Type, resource schema.GroupVersionResource, take func(view.Change)) (*mirror, error) {
	registration, err := informer.AddHandler(view.Handler[T](of, take), tidings.HandlerOptions{Name: "view"})
	if err != nil {
		return nil, err
	}
	return &mirror{
		of:       of,
		resource: resource,
		length:   informer.Lister().Len,
		await:    informer.WaitFor,
		all: func() iter.Seq2[string, tidings.Object] {
			return func(yield func(string, tidings.Object) bool) {
				for key, obj := range informer.Lister().All() {
					if !yield(key, obj) {
						return
					}
				}
			}
		},
		handler: registration.Health,
	}, nil
}
