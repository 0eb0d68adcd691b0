package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the name of the API group.
const Group = "web.example.com"

// GroupVersion returns the API group with the version of this package.
func GroupVersion() schema.GroupVersion { return schema.GroupVersion{Group: Group, Version: "v1"} }

// AddToScheme makes a scheme know the types of this package. It always returns nil; the error is
// there because [runtime.SchemeBuilder] wants one.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion(), &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
