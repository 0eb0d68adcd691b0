package cli

import (
	"context"
	"iter"
	"reflect"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// mirror is the informer of one type, whatever that type is.
type mirror struct {
	of     view.Type
	goType string // as %T prints it
	length func() int
	all    func() iter.Seq2[string, tidings.Object]
	await  func(ctx context.Context, version string) error
	// handler says how far the view is.
	handler func() tidings.HandlerHealth
}

// mirrored asks a factory for the informer of T and has take told of its changes.
func mirrored[T tidings.Object](f *tidings.Factory, take func(view.Change)) (*mirror, error) {
	goType := reflect.TypeFor[T]()
	of, err := typeOf(reflect.New(goType.Elem()).Interface().(T))
	if err != nil {
		return nil, err
	}
	informer, err := tidings.For[T](f, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	registration, err := informer.AddHandler(view.Handler[T](of, take), tidings.HandlerOptions{Name: "view"})
	if err != nil {
		return nil, err
	}
	return &mirror{
		of:     of,
		goType: goType.String(),
		length: informer.Lister().Len,
		await:  informer.WaitFor,
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

// typeOf returns what the view calls a built-in type.
func typeOf(obj tidings.Object) (view.Type, error) {
	resource, err := resourceOf(obj)
	if err != nil {
		return view.Type{}, err
	}
	return view.Type{Kind: resource.GVK(), Singular: resource.Singular(), Plural: resource.Resource}, nil
}
