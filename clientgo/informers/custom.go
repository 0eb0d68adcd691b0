package informers

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/internal/factory"
	"github.com/tidings-go/tidings/source"
)

// GroupOptions are the options of ForGroup. The zero value is ready: all objects of all
// namespaces, in the informers that the generated code makes.
//
// Scheme, Mapper and Config go together: with all three the informers are Tidings' own, without
// them the generated code's. One or two of them are an error.
type GroupOptions struct {
	// Namespace limits the informers to a namespace. Empty is all namespaces.
	Namespace string
	// TweakListOptions changes the options of every list and watch, to select by
	// labels or fields. Nil changes nothing.
	TweakListOptions internalinterfaces.TweakListOptionsFunc

	// Scheme has the Go types of the group.
	Scheme *runtime.Scheme
	// Mapper finds the resource of a kind, and whether it is namespaced. The server is asked
	// where the mapper does not know the kind, or where its answer turns out to be wrong.
	Mapper meta.RESTMapper
	// Config is the configuration for the API server.
	Config *rest.Config
}

// ForGroup puts a group of custom resources, as client-go's informer-gen generated it, on a
// factory: its informers are started, waited for and shut down with the others, have the
// factory's transform and resync periods, and are shared by type.
//
// newGroup is the function New of the generated package of the group, client the clientset
// that was generated with it, as the interface that its informers take. It may be nil if the
// options have Scheme, Mapper and Config.
//
//	stable, err := informers.ForGroup(factory, versioned.Interface(client), stable.New, informers.GroupOptions{})
//	crontabs := stable.V1().CronTabs().Informer()
//
// The result is that of newGroup. The type parameters follow from the arguments: G is the
// group's interface, S and T are SharedInformerFactory and TweakListOptionsFunc of the
// generated package internalinterfaces, F is its NewInformerFunc, and C the interface of the
// clientset. The factory may also be client-go's own.
//
// It returns an error if another parameter is nil, if the options are incomplete or Config cannot
// be used, or if the generated code needs a method that this version does not have.
func ForGroup[G any, S groupFactory[F], T ~func(*metav1.ListOptions),
	F ~func(C, time.Duration) cache.SharedIndexInformer, C any](
	f SharedInformerFactory, client C, newGroup func(S, string, T) G, o GroupOptions,
) (G, error) {
	var none G
	given := []bool{o.Scheme != nil, o.Mapper != nil, o.Config != nil}
	switch {
	case f == nil:
		return none, errors.New("informers.ForGroup: the factory is nil: make one with NewSharedInformerFactory")
	case newGroup == nil:
		return none, errors.New("informers.ForGroup: newGroup is nil: give it the function New of the group's generated package")
	case slices.Contains(given, true) && slices.Contains(given, false):
		return none, errors.New("informers.ForGroup: the options have only some of Scheme, Mapper and Config: set all three to read with Tidings' own source, or none to read with client")
	case any(client) == nil && o.Config == nil:
		return none, errors.New("informers.ForGroup: the client is nil: give it the clientset that was generated for the group, or set Scheme, Mapper and Config")
	}
	var own *source.Client
	if o.Config != nil {
		var err error
		if own, err = source.NewClient(o.Config, nil); err != nil {
			return none, fmt.Errorf("informers.ForGroup: GroupOptions.Config: %w", err)
		}
		own.Mapper = o.Mapper
	}
	adapter, ok := any(customGroup[F, C]{f, client, own, o}).(S)
	if !ok {
		return none, fmt.Errorf("informers.ForGroup: %v has a method that this version of Tidings does not know: generate the informers with the informer-gen of client-go v0.37", reflect.TypeFor[S]())
	}
	return newGroup(adapter, o.Namespace, T(o.TweakListOptions)), nil
}

// groupFactory is the method of a generated SharedInformerFactory from which its
// NewInformerFunc follows.
type groupFactory[F any] interface {
	InformerFor(obj runtime.Object, newFunc F) cache.SharedIndexInformer
}

// customGroup is the factory of the generated groups of custom resources.
type customGroup[F ~func(C, time.Duration) cache.SharedIndexInformer, C any] struct {
	factory SharedInformerFactory
	client  C
	own     *source.Client // nil to read with client
	options GroupOptions
}

func (g customGroup[F, C]) Start(stopCh <-chan struct{}) { g.factory.Start(stopCh) }

func (g customGroup[F, C]) InformerName() *cache.InformerName { return g.factory.InformerName() }

// InformerFor shares the informer through the factory, whose own client does not have custom
// resources.
func (g customGroup[F, C]) InformerFor(obj runtime.Object, newFunc F) cache.SharedIndexInformer {
	return g.factory.InformerFor(obj, func(_ kubernetes.Interface,
		resync time.Duration) cache.SharedIndexInformer {
		if g.own == nil {
			return newFunc(g.client, resync)
		}
		var s factory.Spec // of another package's factory: no options
		if f, ok := g.factory.(*sharedInformerFactory); ok {
			s = f.spec(obj)
		}
		s.Informer.ResyncPeriod, s.Informer.Indexers = resync, factory.ByNamespace()
		return g.options.newInformer(g.own, obj, g.factory.InformerName(), s)
	})
}

// newInformer makes an informer that reads the custom resource of the type of obj with our
// own source. It panics if the type is not in the scheme.
func (o *GroupOptions) newInformer(own *source.Client, obj runtime.Object,
	name *cache.InformerName, s factory.Spec) cache.SharedIndexInformer {
	kinds, _, err := o.Scheme.ObjectKinds(obj)
	if err != nil {
		panic(fmt.Sprintf("informers.ForGroup: %T is not in GroupOptions.Scheme: add it with the AddToScheme of its package: %v", obj, err))
	}
	gvk := kinds[0]
	s.Resource = source.Resource{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	s.Namespace, s.Tweak = o.Namespace, o.TweakListOptions
	// The source asks for the resource when it runs, and again when its definition comes back
	// otherwise. Only metrics use this name.
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	if mapping, err := o.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		gvr = mapping.Resource
	}
	goType := reflect.TypeOf(obj).Elem()
	example := func() runtime.Object { return reflect.New(goType).Interface().(runtime.Object) }
	s.Informer.Example, s.Informer.Identifier = example(), name.WithResource(gvr)
	openTyped(&s, own, example)
	return factory.New(s)
}
