package cache

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// NewGenericLister is client-go's [cache.NewGenericLister], except that it lists with
// [ListAllByNamespace].
func NewGenericLister(indexer Indexer, resource schema.GroupResource) GenericLister {
	return genericLister{cache.NewGenericLister(indexer, resource), indexer}
}

type genericLister struct {
	cache.GenericLister
	indexer Indexer
}

// List returns the objects that the selector matches.
func (l genericLister) List(selector labels.Selector) ([]runtime.Object, error) {
	return list(l.indexer, metav1.NamespaceAll, selector)
}

// ByNamespace returns a lister of one namespace.
func (l genericLister) ByNamespace(namespace string) GenericNamespaceLister {
	return namespaceLister{l.GenericLister.ByNamespace(namespace), l.indexer, namespace}
}

type namespaceLister struct {
	cache.GenericNamespaceLister
	indexer   Indexer
	namespace string
}

// List returns the objects that the selector matches.
func (l namespaceLister) List(selector labels.Selector) ([]runtime.Object, error) {
	return list(l.indexer, l.namespace, selector)
}

func list(indexer Indexer, namespace string,
	selector labels.Selector) (found []runtime.Object, err error) {
	err = ListAllByNamespace(indexer, namespace, selector,
		func(obj any) { found = append(found, obj.(runtime.Object)) })
	return found, err
}
