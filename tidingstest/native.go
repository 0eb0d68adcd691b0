package tidingstest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
)

// nativeKinds are the informers of package tidings.
func nativeKinds() []Kind {
	paged := tidings.FactoryOptions{Transport: tidings.Transport{NoStreamedLists: true, PageSize: 3}}
	return []Kind{
		{Name: "typed", Namespaces: 1, New: newTyped(tidings.FactoryOptions{})},
		{Name: "dynamic", Namespaces: 1, New: newDynamic(tidings.FactoryOptions{})},
		{Name: "metadata", Namespaces: 1, New: newMetadata(tidings.FactoryOptions{})},
		{Name: "typed in pages", Namespaces: 1, New: newTyped(paged)},
		{Name: "dynamic everywhere", New: newDynamic(tidings.FactoryOptions{})},
		{Name: "typed in several namespaces", Namespaces: 2, New: newTyped(tidings.FactoryOptions{})},
		{Name: "metadata in several namespaces, in pages", Namespaces: 2, New: newMetadata(paged)},
	}
}

func newTyped(o tidings.FactoryOptions) func(Setting) (Informer, error) {
	return func(s Setting) (Informer, error) {
		return newNative(s, o, tidings.For[*corev1.ConfigMap])
	}
}

func newDynamic(o tidings.FactoryOptions) func(Setting) (Informer, error) {
	return func(s Setting) (Informer, error) { return newNative(s, o, byResource(tidings.Dynamic)) }
}

func newMetadata(o tidings.FactoryOptions) func(Setting) (Informer, error) {
	return func(s Setting) (Informer, error) { return newNative(s, o, byResource(tidings.Metadata)) }
}

// byResource gives the config maps to what asks by resource.
func byResource[T tidings.Object](ask func(*tidings.Factory, schema.GroupVersionResource, tidings.Selection) (*tidings.Informer[T], error)) func(*tidings.Factory, tidings.Selection) (*tidings.Informer[T], error) {
	return func(f *tidings.Factory, s tidings.Selection) (*tidings.Informer[T], error) {
		return ask(f, configMaps, s)
	}
}

// native is an Informer of package tidings.
type native[T tidings.Object] struct {
	*tidings.Informer[T]
	index *tidings.Index[T]
}

func newNative[T tidings.Object](s Setting, o tidings.FactoryOptions, ask func(*tidings.Factory, tidings.Selection) (*tidings.Informer[T], error)) (Informer, error) {
	o.StopGrace = s.StopGrace
	factory, err := tidings.NewFactory(s.Config, o)
	if err != nil {
		return nil, err
	}
	i, err := ask(factory, tidings.Selection{Namespaces: s.Namespaces, Labels: s.Labels})
	if err != nil {
		return nil, err
	}
	index := tidings.NewIndex(indexName, func(obj T) []string {
		values, err := s.Index(obj)
		if err != nil {
			panic(err)
		}
		return values
	})
	if err := i.AddIndex(index); err != nil {
		return nil, err
	}
	return native[T]{i, index}, nil
}

func (n native[T]) AddHandler(handle func(Event), o tidings.HandlerOptions) (Registration, error) {
	var none T
	h := tidings.HandlerFunc[T](func(e tidings.Event[T]) {
		general := Event{Type: e.Type, Initial: e.Initial, Tombstone: e.Tombstone, Resync: e.Resync}
		if any(e.Old) != any(none) {
			general.Old = e.Old
		}
		if any(e.New) != any(none) {
			general.New = e.New
		}
		handle(general)
	})
	r, err := n.Informer.AddHandler(h, o)
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (n native[T]) List() []tidings.Object {
	var list []tidings.Object
	for _, obj := range n.Lister().All() {
		list = append(list, obj)
	}
	return list
}

func (n native[T]) Get(key string) tidings.Object {
	obj, err := n.Lister().Get(key)
	if err != nil {
		return nil
	}
	return obj
}

func (n native[T]) Indexed(value string) ([]string, error) {
	var keys []string
	for key := range n.Lister().ByIndex(n.index, value) {
		keys = append(keys, key)
	}
	return keys, nil
}
