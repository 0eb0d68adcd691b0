package factory

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/clientgo/internal/sharedinformer"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// Reading describes the objects that informers read, and the parts that they share.
type Reading struct {
	// Namespace is the one namespace to read, "" for all.
	Namespace string
	// Tweak changes the options of every list and watch; nil leaves them.
	Tweak func(*metav1.ListOptions)
	// Sharing limits the parts that objects share, and Table is the table of the informers that
	// share with each other. Nil is a table of the client; without a client, of the informer.
	Sharing source.Sharing
	Table   *source.Table
	// Recorder records the lists and watches of the informers; nil records nothing.
	Recorder source.Recorder
	// Slots are the slots whose objects the informers have; nil is all objects.
	Slots *slot.Holding
	// NoServerDrop keeps the server from leaving managed fields out.
	NoServerDrop bool
}

// Options are the options of a factory with keys K. The zero value reads all objects and leaves
// them unchanged.
type Options[K comparable] struct {
	Reading
	// Transform replaces objects before they are cached; nil leaves them.
	Transform cache.TransformFunc
	// Drop has the fields that are left out.
	Drop Drop[K]
}

// Spec describes one informer.
type Spec struct {
	Reading
	Resource source.Resource
	Drop     []string // paths of fields
	// Open opens our own source. If it is nil, ListWatch is used, which applies Namespace and
	// Tweak itself.
	Open      func(source.RESTOptions) source.Source[any]
	ListWatch cache.ListerWatcher
	// Informer has the example, the indexes and the resync period.
	Informer sharedinformer.Options
}

// New makes an informer.
func New(s Spec) cache.SharedIndexInformer {
	o := s.Informer
	o.Resource, o.Namespace, o.Slots = s.Resource, s.Namespace, s.Slots
	sharing := listwatch.SharingFor(s.Resource, s.Sharing, s.Table)
	if s.Open == nil {
		lw := listwatch.WithRecorder(listwatch.WithSharing(s.ListWatch, sharing), s.Recorder)
		return sharedinformer.New(sharedinformer.FromListerWatcher(lw, o, remover(o.Example, s.Drop)))
	}
	// A type whose scope only the server knows may have no namespaces.
	o.ByDefault = s.Namespace != "" && s.Resource.Scope == source.ScopeUnknown
	o.Open = func(namespace string, most source.Sharing) source.Source[any] {
		if !o.ByDefault {
			namespace = s.Namespace
		}
		return s.Open(source.RESTOptions{
			Namespace: namespace, ClusterScoped: o.ByDefault && namespace == "",
			Tweak: s.Tweak, Drop: s.Drop,
			Transport: source.Transport{
				Sharing: most, Table: s.Table, NoServerDrop: s.NoServerDrop,
			},
		})
	}
	o.Sharing, o.Recorder = sharing, s.Recorder
	return sharedinformer.New(o)
}
