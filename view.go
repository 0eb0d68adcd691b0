package tidings

import (
	"errors"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/source"
)

// View returns a handle to the informer of views of the objects of type A, a pointer to a type of
// the factory's scheme, within a selection: of objects of type V, a pointer to a struct of the
// caller's that declares the fields which are read.
//
//	type Pod struct {
//		tidings.Meta `json:"metadata"`
//		Spec struct {
//			NodeName string `json:"nodeName"`
//		} `json:"spec"`
//	}
//	pods, err := tidings.View[*Pod, *corev1.Pod](factory, tidings.Selection{})
//
// Each field has the value that it has in the whole object. What is not declared is neither decoded
// nor held. A field is tagged with its name in JSON and has the type that A has there; in place of a
// struct it may have another one with fewer fields, in place of a named string a string. Everything
// else is an error of View, which names the field, both types and the remedy. Selection.Drop is an
// error, too.
//
// Two views of a type are two informers, each with a watch of its own.
func View[V Object, A runtime.Object](f *Factory, s Selection) (*Informer[V], error) {
	view, api := reflect.TypeFor[V](), reflect.TypeFor[A]()
	fail := func(err error) (*Informer[V], error) {
		return nil, fmt.Errorf("tidings: View[%v, %v]: %w", view, api, err)
	}
	if f == nil {
		return fail(ErrNilFactory)
	}
	gvk, err := f.kindOf(api)
	if err != nil {
		return fail(err)
	}
	whole := reflect.New(api.Elem()).Interface().(runtime.Object)
	informer, err := askForView[V](f, form{typ: view, of: api}, gvk, s, whole)
	if err != nil {
		return fail(err)
	}
	return informer, nil
}

// UncheckedView returns a handle to the informer of views of the objects of a kind that has no Go
// type here, such as a custom resource, as [View] does. They come in JSON. What V declares is not
// checked: a field that the objects do not have stays empty, and an object with a value of another
// type in a field cannot be decoded, as Health says then.
func UncheckedView[V Object](
	f *Factory, kind schema.GroupVersionKind, s Selection,
) (*Informer[V], error) {
	view := reflect.TypeFor[V]()
	fail := func(err error) (*Informer[V], error) {
		return nil, fmt.Errorf("tidings: UncheckedView[%v](%v): %w", view, kind, err)
	}
	switch {
	case f == nil:
		return fail(ErrNilFactory)
	case kind.Kind == "" || kind.Version == "":
		return fail(errors.New("the kind needs a version and a name, " +
			`as in {Group: "shop.example", Version: "v1", Kind: "Order"}`))
	}
	informer, err := askForView[V](f, form{typ: view}, kind, s, nil)
	if err != nil {
		return fail(err)
	}
	return informer, nil
}

// askForView returns a handle to an informer of views. whole is nil for a kind without a Go type.
func askForView[V Object](
	f *Factory, as form, kind schema.GroupVersionKind, s Selection, whole runtime.Object,
) (*Informer[V], error) {
	if err := source.CheckView(as.typ, whole); err != nil {
		return nil, err
	}
	if len(s.Drop) > 0 {
		return nil, fmt.Errorf("%w: Drop is set: a view has what it declares, remove Drop",
			ErrInvalidSelection)
	}
	as.verb = "View"
	if whole == nil {
		as.verb = "UncheckedView"
	}
	resource := resourceOf(kind)
	newView := func() V { return reflect.New(as.typ.Elem()).Interface().(V) }
	return ask(f, as, resource, s, func(o source.RESTOptions) source.Source[V] {
		return source.NewView(f.client, resource, newView, whole, o)
	})
}

// Meta is the metadata that each view has: what informers need of every object. Embed it with the
// tag `json:"metadata"`. More metadata is declared in a struct that embeds Meta with the tag
// `json:",inline"`, beside its fields.
//
// It is read-only. It is no metav1.Object: nothing that writes to objects takes a view.
type Meta struct {
	Name              string                  `json:"name"`
	Namespace         string                  `json:"namespace"`
	UID               types.UID               `json:"uid"`
	ResourceVersion   string                  `json:"resourceVersion"`
	Generation        int64                   `json:"generation"`
	DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
	Labels            map[string]string       `json:"labels"`
	OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
	Finalizers        []string                `json:"finalizers"`
}

// GetNamespace returns the namespace, "" for an object without one.
func (m *Meta) GetNamespace() string { return m.Namespace }

// GetName returns the name.
func (m *Meta) GetName() string { return m.Name }

// GetUID returns the UID.
func (m *Meta) GetUID() types.UID { return m.UID }

// GetResourceVersion returns the version of this state.
func (m *Meta) GetResourceVersion() string { return m.ResourceVersion }

// GetGeneration returns the generation, 0 for a type without generations.
func (m *Meta) GetGeneration() int64 { return m.Generation }

// GetDeletionTimestamp returns when the object is to be deleted, nil if it is not.
func (m *Meta) GetDeletionTimestamp() *metav1.Time { return m.DeletionTimestamp }

// GetLabels returns the labels, which must not be changed.
func (m *Meta) GetLabels() map[string]string { return m.Labels }

// GetOwnerReferences returns the owners, which must not be changed.
func (m *Meta) GetOwnerReferences() []metav1.OwnerReference { return m.OwnerReferences }

// GetFinalizers returns the finalizers, which must not be changed.
func (m *Meta) GetFinalizers() []string { return m.Finalizers }

// Reference returns a reference to the object, as a recorder of events takes it. A view does not
// have its kind.
func (m *Meta) Reference(kind schema.GroupVersionKind) *corev1.ObjectReference {
	apiVersion, name := kind.ToAPIVersionAndKind()
	return &corev1.ObjectReference{
		APIVersion: apiVersion, Kind: name, Namespace: m.Namespace, Name: m.Name,
		UID: m.UID, ResourceVersion: m.ResourceVersion,
	}
}
