package apisim

import (
	"fmt"
	"strings"

	"github.com/tidwall/btree"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/builtin"
)

// Resource describes a resource that is not built in, for [Server.Register].
type Resource struct {
	// Group, Version and Name, the plural, are its path; Kind is the kind of its
	// objects.
	Group, Version, Name, Kind string
	// Singular is the name of one object; the default is Kind in lower case.
	Singular string
	// ShortNames are abbreviations, Categories groups such as "all".
	ShortNames, Categories []string
	// Namespaced is whether its objects have a namespace.
	Namespaced bool
	// HasStatus is whether it has a status subresource.
	HasStatus bool
}

// resource is one collection of the server, with the events of its past. The
// server's lock guards what is below removed.
type resource struct {
	Resource
	typed bool // objects are Go types of the scheme, not maps

	removed bool
	objects btree.Map[string, object] // by namespace/name
	// history holds the events after version floor, the oldest first.
	history []*event
	floor   uint64
	// dropped counts the events that are no longer in history, so that a watch's
	// position stays what it is.
	dropped int
	// compacted is how many of them were forgotten by compaction: a watch whose
	// position is before them is told so.
	compacted int
	changed   chan struct{} // closed at the next event
}

func (r *resource) gvr() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Name}
}

func (r *resource) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

func (r *resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Name}
}

// builtinResources returns the built-in resources that today's servers have and
// whose Go types the scheme knows.
func builtinResources(scheme *runtime.Scheme) map[schema.GroupVersionResource]*resource {
	resources := make(map[schema.GroupVersionResource]*resource)
	for _, b := range builtin.All() {
		if b.Removed == "" && scheme.Recognizes(b.GVK()) {
			resources[b.GVR()] = &resource{typed: true, changed: make(chan struct{}), Resource: Resource{
				Group: b.Group, Version: b.Version, Name: b.Resource, Kind: b.Kind,
				Singular: b.Singular(), ShortNames: b.ShortNames(), Categories: b.Categories(),
				Namespaced: b.Namespaced, HasStatus: b.HasStatus,
			}}
		}
	}
	return resources
}

// Register adds a resource whose objects are held as maps, which stands for a
// custom resource.
func (s *Server) Register(r Resource) error {
	if r.Version == "" || r.Name == "" || r.Kind == "" {
		return fmt.Errorf("apisim: a resource needs a version, a name and a kind, got %+v", r)
	}
	if r.Singular == "" {
		r.Singular = strings.ToLower(r.Kind)
	}
	added := &resource{Resource: r, changed: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, exists := s.resources[added.gvr()]; exists {
		return fmt.Errorf("apisim: the resource %v exists already", added.gvr())
	}
	added.floor = s.version
	s.resources[added.gvr()] = added
	return nil
}

// wake tells the watches that something has happened.
func (r *resource) wake() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// record appends an event.
func (r *resource) record(e *event, limit int) {
	r.history = append(r.history, e)
	if excess := len(r.history) - limit; excess > 0 {
		// A part of the limit at a time, so that appending stays cheap.
		excess = min(len(r.history), excess+limit/10)
		r.floor = r.history[excess-1].version
		r.history = append([]*event(nil), r.history[excess:]...)
		r.dropped += excess
	}
	r.wake()
}

// forget drops the events up to a version.
func (r *resource) forget(version uint64) {
	r.dropped += len(r.history)
	r.compacted = r.dropped
	r.history = nil
	r.floor = version
}

func (r *resource) remove(version uint64) {
	r.removed = true
	r.objects.Clear()
	r.forget(version)
	r.wake()
}

func (r *resource) restore(version uint64) {
	r.removed = false
	r.forget(version)
}

// at returns the objects as they were at a version, if the history reaches back to
// it: the present ones with the later events undone.
func (r *resource) at(version uint64) (objects *btree.Map[string, object], ok bool) {
	if version < r.floor {
		return nil, false
	}
	objects = r.objects.Copy()
	for i := len(r.history) - 1; i >= 0 && r.history[i].version > version; i-- {
		e := r.history[i]
		if e.before == nil {
			objects.Delete(e.key)
		} else {
			objects.Set(e.key, e.before)
		}
	}
	return objects, true
}
