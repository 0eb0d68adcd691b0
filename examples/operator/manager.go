package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/ctrlruntime"
	webv1 "github.com/tidings-go/tidings/examples/operator/api/v1"
)

// ownerField is the index of Deployments and ConfigMaps by the name of the Website that controls
// them.
const ownerField = "metadata.controller"

// The caches that the manager can have.
const (
	// stockCache is controller-runtime's.
	stockCache = "stock"
	// tidingsInformers is controller-runtime's, with Tidings' informers.
	tidingsInformers = "informers"
	// tidingsCache is Tidings', with the client whose reads wait for its writes.
	tidingsCache = "tidings"
)

// options are those of a manager with one of the caches, which sees the given namespaces; none
// means all.
func options(caching string, namespaces []string) (manager.Options, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, webv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return manager.Options{}, fmt.Errorf("build the scheme: %w", err)
		}
	}
	o := manager.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
	}
	switch caching {
	case stockCache:
	case tidingsInformers:
		o.Cache.NewInformer = tidingscache.NewSharedIndexInformer // all that it takes
	case tidingsCache:
		o.NewCache, o.NewClient = ctrlruntime.NewCache, ctrlruntime.NewClient // likewise
	default:
		return manager.Options{}, fmt.Errorf("there is no cache %q: choose %s, %s or %s",
			caching, stockCache, tidingsInformers, tidingsCache)
	}
	for _, namespace := range namespaces {
		if o.Cache.DefaultNamespaces == nil {
			o.Cache.DefaultNamespaces = make(map[string]cache.Config)
		}
		o.Cache.DefaultNamespaces[namespace] = cache.Config{}
	}
	return o, nil
}

// newManager returns a manager with the controller of Websites, ready to start.
func newManager(ctx context.Context, cluster *rest.Config, o manager.Options) (manager.Manager, error) {
	m, err := manager.New(cluster, o)
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	for _, owned := range []client.Object{&appsv1.Deployment{}, &corev1.ConfigMap{}} {
		if err := m.GetFieldIndexer().IndexField(ctx, owned, ownerField, owner); err != nil {
			return nil, fmt.Errorf("index the owners of %T: %w", owned, err)
		}
	}
	err = builder.ControllerManagedBy(m).
		For(&webv1.Website{}).
		Owns(&appsv1.Deployment{}).
		Owns(&corev1.ConfigMap{}).
		Complete(&reconciler{Client: m.GetClient()})
	if err != nil {
		return nil, fmt.Errorf("make the controller of websites: %w", err)
	}
	return m, nil
}

// owner returns the name of the Website that controls an object, if one does.
func owner(obj client.Object) []string {
	ref := metav1.GetControllerOf(obj)
	if ref == nil || ref.Kind != "Website" || ref.APIVersion != webv1.GroupVersion().String() {
		return nil
	}
	return []string{ref.Name}
}
