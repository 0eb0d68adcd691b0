package tidings

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/engine/builtin"
	"github.com/tidings-go/tidings/source"
)

// For returns a handle to the informer of the objects of type T, a pointer to a
// type of the factory's scheme such as *appsv1.Deployment, within a selection. It
// runs once the factory is started. Give the handle back with Release.
func For[T Object](f *Factory, s Selection) (*Informer[T], error) {
	t := reflect.TypeFor[T]()
	fail := func(err error) (*Informer[T], error) {
		return nil, fmt.Errorf("tidings: For[%v]: %w", t, err)
	}
	if f == nil {
		return fail(ErrNilFactory)
	}
	gvk, err := f.kindOf(t)
	if err != nil {
		return fail(err)
	}
	resource := resourceOf(gvk)
	newObject := func() T { return reflect.New(t.Elem()).Interface().(T) }
	as := form{typ: t}
	informer, err := ask(f, as, resource, s, func(o source.RESTOptions) source.Source[T] {
		return source.NewTyped(f.client, resource, newObject, o)
	})
	if err != nil {
		return fail(err)
	}
	return informer, nil
}

// Dynamic returns a handle to the informer of the objects of a resource, held as
// maps. It serves every resource, custom ones included.
func Dynamic(
	f *Factory, resource schema.GroupVersionResource, s Selection,
) (*Informer[*unstructured.Unstructured], error) {
	return askByResource(f, "Dynamic", resource, s, source.NewDynamic)
}

// Metadata returns a handle to the informer of the metadata of the objects of a
// resource. The server sends nothing else, which makes it the smallest cache. The objects have the
// kind of the resource; the server is asked for that of a custom resource.
func Metadata(
	f *Factory, resource schema.GroupVersionResource, s Selection,
) (*Informer[*metav1.PartialObjectMetadata], error) {
	return askByResource(f, "Metadata", resource, s, source.NewMetadata)
}

func askByResource[T Object](
	f *Factory, verb string, gvr schema.GroupVersionResource, s Selection,
	open func(*source.Client, source.Resource, source.RESTOptions) *source.REST[T],
) (*Informer[T], error) {
	fail := func(err error) (*Informer[T], error) {
		of := source.Resource{Group: gvr.Group, Version: gvr.Version, Name: gvr.Resource}
		return nil, fmt.Errorf("tidings: %s(%s): %w", verb, of, err)
	}
	switch {
	case f == nil:
		return fail(ErrNilFactory)
	case gvr.Resource == "" || gvr.Version == "":
		return fail(errors.New("the resource needs a version and a name, " +
			`as in {Group: "apps", Version: "v1", Resource: "deployments"}`))
	}
	for _, segment := range []string{gvr.Group, gvr.Version, gvr.Resource} {
		if problems := content.IsPathSegmentName(segment); len(problems) > 0 {
			return fail(fmt.Errorf("%q %s: give the name of a resource, not of a part of it",
				segment, strings.Join(problems, "; ")))
		}
	}
	resource := source.Resource{Group: gvr.Group, Version: gvr.Version, Name: gvr.Resource}
	if known, ok := builtin.ForGVR(gvr); ok {
		resource.Kind, resource.Scope = known.Kind, scopeFrom(known.Namespaced)
	}
	read := func(o source.RESTOptions) source.Source[T] { return open(f.client, resource, o) }
	informer, err := ask(f, form{verb: verb}, resource, s, read)
	if err != nil {
		return fail(err)
	}
	return informer, nil
}

// A form is how informers hold the objects of a resource.
type form struct {
	verb string       // the function that asked, "" for For
	typ  reflect.Type // of the objects, nil for Dynamic and Metadata
	of   reflect.Type // of a view, the API type
}

// String returns the words before the resource in the name of an informer.
func (f form) String() string {
	switch {
	case f.verb == "":
		return ""
	case f.typ == nil:
		return f.verb + " "
	}
	return fmt.Sprintf("%s[%v] ", f.verb, f.typ.Elem())
}

