package informers

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/source"
)

// GroupOptions are the options of ForGroup. The zero value is ready: all objects of all
// namespaces, read by the informers that the generated code makes.
//
// Scheme, Mapper and Config go together: with all three the informers are Tidings' own,
// with none of them the generated code's. One or two of them are an error.
type GroupOptions struct {
	// Namespace limits the informers to a namespace. Empty is all namespaces.
	Namespace string
	// TweakListOptions changes the options of every list and watch, to select by
	// labels or fields. Nil changes nothing.
	TweakListOptions internalinterfaces.TweakListOptionsFunc

	// Scheme has the Go types of the group.
	Scheme *runtime.Scheme
	// Mapper finds the resource of a kind, and whether it is namespaced.
	Mapper meta.RESTMapper
	// Config says how to reach the API server.
	Config *rest.Config
}

// ForGroup puts a group of custom resources, as client-go's informer-gen generated it
// for them, on a factory: its informers are started, waited for and shut down with the
// others, have the factory's transform and resync periods, and are shared by type.
//
// newGroup is the function New of the generated package of the group, client the
// clientset that was generated with it, as the interface that its informers take. It
// may be nil where the options have what the source needs.
//
//	stable, err := informers.ForGroup(factory, versioned.Interface(client), stable.New, informers.GroupOptions{})
//	crontabs := stable.V1().CronTabs().Informer()
//
// The result is what newGroup returns. The type parameters follow from the arguments: G
// is the group's interface, S and T are SharedInformerFactory and TweakListOptionsFunc
// of the generated package internalinterfaces, F is its NewInformerFunc, and C the
// interface of the clientset. The factory may be any, client-go's own too.
//
// It fails if another parameter is nil, if the options are incomplete or Config cannot be used, or if the generated
// code asks its factory for a method that this version does not have.
func ForGroup[G any, S groupFactory[F], T ~func(*metav1.ListOptions), F ~func(C, time.Duration) cache.SharedIndexInformer, C any](
	factory SharedInformerFactory, client C, newGroup func(S, string, T) G, o GroupOptions,
) (G, error) {
	var none G
	if factory == nil {
		return none, errors.New("informers.ForGroup: the factory is nil: make one with NewSharedInformerFactory")
	}
	if newGroup == nil {
		return none, errors.New("informers.ForGroup: newGroup is nil: give it the function New of the group's generated package")
	}
	given := 0
	for _, set := range []bool{o.Scheme != nil, o.Mapper != nil, o.Config != nil} {
		if set {
			given++
		}
	}
	if given != 0 && given != 3 {
		return none, errors.New("informers.ForGroup: the options have only some of Scheme, Mapper and Config: set all three to read with Tidings' own source, or none to read with client")
	}
	if any(client) == nil && given == 0 {
		return none, errors.New("informers.ForGroup: the client is nil: give it the clientset that was generated for the group, or set Scheme, Mapper and Config")
	}
	var own *source.Client
	if o.Config != nil {
		var err error
		if own, err = source.NewClient(o.Config); err != nil {
			return none, fmt.Errorf("informers.ForGroup: GroupOptions.Config: %w", err)
		}
	}
	adapter, ok := any(customFactory[F, C]{factory, client, own, o}).(S)
	if !ok {
		return none, fmt.Errorf("informers.ForGroup: %v has a method that this version of Tidings does not know: generate the informers with the informer-gen of client-go v0.37", reflect.TypeFor[S]())
	}
	return newGroup(adapter, o.Namespace, T(o.TweakListOptions)), nil
}

// groupFactory is the part of a generated SharedInformerFactory from which its
// NewInformerFunc follows.
type groupFactory[F any] interface {
	InformerFor(obj runtime.Object, newFunc F) cache.SharedIndexInformer
}

// customFactory is what the generated groups of custom resources get for their factory.
type customFactory[F ~func(C, time.Duration) cache.SharedIndexInformer, C any] struct {
	factory SharedInformerFactory
	client  C
	own     *source.Client // nil to read with client
	options GroupOptions
}

func (g customFactory[F, C]) Start(stopCh <-chan struct{}) { g.factory.Start(stopCh) }

func (g customFactory[F, C]) InformerName() *cache.InformerName { return g.factory.InformerName() }

// InformerFor shares the informer through the factory, whose own client knows nothing
// of custom resources.
func (g customFactory[F, C]) InformerFor(obj runtime.Object, newFunc F) cache.SharedIndexInformer {
	return g.factory.InformerFor(obj, func(_ kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		if g.own == nil {
			return newFunc(g.client, resync)
		}
		return newCustomInformer(g.own, obj, g.options, decodingIn(g.factory, obj), InformerOptions{
			ResyncPeriod:     resync,
			Indexers:         cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
			InformerName:     g.factory.InformerName(),
			TweakListOptions: g.options.TweakListOptions,
		})
	})
}

// decodingIn returns what becomes of the objects of a type in a factory: they share
// everything, among those of one client, and lack nothing, if it is none of this package.
func decodingIn(f SharedInformerFactory, obj runtime.Object) decoding {
	own, ok := f.(*factory)
	if !ok {
		return decoding{}
	}
	return own.decodingOf(obj)
}
