package apisim

import (
	"maps"

	"github.com/tidwall/btree"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Snapshot is the state of a server at a moment: its resources, their objects, and the
// version. It costs little to take and to keep.
type Snapshot struct {
	server    *Server
	version   uint64
	resources map[schema.GroupVersionResource]*resource
	objects   map[*collection]*btree.Map[string, object]
	marks     map[*collection]marks
}

// marks are what a collection says of itself beside its objects.
type marks struct{ removed, terminating bool }

// Snapshot returns the present state.
func (s *Server) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := &Snapshot{
		server: s, version: s.version, resources: maps.Clone(s.resources),
		objects: make(map[*collection]*btree.Map[string, object]), marks: make(map[*collection]marks),
	}
	for _, r := range s.resources {
		if _, done := taken.objects[r.collection]; !done {
			taken.objects[r.collection] = r.objects.Copy()
			taken.marks[r.collection] = marks{r.removed, r.terminating}
		}
	}
	return taken
}

// Rewind restores a snapshot, as a cluster whose storage is restored from a backup:
// what was written since is gone without an event, and resource versions begin again
// from that of the snapshot, so that later writes have versions that clients have seen
// before. All connections are cut, and the past cannot be watched. The snapshot must be
// of this server; it may be restored again.
func (s *Server) Rewind(to *Snapshot) {
	if to.server != s {
		panic("apisim: the snapshot is of another server")
	}
	s.cut()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.resources {
		if to.resources[r.gvr()] != r {
			r.retired = true
			r.remove(to.version)
		}
	}
	s.resources = maps.Clone(to.resources)
	s.advanceLocked()
	s.version = to.version
	for _, r := range s.resources {
		r.retired = false
	}
	for held, objects := range to.objects {
		held.objects = *objects.Copy()
		held.removed, held.terminating = to.marks[held].removed, to.marks[held].terminating
		held.forget(to.version)
		held.wake()
	}
}

// Objects returns how many objects the snapshot holds.
func (t *Snapshot) Objects() int {
	count := 0
	for _, objects := range t.objects {
		count += objects.Len()
	}
	return count
}