// ask returns a handle to the informer of a resource in one form.
func ask[T Object](
	f *Factory, as form, resource source.Resource, s Selection,
	open func(source.RESTOptions) source.Source[T],
) (*Informer[T], error) {
	checked, err := s.check(resource.Scope, f.o.Namespaces)
	if err != nil {
		return nil, err
	}
	if checked.drop, err = dropFrom[T](s.Drop, checked.labels); err != nil {
		return nil, err
	}
	transform, err := transformOf[T](s.Transform)
	if err != nil {
		return nil, err
	}
	key := shareKey{
		form: as, resource: resource, selection: checked.String(), transform: s.Transform,
		slots: s.Slots,
	}
	transport := f.o.Transport
	var sharer *dedup.Sharer // of the results of a transform
	if transform != nil && transport.Sharing != ShareNothing {
		sharer = f.client.NewSharer(resource, transport)
		transport.Sharing = ShareStrings // a transform may change the object that it receives
	}
	shared, err := f.acquire(key, func(moved func(string)) (managed, error) {
		o := collectionOptions[T]{
			form: as, name: informerName(as, resource, checked), selection: checked,
			resource: resource, client: f.client,
			source: func(namespace string) source.Source[T] {
				return open(source.RESTOptions{
					Transport: transport, Namespace: namespace,
					ClusterScoped: checked.byDefault && namespace == "",
					Labels:        checked.labels.String(), Fields: checked.fields.String(),
					Drop: checked.drop.Paths(),
				})
			},
			transform: transform, sharer: sharer,
			transport: transport, logger: f.o.Logger, stopGrace: f.o.StopGrace, owned: true,
			onSelection: moved,
		}
		if f.o.DetectMutations {
			o.mutations = newMutationDetector[T](f.o.OnMutation)
		}
		return newCollection(o)
	})
	if err != nil {
		return nil, err
	}
	return newInformer(shared.collection.(*collection[T]), func() { f.giveBack(shared) }), nil
}

// informerName returns the name of an informer, such as pods.v1 [in default, labels app=web].
func informerName(as form, resource source.Resource, s selection) string {
	name := as.String() + resource.String()
	if text := s.String(); text != "" {
		name += " [" + text + "]"
	}
	return name
}

func (f *Factory) kindOf(t reflect.Type) (schema.GroupVersionKind, error) {
	switch t {
	case reflect.TypeFor[*unstructured.Unstructured]():
		return schema.GroupVersionKind{}, errors.New("unstructured objects can be of any kind: " +
			"use Dynamic, which takes the resource")
	case reflect.TypeFor[*metav1.PartialObjectMetadata]():
		return schema.GroupVersionKind{}, errors.New("metadata can be of any kind: " +
			"use Metadata, which takes the resource")
	}
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return schema.GroupVersionKind{}, errors.New("a pointer to an API type is needed, " +
			"such as *corev1.Pod")
	}
	obj, ok := reflect.New(t.Elem()).Interface().(runtime.Object)
	if !ok {
		return schema.GroupVersionKind{}, ErrNotInScheme
	}
	kinds, _, err := f.scheme.ObjectKinds(obj)
	if err != nil || len(kinds) == 0 {
		return schema.GroupVersionKind{}, ErrNotInScheme
	}
	return kinds[0], nil
}

// resourceOf returns the resource that serves a kind. Its name and scope stay open if the kind is
// not built in: the source asks for them whenever it does not know them, as a definition may come
// back under another name or in another scope.
func resourceOf(gvk schema.GroupVersionKind) source.Resource {
	resource := source.Resource{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
	if known, ok := builtin.ForGVK(gvk); ok {
		resource.Name, resource.Scope = known.Resource, scopeFrom(known.Namespaced)
	}
	return resource
}

func scopeFrom(namespaced bool) source.Scope {
	if namespaced {
		return source.ScopeNamespaced
	}
	return source.ScopeCluster
}
