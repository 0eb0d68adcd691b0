package objects

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is an object of any kind.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is a kind of objects, by the plural name of its resource.
type Kind string

// The kinds.
const (
	// Pods are Pod objects.
	Pods Kind = "pods"
	// UnlikePods are pods that have nothing in common.
	UnlikePods Kind = "unlike pods"
	// Deployments are Deployment objects.
	Deployments Kind = "deployments"
	// ConfigMaps are ConfigMap objects.
	ConfigMaps Kind = "configmaps"
	// Widgets are objects of a custom resource. Servers have no protobuf for them.
	Widgets Kind = "widgets"
)

// kinds describes the kinds.
var kinds = map[Kind]struct {
	group, kind, resource string
	object                func(number int) Object
}{
	Pods:        {"", "Pod", "pods", func(n int) Object { return Pod(n) }},
	UnlikePods:  {"", "Pod", "pods", func(n int) Object { return UnlikePod(n) }},
	Deployments: {"apps", "Deployment", "deployments", func(n int) Object { return Deployment(n) }},
	ConfigMaps:  {"", "ConfigMap", "configmaps", func(n int) Object { return ConfigMap(n) }},
	Widgets:     {"shop.example.com", "Widget", "widgets", func(n int) Object { return Widget(n) }},
}

// Resource returns group, version and plural name of the kind.
func (k Kind) Resource() schema.GroupVersionResource {
	return k.GroupVersionKind().GroupVersion().WithResource(kinds[k].resource)
}

// GroupVersionKind returns group, version and kind of its objects.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: kinds[k].group, Version: "v1", Kind: kinds[k].kind}
}

// Path returns the path of the resource on a server.
func (k Kind) Path() string {
	if kinds[k].group == "" {
		return "/api/v1/" + kinds[k].resource
	}
	return "/apis/" + kinds[k].group + "/v1/" + kinds[k].resource
}

// New returns the object of a number, from 0 on.
func (k Kind) New(number int) Object { return kinds[k].object(number) }
