package apisim

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RestartOptions are the choices of [Server.Restart].
type RestartOptions struct {
	// KeepHistory keeps the past events, so that watches resume. Without it, every version before
	// the restart is gone, as after the restart of a real server, whose watch cache is empty at
	// first.
	KeepHistory bool
	// Down is the time for which connections are refused.
	Down time.Duration
}

// Restart cuts all connections, those of instances included, and refuses new ones for a time.
// Objects and the resource version stay.
func (s *Server) Restart(o RestartOptions) {
	s.pipe.setDown(time.Now().Add(o.Down))
	s.mu.Lock()
	defer s.mu.Unlock()
	if !o.KeepHistory {
		s.compactLocked()
	}
	cut(s.frontendsLocked()...)
}

// CutConnections closes every open connection, those of instances included, also in the middle of a
// frame. A later request of a client of [Server.Config] uses a new connection. A client of a TCP
// address may still use one that it believes to be open.
func (s *Server) CutConnections() { cut(s.frontends()...) }

// SetAvailable makes the server and its instances unreachable, cutting all connections, or
// reachable again.
func (s *Server) SetAvailable(available bool) {
	if available {
		s.pipe.setDown(time.Time{})
		return
	}
	s.pipe.setDown(forGood)
	s.CutConnections()
}

// Compact drops the events up to now: a watch or a continue token from before is answered with 410
// Gone. Watches that have sent all events go on.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compactLocked()
}

func (s *Server) compactLocked() {
	for _, r := range s.resources {
		r.compact(s.version)
	}
}

// RefuseStreamedLists makes the server answer sendInitialEvents as a server without the WatchList
// feature does, or makes it stream again.
func (s *Server) RefuseStreamedLists(refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuseStreams = refuse
}

// RefuseMediaTypeParameters makes the server, or a proxy before it, refuse what Kubernetes ignores:
// a media type of an Accept header that has an unknown parameter. Without another media type the
// answer is 406 Not Acceptable. false makes it ignore unknown parameters again.
func (s *Server) RefuseMediaTypeParameters(refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuseParameters = refuse
}

// RemoveResource makes a resource unknown, in all its versions: its objects disappear without an
// event, its watches end, and requests are answered with 404. Clients see the same after the
// deletion of a CustomResourceDefinition.
func (s *Server) RemoveResource(gvr schema.GroupVersionResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moveVersions(s.resources, s.removed, gvr, func(c *collection) { c.remove(s.version) })
}

// RestoreResource brings a removed resource back, without objects.
func (s *Server) RestoreResource(gvr schema.GroupVersionResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moveVersions(s.removed, s.resources, gvr, func(c *collection) {
		s.advanceLocked()
		c.compact(s.version)
	})
}

// moveVersions moves all versions of a resource, if it is in from, and calls f with its collection.
func moveVersions(from, to map[schema.GroupVersionResource]*resource,
	gvr schema.GroupVersionResource, f func(*collection)) {
	moved, ok := from[gvr]
	if !ok {
		return
	}
	for version, r := range from {
		if r.collection == moved.collection {
			delete(from, version)
			to[version] = r
		}
	}
	f(moved.collection)
}
