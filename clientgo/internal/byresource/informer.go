package byresource

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/clientgo/internal/sharedinformer"
	"github.com/tidings-go/tidings/source"
)

// Making is what an informer is made of.
type Making struct {
	Resource     schema.GroupVersionResource
	ResyncPeriod time.Duration
	Indexers     cache.Indexers
	Options      Options
	// Example is an object as they are held.
	Example runtime.Object
	// Reads is the client of a source of our own, which Open opens; without one, ListWatch
	// is read.
	Reads     *source.Client
	Open      func(c *source.Client, of source.Resource, o source.RESTOptions) source.Source[any]
	ListWatch cache.ListerWatcher
}

// NewInformer makes an informer.
func NewInformer(m Making) cache.SharedIndexInformer {
	o := sharedinformer.Options{
		Example: m.Example, Description: m.Resource.String(),
		ResyncPeriod: m.ResyncPeriod, Indexers: m.Indexers,
	}
	if m.Reads != nil && m.isPath() {
		o = m.fromSource(o)
	} else {
		o = m.fromClient(o)
	}
	informer := sharedinformer.New(o)
	if m.Options.Transform != nil {
		if err := informer.SetTransform(m.Options.Transform); err != nil {
			panic(fmt.Sprintf("byresource: a new informer of %s refused its transform: %v", m.Resource, err)) // cannot be: it has not started
		}
	}
	return informer
}

// isPath reports whether the namespace and the resource can stand in a path. If they cannot,
// client-go's client says what is wrong with them.
func (m *Making) isPath() bool {
	for _, segment := range []string{m.Options.Namespace, m.Resource.Group, m.Resource.Version, m.Resource.Resource} {
		if len(rest.IsValidPathSegmentName(segment)) > 0 {
			return false
		}
	}
	return m.Resource.Resource != "" && m.Resource.Version != ""
}

// fromSource reads through our own source. What a transform gets, which may change it, has
// strings in common at most.
func (m *Making) fromSource(o sharedinformer.Options) sharedinformer.Options {
	of := source.Resource{Group: m.Resource.Group, Version: m.Resource.Version, Name: m.Resource.Resource}
	if m.Options.Namespace != "" {
		// Whether that is so is for the server to say, as with client-go's clients, and not
		// worth a request.
		of.Scope = source.ScopeNamespaced
	}
	o.Sharing = m.Options.sharing(m.Resource)
	open := func(what source.Sharing) source.Source[any] {
		return m.Open(m.Reads, of, source.RESTOptions{
			Transport: source.Transport{Sharing: what},
			Namespace: m.Options.Namespace, Tweak: m.Options.Tweak,
			Table: o.Sharing.Among, Drop: m.Options.Drop.of(m.Resource),
		})
	}
	o.Source, o.Unshared = open(o.Sharing.AtMost), open(max(o.Sharing.AtMost, source.ShareStrings))
	return o
}

// fromClient reads through a client of client-go's. What it has decoded is cleared, and
// shared, after that.
func (m *Making) fromClient(o sharedinformer.Options) sharedinformer.Options {
	clear, err := clearing(m.Example, m.Options.Drop.of(m.Resource))
	if err != nil {
		panic(fmt.Sprintf("byresource: what is left out of %s was not checked: %v", m.Resource, err))
	}
	lw := listwatch.Clearing(m.ListWatch, clear)
	return sharedinformer.FromListerWatcher(listwatch.WithSharing(lw, m.Options.sharing(m.Resource)), o)
}
