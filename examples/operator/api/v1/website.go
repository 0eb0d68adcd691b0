package v1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Website is a page that a number of web servers show.
type Website struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// Spec is the desired state.
	Spec WebsiteSpec `json:"spec"`
	// Status is the observed state; the operator writes it.
	Status WebsiteStatus `json:"status,omitzero"`
}

// WebsiteSpec is the desired state of a website.
type WebsiteSpec struct {
	// Page is the HTML that is shown.
	Page string `json:"page"`
	// Replicas is the number of web servers that show it; 0 means none.
	Replicas int32 `json:"replicas"`
}

// WebsiteStatus is the observed state of a website.
type WebsiteStatus struct {
	// ObservedGeneration is the generation of the website that the rest is about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// ConfigMap is the name of the config map that holds the page.
	ConfigMap string `json:"configMap,omitempty"`
	// ReadyReplicas is the number of ready web servers.
	ReadyReplicas int32 `json:"readyReplicas,omitempty"`
}

// WebsiteList is a list of websites.
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	// Items are the websites.
	Items []Website `json:"items"`
}
