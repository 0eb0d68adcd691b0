package ctrlruntime_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/apisim"
)

// widgetVersion is the group and version of a custom type, which the server has in JSON alone.
var widgetVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

func widgets() apisim.Resource {
	return apisim.Resource{
		Group: widgetVersion.Group, Version: widgetVersion.Version, Name: "widgets",
		Kind: "Widget", Singular: "widget", Namespaced: true,
	}
}

// allowLists is a type whose kind ends in List, as ManagedPrefixList of a provider does, and whose
// plural nobody guesses.
func allowLists() apisim.Resource {
	return apisim.Resource{
		Group: widgetVersion.Group, Version: widgetVersion.Version, Name: "allowed",
		Kind: "AllowList", Singular: "allowlist", Namespaced: true,
	}
}

// Widget is a custom type.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              WidgetSpec `json:"spec"`
}

// WidgetSpec is the specification of a widget.
type WidgetSpec struct {
	Size  int      `json:"size"`
	Parts []string `json:"parts,omitempty"`
}

// DeepCopyObject returns a copy.
func (w *Widget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Parts = slices.Clone(w.Spec.Parts)
	return &out
}

// WidgetList is a list of widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Widget `json:"items"`
}

// DeepCopyObject returns a copy.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Widget, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Widget)
	}
	return &out
}

// AllowList is an object, and no list.
type AllowList struct {
	Widget `json:",inline"`
}

// DeepCopyObject returns a copy.
func (w *AllowList) DeepCopyObject() runtime.Object {
	return &AllowList{*w.Widget.DeepCopyObject().(*Widget)}
}

// AllowListList is a list of them.
type AllowListList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []AllowList `json:"items"`
}

// DeepCopyObject returns a copy.
func (l *AllowListList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]AllowList, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*AllowList)
	}
	return &out
}
