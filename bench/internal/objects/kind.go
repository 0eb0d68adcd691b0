package objects

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is what this package makes.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is a kind of objects, by the plural name of its resource or what is said of it.
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

// Resource returns group, version and plural name of the kind.
func (k Kind) Resource() schema.GroupVersionResource {
	name := k
	if k == UnlikePods {
		name = Pods
	}
	return k.GroupVersionKind().GroupVersion().WithResource(string(name))
}

// GroupVersionKind returns what objects of the kind have as apiVersion and kind.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	switch k {
	case Pods, UnlikePods:
		return schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	case Deployments:
		return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	case ConfigMaps:
		return schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	default:
		return schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Widget"}
	}
}

// Path returns the path of the resource on a server.
func (k Kind) Path() string {
	r := k.Resource()
	if r.Group == "" {
		return "/api/" + r.Version + "/" + r.Resource
	}
	return "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource
}

// New returns the object of a number, from 0 on. It panics on a kind that is none of the
// constants.
func (k Kind) New(number int) Object {
	switch k {
	case Pods:
		return Pod(number)
	case UnlikePods:
		return UnlikePod(number)
	case Deployments:
		return Deployment(number)
	case ConfigMaps:
		return ConfigMap(number)
	case Widgets:
		return Widget(number)
	}
	panic(fmt.Sprintf("objects: no kind %q: use one of the constants", string(k)))
}
