package apisim

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RestartOptions say what a restart of the server loses.
type RestartOptions struct {
	// KeepHistory keeps the events of the past, so that watches resume. Without
	// it, every version before the restart is gone, as after the restart of a
	// real server, whose watch cache begins empty.
	KeepHistory bool
	// Down is how long connections are refused.
	Down time.Duration
}

// Restart cuts all connections and refuses new ones for a while. Objects and the
// resource version stay.
func (s *Server) Restart(o RestartOptions) {
	s.pipe.setAway(false, time.Now().Add(o.Down))
	s.cut()
	if !o.KeepHistory {
		s.Compact()
	}
}

// CutConnections closes every open connection, in the middle of a frame if one is
// being written. A request that clients of [Server.Config] send from then on uses a new
// one; a client of a TCP address may still try one that it believes to be open.
func (s *Server) CutConnections() { s.cut() }

// cut closes all connections, and has the clients in this process forget those that they
// keep for later: net/http sends a write a second time only if nothing of it was sent,
// and a test that writes straight after a cut would find the dead connection now and
// then.
func (s *Server) cut() {
	s.conns.cut()
	s.transport.CloseIdleConnections()
}

// SetAvailable makes the server unreachable, cutting all connections, or reachable
// again.
func (s *Server) SetAvailable(available bool) {
	s.pipe.setAway(!available, time.Time{})
	if !available {
		s.cut()
	}
}

// Compact forgets the events up to now: a watch or a continue token from before is
// answered with 410 Gone. Watches that have been sent everything go on.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.resources {
		r.forget(s.version)
	}
}

// RefuseStreamedLists makes the server answer sendInitialEvents as one without the
// WatchList feature does, or makes it stream again.
func (s *Server) RefuseStreamedLists(refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusing = refuse
}

// RemoveResource makes the server not know a resource any more: its objects are
// gone without an event, its watches end, and requests get 404. This is what the
// deletion of a CustomResourceDefinition looks like to clients.
func (s *Server) RemoveResource(gvr schema.GroupVersionResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.resources[gvr]; ok {
		r.remove(s.version)
	}
}

// RestoreResource brings a removed resource back, without objects.
func (s *Server) RestoreResource(gvr schema.GroupVersionResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.resources[gvr]; ok {
		s.advanceLocked()
		r.restore(s.version)
	}
}
