package apisim

import (
	"net/http"

	"github.com/tidwall/btree"
)

// replica is the state of a server at a moment, to be served until it is caught up.
type replica struct {
	version uint64
	caught  <-chan struct{}
	server  *Server
	objects map[*collection]*btree.Map[string, object]
}

// replicate returns the present state.
func (s *Server) replicate(caught <-chan struct{}) *replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &replica{version: s.version, caught: caught, server: s, objects: make(map[*collection]*btree.Map[string, object], len(s.resources))}
	for _, res := range s.resources {
		if _, done := r.objects[res.collection]; !done {
			r.objects[res.collection] = res.objects.Copy()
		}
	}
	return r
}

// of returns the objects of a resource, none if it was not there.
func (r *replica) of(res *resource) *btree.Map[string, object] {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	return r.ofLocked(res)
}

func (r *replica) ofLocked(res *resource) *btree.Map[string, object] {
	if objects, ok := r.objects[res.collection]; ok {
		return objects.Copy()
	}
	return &btree.Map[string, object]{}
}

// isBehind reports whether the replica has not caught up yet.
func (r *replica) isBehind() bool {
	select {
	case <-r.caught:
		return false
	default:
		return true
	}
}

// lagOf returns the replica that a request is served from, nil if it is the server
// itself.
func lagOf(r *http.Request) *replica {
	if c := callOf(r); c != nil && c.lag != nil && c.lag.isBehind() {
		return c.lag
	}
	return nil
}

// behind reports whether the watch is served from a replica that has not caught up.
func (w *watch) behind() bool {
	if w.lag != nil && !w.lag.isBehind() {
		w.lag = nil
	}
	return w.lag != nil
}

// catchesUp returns what is closed when the replica of the watch has caught up, nil if
// there is none.
func (w *watch) catchesUp() <-chan struct{} {
	if w.lag == nil {
		return nil
	}
	return w.lag.caught
}

// newest returns the version of the newest write.
func (s *Server) newest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}
