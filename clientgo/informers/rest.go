package informers

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/clientgo/internal/sharedinformer"
	"github.com/tidings-go/tidings/source"
)

// newRESTInformer makes an informer that reads a resource through the REST client of
// a clientset. It reports false where that is not possible; the informer then reads
// through the clientset's typed methods.
func newRESTInformer(cs *kubernetes.Clientset, r resource, namespace string, tweak internalinterfaces.TweakListOptionsFunc, decode decoding, o cache.SharedIndexInformerOptions) (cache.SharedIndexInformer, bool) {
	restClient, ok := cs.CoreV1().RESTClient().(*rest.RESTClient)
	if !ok {
		return nil, false
	}
	client, err := source.NewClientFromREST(restClient)
	if err != nil {
		utilruntime.HandleErrorWithContext(context.Background(), err, "An informer reads through typed clients, because it cannot use the REST client", "resource", r.gvr.String())
		return nil, false
	}
	return newSourceInformer(client, r.source(), r.goType.example, namespace, tweak, decode, o), true
}

// newCustomInformer makes an informer that reads the custom resource of the type of obj
// through a client of our own. A type that is not in the scheme is a mistake that nothing
// can be made of, and panics.
func newCustomInformer(client *source.Client, obj runtime.Object, g GroupOptions, decode decoding, o internalinterfaces.InformerOptions) cache.SharedIndexInformer {
	kinds, _, err := g.Scheme.ObjectKinds(obj)
	if err != nil {
		panic(fmt.Sprintf("informers.ForGroup: %T is not in GroupOptions.Scheme: add it with the AddToScheme of its package: %v", obj, err))
	}
	of := source.Resource{Group: kinds[0].Group, Version: kinds[0].Version, Kind: kinds[0].Kind}
	gvr, _ := meta.UnsafeGuessKindToResource(kinds[0])
	// A kind that the mapper does not know may be installed later: the source asks the
	// server for its resource when it runs, and only metrics go by the guess.
	if mapping, err := g.Mapper.RESTMapping(kinds[0].GroupKind(), kinds[0].Version); err == nil {
		gvr = mapping.Resource
		of.Name, of.Scope = gvr.Resource, scopeOf(mapping.Scope.Name() == meta.RESTScopeNameNamespace)
	}
	namespace := g.Namespace
	if of.Scope == source.ScopeCluster {
		namespace = metav1.NamespaceNone
	}
	example := func() runtime.Object { return newOf(g.Scheme, kinds[0]) }
	return newSourceInformer(client, of, example, namespace, o.TweakListOptions, decode, cache.SharedIndexInformerOptions{
		ResyncPeriod: o.ResyncPeriod, Indexers: o.Indexers, Identifier: o.InformerName.WithResource(gvr),
	})
}

// newOf returns a new object of a kind that the scheme is known to have.
func newOf(scheme *runtime.Scheme, gvk schema.GroupVersionKind) runtime.Object {
	obj, err := scheme.New(gvk)
	if err != nil {
		panic(fmt.Sprintf("informers.ForGroup: %v was taken out of GroupOptions.Scheme: %v", gvk, err))
	}
	return obj
}

// decoding says what becomes of the objects of informers when they are decoded. The zero
// value has them share everything, among the informers of one client, and leaves nothing out.
type decoding struct {
	among  *source.Table // nil is a table of the client's own
	atMost source.Sharing
	drop   []string // fields
}

// choice is what of it concerns objects of a resource that are decoded already.
func (d decoding) choice(of source.Resource) listwatch.Sharing {
	return listwatch.SharingFor(of, d.atMost, d.among)
}

// newSourceInformer makes an informer of what our own source reads. If it gets a
// transform, which may change objects, these share strings at most until it has returned.
func newSourceInformer(client *source.Client, of source.Resource, example func() runtime.Object, namespace string, tweak internalinterfaces.TweakListOptionsFunc, decode decoding, o cache.SharedIndexInformerOptions) cache.SharedIndexInformer {
	open := func(what source.Sharing) source.Source[any] {
		typed := source.NewTyped(client, of, func() source.Object { return example().(source.Object) }, source.RESTOptions{
			Transport: source.Transport{Sharing: what},
			Namespace: namespace, Tweak: tweak, Table: decode.among, Drop: decode.drop,
		})
		return listwatch.Untyped(source.Source[source.Object](typed))
	}
	return sharedinformer.New(sharedinformer.Options{
		Source: open(decode.atMost), Unshared: open(max(decode.atMost, source.ShareStrings)), Example: example(),
		Sharing:      decode.choice(of),
		ResyncPeriod: o.ResyncPeriod, Indexers: o.Indexers,
		Identifier: o.Identifier, Metrics: o.InformerMetricsProvider,
	})
}

// source describes the resource to our own source.
func (r *resource) source() source.Resource {
	return source.Resource{
		Group: r.gvr.Group, Version: r.gvr.Version, Name: r.gvr.Resource,
		Kind: r.kind, Scope: scopeOf(r.namespaced),
	}
}

func scopeOf(namespaced bool) source.Scope {
	if namespaced {
		return source.ScopeNamespaced
	}
	return source.ScopeCluster
}
