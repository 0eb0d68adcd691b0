package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionAvailable is the type of the condition that is true while all servers are ready.
const ConditionAvailable = "Available"

// MemcachedSpec is the wanted state of a Memcached.
type MemcachedSpec struct {
	// Size is the number of servers.
	//
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16
	// +kubebuilder:default=1
	// +optional
	Size *int32 `json:"size,omitempty"`
}

// MemcachedStatus is the observed state of a Memcached.
type MemcachedStatus struct {
	// Ready is the number of servers that are ready.
	//
	// +optional
	Ready int32 `json:"ready"`
	// Conditions has the condition Available.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Memcached is a number of memcached servers, which a Deployment runs.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Size",type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.ready`
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is the wanted state.
	Spec MemcachedSpec `json:"spec"`
	// Status is the observed state.
	//
	// +optional
	Status MemcachedStatus `json:"status,omitzero"`
}

// MemcachedList is a list of Memcacheds.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items are the Memcacheds.
	Items []Memcached `json:"items"`
}
