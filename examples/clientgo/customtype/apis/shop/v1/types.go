package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Widget is what the shop makes.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   WidgetSpec   `json:"spec"`
	Status WidgetStatus `json:"status,omitzero"`
}

// WidgetSpec is what is ordered.
type WidgetSpec struct {
	// Color is a word such as "red".
	Color string `json:"color"`
	// Pieces is how many are wanted.
	Pieces int32 `json:"pieces"`
}

// WidgetStatus is what was made of the order.
type WidgetStatus struct {
	// Made is how many pieces exist.
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
