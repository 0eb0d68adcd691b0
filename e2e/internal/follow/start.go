package follow

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// configMaps are what All follows: no controller writes to them here.
var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// starter starts informers. The first error ends it.
type starter struct {
	ctx    context.Context
	config *rest.Config
	all    []*Follower
	err    error
}

// All starts an informer of config maps of every kind, those of package tidings in some
// namespaces and in all. They run until ctx ends.
func All(ctx context.Context, config *rest.Config, namespaces ...string) ([]*Follower, error) {
	s := &starter{ctx: ctx, config: config}
	s.natives("streamed", configMaps, tidings.FactoryOptions{})
	s.natives(fmt.Sprintf("in %d namespaces", len(namespaces)), configMaps, tidings.FactoryOptions{Namespaces: namespaces})
	s.natives("paged", configMaps, tidings.FactoryOptions{NoStreamedLists: true, PageSize: 50})
	s.dropIns(configMaps)
	return s.all, s.err
}

// Brief starts informers of config maps of every kind that can be told how long a watch
// lasts: from that time to twice of it. They run until ctx ends.
func Brief(ctx context.Context, config *rest.Config, watch time.Duration) ([]*Follower, error) {
	s := &starter{ctx: ctx, config: config}
	s.natives("streamed", configMaps, tidings.FactoryOptions{WatchTimeout: watch})
	s.natives("paged", configMaps, tidings.FactoryOptions{WatchTimeout: watch, NoStreamedLists: true, PageSize: 50})
	return s.all, s.err
}

// Custom starts an informer of each kind that needs no Go type, of a custom resource.
// They run until ctx ends.
func Custom(ctx context.Context, config *rest.Config, resource schema.GroupVersionResource) ([]*Follower, error) {
	s := &starter{ctx: ctx, config: config}
	s.natives("streamed", resource, tidings.FactoryOptions{})
	s.natives("paged", resource, tidings.FactoryOptions{NoStreamedLists: true, PageSize: 5})
	s.dropIns(resource)
	return s.all, s.err
}

// natives starts the informers of package tidings.
func (s *starter) natives(how string, resource schema.GroupVersionResource, o tidings.FactoryOptions) {
	if s.err != nil {
		return
	}
	factory, err := tidings.NewFactory(s.config, o)
	if err != nil {
		s.err = err
		return
	}
	first := len(s.all)
	if resource == configMaps {
		i, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
		addNative(s, "typed, "+how, i, err)
	}
	unstructured, err := tidings.Dynamic(factory, resource, tidings.Selection{})
	addNative(s, "dynamic, "+how, unstructured, err)
	onlyMetadata, err := tidings.Metadata(factory, resource, tidings.Selection{})
	addNative(s, "metadata, "+how, onlyMetadata, err)
	if s.err != nil {
		return
	}
	for _, f := range s.all[first:] {
		f.Namespaces = o.Namespaces
	}
	// The first stops the factory, and with it the others.
	s.all[first].stop = func() { factory.Shutdown(context.WithoutCancel(s.ctx)) } //nolint:errcheck // the handlers do not block
	s.err = factory.Start(s.ctx)
}

func addNative[T tidings.Object](s *starter, name string, i *tidings.Informer[T], err error) {
	if s.err != nil || err != nil {
		s.err = errors.Join(s.err, err)
		return
	}
	fold := &fold{state: State{}}
	_, s.err = i.AddHandler(tidings.Funcs[T]{
		OnAdd:    func(obj T, _ bool) { fold.added(obj) },
		OnUpdate: func(before, after T) { fold.updated(before, after) },
		OnDelete: func(last T) { fold.deleted(keyOf(last)) },
	}, tidings.HandlerOptions{})
	s.all = append(s.all, &Follower{
		Name: name, fold: fold, synced: i.HasSynced, stop: func() {},
		health: i.Health, add: i.AddNamespace, remove: i.RemoveNamespace,
		Cache: func() State {
			state := State{}
			for _, obj := range i.Lister().All() {
				state[keyOf(obj)] = identityOf(obj)
			}
			return state
		},
	})
}

// dropIns starts the informers of the packages that replace client-go's.
func (s *starter) dropIns(resource schema.GroupVersionResource) {
	if s.err != nil {
		return
	}
	client, err1 := kubernetes.NewForConfig(s.config)
	dynamicClient, err2 := dynamic.NewForConfig(s.config)
	metadataClient, err3 := metadata.NewForConfig(s.config)
	if s.err = errors.Join(err1, err2, err3); s.err != nil {
		return
	}
	typed := informers.NewSharedInformerFactory(client, 0)
	unstructured := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)
	onlyMetadata := metadatainformer.NewSharedInformerFactory(metadataClient, 0)
	first := len(s.all)
	if resource == configMaps {
		s.addDropIn("clientgo typed", typed.Core().V1().ConfigMaps().Informer())
	}
	s.addDropIn("clientgo dynamic", unstructured.ForResource(resource).Informer())
	s.addDropIn("clientgo metadata", onlyMetadata.ForResource(resource).Informer())
	if s.err != nil {
		return
	}
	s.all[first].stop = func() {
		typed.Shutdown()
		unstructured.Shutdown()
		onlyMetadata.Shutdown()
	}
	typed.Start(s.ctx.Done())
	unstructured.Start(s.ctx.Done())
	onlyMetadata.Start(s.ctx.Done())
}

func (s *starter) addDropIn(name string, i cache.SharedIndexInformer) {
	if s.err != nil {
		return
	}
	fold := &fold{state: State{}}
	_, s.err = i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { fold.added(obj.(metav1.Object)) },
		UpdateFunc: func(before, after any) { fold.updated(before.(metav1.Object), after.(metav1.Object)) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				fold.deleted(tombstone.Key)
				return
			}
			fold.deleted(keyOf(obj.(metav1.Object)))
		},
	})
	s.all = append(s.all, &Follower{
		Name: name, fold: fold, synced: i.HasSynced, stop: func() {},
		health: func() tidings.Health {
			health, ok := cache.HealthOf(i)
			if !ok {
				health.LastError = fmt.Errorf("%T is no informer of this project", i)
			}
			return health
		},
		Cache: func() State {
			state := State{}
			for _, obj := range i.GetStore().List() {
				state[keyOf(obj.(metav1.Object))] = identityOf(obj.(metav1.Object))
			}
			return state
		},
	})
}
