package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Widget is a product of the shop.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   WidgetSpec   `json:"spec"`
	Status WidgetStatus `json:"status,omitzero"`
}

// WidgetSpec is the order of a widget.
type WidgetSpec struct {
	// Color is a word such as "red".
	Color string `json:"color"`
	// Pieces is the wanted number of pieces.
	Pieces int32 `json:"pieces"`
}

// WidgetStatus is the state of the order.
type WidgetStatus struct {
	// Made is the number of pieces that exist.
	Made int32 `json:"made,omitempty"`
}

// WidgetList is a list of widgets.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Widget `json:"items"`
}
