package objects

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
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
	// Widgets are objects of a custom resource, as maps. Servers have no protobuf for them.
	Widgets Kind = "widgets"
	// Databases are objects of a custom resource, in Go structs.
	Databases Kind = "databases"
	// UnlikeDatabases are databases that have nothing in common.
	UnlikeDatabases Kind = "unlike databases"
)

// DatabasesOf returns one of DatabaseTypes kinds, each of a custom resource of its own. The first
// is Databases.
func DatabasesOf(number int) Kind {
	if number == 0 {
		return Databases
	}
	return Kind(fmt.Sprintf("%s%d", Databases, number))
}

// description describes a kind.
type description struct {
	group, kind, resource string
	object                func(number int) Object
}

// customGroup is the group of the custom resources.
const customGroup = "shop.example.com"

// kinds describes the kinds.
var kinds = describe()

func describe() map[Kind]description {
	all := map[Kind]description{
		Pods:       {"", "Pod", "pods", func(n int) Object { return Pod(n) }},
		UnlikePods: {"", "Pod", "pods", func(n int) Object { return UnlikePod(n) }},
		Deployments: {
			"apps", "Deployment", "deployments", func(n int) Object { return Deployment(n) },
		},
		ConfigMaps: {"", "ConfigMap", "configmaps", func(n int) Object { return ConfigMap(n) }},
		Widgets:    {customGroup, "Widget", "widgets", func(n int) Object { return Widget(n) }},
	}
	for number, of := range databaseTypes {
		kind := strings.Replace(string(DatabasesOf(number)), "databases", "Database", 1)
		all[DatabasesOf(number)] = description{
			customGroup, kind, string(DatabasesOf(number)),
			func(n int) Object { return of.database(kind, 1_000*number, n) },
		}
	}
	unlike := all[Databases]
	unlike.object = func(n int) Object { return unlikeDatabase(all[Databases].object(n), n) }
	all[UnlikeDatabases] = unlike
	return all
}

// Scheme returns a scheme with all kinds but Widgets.
func Scheme() *runtime.Scheme {
	all := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(all))
	gv := schema.GroupVersion{Group: customGroup, Version: "v1"}
	for number, of := range databaseTypes {
		kind := DatabasesOf(number).GroupVersionKind().Kind
		all.AddKnownTypeWithName(gv.WithKind(kind), of.empty)
		all.AddKnownTypeWithName(gv.WithKind(kind+"List"), of.list)
	}
	metav1.AddToGroupVersion(all, gv)
	return all
}

// Resource returns group, version and plural name of the kind.
func (k Kind) Resource() schema.GroupVersionResource {
	return k.GroupVersionKind().GroupVersion().WithResource(kinds[k].resource)
}

// GroupVersionKind returns group, version and kind of its objects.
func (k Kind) GroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: kinds[k].group, Version: "v1", Kind: kinds[k].kind}
}

// IsCustom reports whether the kind is a custom resource.
func (k Kind) IsCustom() bool { return kinds[k].group == customGroup }

// Path returns the path of the resource on a server.
func (k Kind) Path() string {
	if kinds[k].group == "" {
		return "/api/v1/" + kinds[k].resource
	}
	return "/apis/" + kinds[k].group + "/v1/" + kinds[k].resource
}

// New returns the object of a number, from 0 on.
func (k Kind) New(number int) Object { return kinds[k].object(number) }
