package objects

import (
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
)

// Client reads and writes the objects of an API type that has no generated client, such as the Go
// type of a custom resource, in JSON. Use [NewClient].
type Client[T Object] struct {
	resource   string
	rest       rest.Interface
	parameters runtime.ParameterCodec
}

// NewClient returns a client of a type that is in a scheme. resource is the plural name under which
// the server has it: *shopv1.Widget and "widgets", for example. config is that of a
// controller.Guard, or of a client that no controller writes with.
func NewClient[T Object](
	config *rest.Config, scheme *runtime.Scheme, resource string,
) (*Client[T], error) {
	c, err := newClient[T](config, scheme, resource)
	if err != nil {
		return nil, fmt.Errorf("objects: NewClient[%v]: %w", reflect.TypeFor[T](), err)
	}
	return c, nil
}

func newClient[T Object](
	config *rest.Config, scheme *runtime.Scheme, resource string,
) (*Client[T], error) {
	switch t := reflect.TypeFor[T](); {
	case config == nil || scheme == nil:
		return nil, errors.New("the rest.Config or the scheme is nil")
	case resource == "":
		return nil, errors.New(`the resource is empty: give its plural name, as in "widgets"`)
	case t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct:
		return nil, errors.New("a pointer to an API type is needed, such as *corev1.Pod")
	case t == reflect.TypeFor[*unstructured.Unstructured]():
		return nil, errors.New("a map can be of any type: use client-go's dynamic client")
	}
	kinds, _, err := scheme.ObjectKinds(empty[T]())
	if err != nil {
		return nil, fmt.Errorf("the type is not in the scheme: add it with the AddToScheme of its "+
			"package: %w", err)
	}
	gv := kinds[0].GroupVersion()
	// The codecs also need the options and the errors of the server, which the scheme may lack.
	types := runtime.NewScheme()
	types.AddKnownTypeWithName(kinds[0], empty[T]())
	metav1.AddToGroupVersion(types, gv)
	metav1.AddToGroupVersion(types, schema.GroupVersion{Version: "v1"})
	own := rest.CopyConfig(config)
	own.APIPath = "/apis"
	if gv.Group == "" {
		own.APIPath = "/api"
	}
	own.ContentConfig = rest.ContentConfig{
		GroupVersion:         &gv,
		NegotiatedSerializer: serializer.NewCodecFactory(types).WithoutConversion(),
	}
	client, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, err
	}
	return &Client[T]{resource, client, runtime.NewParameterCodec(types)}, nil
}

// empty returns a new object of a type, which is a pointer to a struct.
func empty[T Object]() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

// In returns the client for a namespace, or for a type without namespaces if it is "". It has the
// methods of a generated client but List, for which there are informers, and Apply.
func (c *Client[T]) In(namespace string) *gentype.Client[T] {
	return gentype.NewClient(c.resource, c.rest, c.parameters, namespace, empty[T])
}

// ApplyIn returns the client for a namespace with Apply and ApplyStatus, which take the
// configurations that controller-gen or applyconfiguration-gen has generated for the type: C is
// *WidgetApplyConfiguration, for example.
func ApplyIn[C interface {
	comparable
	GetName() *string
}, T Object](c *Client[T], namespace string) *gentype.ClientWithApply[T, C] {
	return gentype.NewClientWithApply[T, C](
		c.resource, c.rest, c.parameters, namespace, empty[T])
}
