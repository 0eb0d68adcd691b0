package tidingstest

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
)

// nativeKinds are the informers of package tidings.
func nativeKinds() []Kind {
	var streamed, paged tidings.FactoryOptions
	typed, dynamic, metadata := tidings.For[*corev1.ConfigMap], byResource(tidings.Dynamic),
		byResource(tidings.Metadata)
	view := tidings.View[*configMapView, *corev1.ConfigMap]
	unchecked := func(
		f *tidings.Factory, s tidings.Selection,
	) (*tidings.Informer[*configMapView], error) {
		return tidings.UncheckedView[*configMapView](f, corev1.SchemeGroupVersion.WithKind("ConfigMap"), s)
	}
	paged.Transport = tidings.Transport{NoStreamedLists: true, PageSize: 3}
	return []Kind{
		{Name: "typed", Namespaces: 1, New: newNative(streamed, typed)},
		{Name: "dynamic", Namespaces: 1, New: newNative(streamed, dynamic)},
		{Name: "metadata", Namespaces: 1, New: newNative(streamed, metadata)},
		{Name: "view", Namespaces: 1, New: newNative(streamed, view)},
		{Name: "unchecked view in pages", Namespaces: 1, New: newNative(paged, unchecked)},
		{Name: "typed in pages", Namespaces: 1, New: newNative(paged, typed)},
		{Name: "dynamic everywhere", New: newNative(streamed, dynamic)},
		{Name: "typed in several namespaces", Namespaces: 2, New: newNative(streamed, typed)},
		{
			Name: "metadata in several namespaces, in pages", Namespaces: 2,
			New: newNative(paged, metadata),
		},
	}
}

// configMapView is a view of config maps.
type configMapView struct {
	tidings.Meta `json:"metadata"`
	Data         map[string]string `json:"data"`
}

// byResource returns the function that asks for an informer of the config maps.
func byResource[T tidings.Object](
	ask func(*tidings.Factory, schema.GroupVersionResource, tidings.Selection) (*tidings.Informer[T], error),
) func(*tidings.Factory, tidings.Selection) (*tidings.Informer[T], error) {
	return func(f *tidings.Factory, s tidings.Selection) (*tidings.Informer[T], error) {
		return ask(f, configMaps, s)
	}
}

func newNative[T tidings.Object](
	o tidings.FactoryOptions,
	ask func(*tidings.Factory, tidings.Selection) (*tidings.Informer[T], error),
) func(Setting) (Informer, error) {
	return func(s Setting) (Informer, error) {
		o := o
		o.StopGrace = s.StopGrace
		factory, err := tidings.NewFactory(s.Config, o)
		if err != nil {
			return nil, err
		}
		i, err := ask(factory, tidings.Selection{Namespaces: s.Namespaces, Labels: s.Labels})
		if err != nil {
			return nil, err
		}
		return Native(i, s.Index)
	}
}

// native is an Informer of package tidings.
type native[T tidings.Object] struct {
	*tidings.Informer[T]
	index *tidings.Index[T]
}

// Native returns an informer of package tidings as an [Informer] with an index. The index
// panics with an error of the index function.
func Native[T tidings.Object](
	i *tidings.Informer[T], index func(tidings.Object) ([]string, error),
) (Informer, error) {
	added := tidings.NewIndex(indexName, func(obj T) []string {
		values, err := index(obj)
		if err != nil {
			panic(err)
		}
		return values
	})
	if err := i.AddIndex(added); err != nil {
		return nil, err
	}
	return native[T]{i, added}, nil
}

func (n native[T]) AddHandler(
	handle func(Event), o tidings.HandlerOptions,
) (Registration, error) {
	r, err := n.Informer.AddHandler(tidings.HandlerFunc[T](func(e tidings.Event[T]) {
		general := Event{
			Type: e.Type, Initial: e.Initial, Tombstone: e.Tombstone, Moved: e.Moved,
			Resync: e.Resync,
		}
		if e.Type != tidings.Added {
			general.Old = e.Old
		}
		if e.Type != tidings.Deleted {
			general.New = e.New
		}
		handle(general)
	}), o)
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
