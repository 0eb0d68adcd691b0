// Package v1 is version v1 of the API group shop.example.com, whose one resource are
// widgets: the types Widget and WidgetList, and AddToScheme, which makes them known.
//
// +k8s:deepcopy-gen=package
// +groupName=shop.example.com
package v1
