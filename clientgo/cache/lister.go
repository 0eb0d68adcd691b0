package cache

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// NewGenericLister returns a lister of a cache, which lists with [ListAllByNamespace]. Its
// NotFound errors name the resource.
func NewGenericLister(indexer Indexer, resource schema.GroupResource) GenericLister {
	return genericLister{scopedLister{indexer, resource, metav1.NamespaceAll}}
}

type genericLister struct{ scopedLister }

// ByNamespace returns a lister of one namespace.
func (l genericLister) ByNamespace(namespace string) GenericNamespaceLister {
	return scopedLister{l.indexer, l.resource, namespace}
}

// Get returns the object of a key.
func (l genericLister) Get(key string) (runtime.Object, error) { return l.get(key, key) }

// scopedLister lists a namespace, or all of them.
type scopedLister struct {
	indexer   Indexer
	resource  schema.GroupResource
	namespace string
}

// List returns the objects that the selector matches.
func (l scopedLister) List(selector labels.Selector) (list []runtime.Object, err error) {
	err = ListAllByNamespace(l.indexer, l.namespace, selector,
		func(obj any) { list = append(list, obj.(runtime.Object)) })
	return list, err
}

// Get returns the object of a name in the namespace.
func (l scopedLister) Get(name string) (runtime.Object, error) {
	return l.get(l.namespace+"/"+name, name)
}

func (l scopedLister) get(key, name string) (runtime.Object, error) {
	obj, exists, err := l.indexer.GetByKey(key)
	if err != nil {
		return nil, err
	}
	if !exists {
		return nil, apierrors.NewNotFound(l.resource, name)
	}
	return obj.(runtime.Object), nil
}
