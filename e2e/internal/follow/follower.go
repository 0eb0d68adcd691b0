package follow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// configMaps are what is followed: no controller writes to them.
var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// Follower is an informer and what its handler was told.
type Follower struct {
	// Name says of what kind it is.
	Name string
	// Namespaces are those it follows; none means all.
	Namespaces []string
	// Cache returns what the informer's cache holds.
	Cache func() State

	fold   *fold
	synced func() bool
	stop   func()
}

// Told returns what the handler's fold is, and what it was told that cannot be.
func (f *Follower) Told() (State, []string) { return f.fold.snapshot() }

// Synced reports whether the cache holds the first list.
func (f *Follower) Synced() bool { return f.synced() }

// Counts returns how many events, and how many deletes, the handler was told.
func (f *Follower) Counts() (events, deletes int) {
	f.fold.mu.Lock()
	defer f.fold.mu.Unlock()
	return f.fold.events, f.fold.deletes
}

// Stop returns when the informer has ended. Its context has to have ended before.
func (f *Follower) Stop() { f.stop() }

// Check returns how the cache and the handler's fold differ from what is true: nothing,
// when they agree and nothing was told that cannot be.
func (f *Follower) Check(truth State) []string {
	if len(f.Namespaces) > 0 {
		truth = maps.Clone(truth)
		maps.DeleteFunc(truth, func(key, _ string) bool {
			namespace, _, _ := strings.Cut(key, "/")
			return !slices.Contains(f.Namespaces, namespace)
		})
	}
	told, wrong := f.Told()
	return slices.Concat(wrong, differences("the cache", f.Cache(), truth), differences("the handler", told, truth))
}

// differences says how a state differs from the truth, up to a limit.
func differences(whose string, state, truth State) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(truth)) {
		if state[key] != truth[key] {
			all = append(all, fmt.Sprintf("%s has %q of %s, which is %s", whose, state[key], key, truth[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(state)) {
		if _, there := truth[key]; !there {
			all = append(all, fmt.Sprintf("%s has %s of %s, which is gone", whose, state[key], key))
		}
	}
	return all[:min(len(all), wrongLimit)]
}

// All starts an informer of config maps of every kind, those of package tidings in some
// namespaces and in all. They run until ctx ends.
func All(ctx context.Context, config *rest.Config, namespaces ...string) ([]*Follower, error) {
	var all []*Follower
	for _, o := range []tidings.FactoryOptions{
		{},
		{Namespaces: namespaces},
		{NoStreamedLists: true, PageSize: 50},
	} {
		native, err := natives(ctx, config, o)
		if err != nil {
			return nil, err
		}
		all = append(all, native...)
	}
	dropIns, err := dropIns(ctx, config)
	if err != nil {
		return nil, err
	}
	return append(all, dropIns...), nil
}

// natives are the informers of package tidings.
func natives(ctx context.Context, config *rest.Config, o tidings.FactoryOptions) ([]*Follower, error) {
	factory, err := tidings.NewFactory(config, o)
	if err != nil {
		return nil, err
	}
	how := "streamed"
	switch {
	case o.NoStreamedLists:
		how = "paged"
	case len(o.Namespaces) > 0:
		how = fmt.Sprintf("in %d namespaces", len(o.Namespaces))
	}
	typed, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	unstructured, err := tidings.Dynamic(factory, configMaps, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	onlyMetadata, err := tidings.Metadata(factory, configMaps, tidings.Selection{})
	if err != nil {
		return nil, err
	}
	// The second and third are stopped by the first.
	end := func() { factory.Shutdown(context.WithoutCancel(ctx)) } //nolint:errcheck // the handlers do not block
	var all []*Follower
	for _, make := range []func() (*Follower, error){
		func() (*Follower, error) { return native("typed, "+how, typed, end) },
		func() (*Follower, error) { return native("dynamic, "+how, unstructured, func() {}) },
		func() (*Follower, error) { return native("metadata, "+how, onlyMetadata, func() {}) },
	} {
		f, err := make()
		if err != nil {
			return nil, err
		}
		f.Namespaces = o.Namespaces
		all = append(all, f)
	}
	return all, factory.Start(ctx)
}

func native[T tidings.Object](name string, i *tidings.Informer[T], stop func()) (*Follower, error) {
	fold := &fold{state: State{}}
	_, err := i.AddHandler(tidings.Funcs[T]{
		OnAdd:    func(obj T, _ bool) { fold.added(obj) },
		OnUpdate: func(before, after T) { fold.updated(before, after) },
		OnDelete: func(last T) { fold.deleted(keyOf(last)) },
	}, tidings.HandlerOptions{})
	return &Follower{
		Name: name, fold: fold, synced: i.HasSynced, stop: stop,
		Cache: func() State {
			state := State{}
			for _, obj := range i.Lister().All() {
				state[keyOf(obj)] = identityOf(obj)
			}
			return state
		},
	}, err
}

// dropIns are the informers of the three packages that replace client-go's.
func dropIns(ctx context.Context, config *rest.Config) ([]*Follower, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	typed := informers.NewSharedInformerFactory(client, 0)
	unstructured := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)
	onlyMetadata := metadatainformer.NewSharedInformerFactory(metadataClient, 0)
	var all []*Follower
	for name, i := range map[string]cache.SharedIndexInformer{
		"clientgo typed":    typed.Core().V1().ConfigMaps().Informer(),
		"clientgo dynamic":  unstructured.ForResource(configMaps).Informer(),
		"clientgo metadata": onlyMetadata.ForResource(configMaps).Informer(),
	} {
		f, err := dropIn(name, i)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	all[0].stop = func() {
		typed.Shutdown()
		unstructured.Shutdown()
		onlyMetadata.Shutdown()
	}
	typed.Start(ctx.Done())
	unstructured.Start(ctx.Done())
	onlyMetadata.Start(ctx.Done())
	return all, nil
}

func dropIn(name string, i cache.SharedIndexInformer) (*Follower, error) {
	fold := &fold{state: State{}}
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
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
	return &Follower{
		Name: name, fold: fold, synced: i.HasSynced, stop: func() {},
		Cache: func() State {
			state := State{}
			for _, obj := range i.GetStore().List() {
				state[keyOf(obj.(metav1.Object))] = identityOf(obj.(metav1.Object))
			}
			return state
		},
	}, err
}
