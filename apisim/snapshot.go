package apisim

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Snapshot is the state of a server at a moment: its resources, their objects, and the version. It
// is cheap to take and to keep.
type Snapshot struct {
	server             *Server
	version            uint64
	resources, removed map[schema.GroupVersionResource]*resource
	collections        map[*collection]collectionState
}

// collectionState is the part of a collection that a snapshot keeps.
type collectionState struct {
	objects     *objectTree
	terminating bool
}

// Snapshot returns the present state.
func (s *Server) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := &Snapshot{
		server: s, version: s.version, resources: maps.Clone(s.resources), removed: maps.Clone(s.removed),
		collections: make(map[*collection]collectionState),
	}
	for _, r := range s.resources {
		if _, done := taken.collections[r.collection]; !done {
			taken.collections[r.collection] = collectionState{r.objects.Copy(), r.terminating}
		}
	}
	return taken
}

// Objects returns the number of objects in the snapshot.
func (t *Snapshot) Objects() int {
	count := 0
	for _, c := range t.collections {
		count += c.objects.Len()
	}
	return count
}

// Rewind restores a snapshot, like a cluster whose storage is restored from a backup. Later writes
// are undone without an event. Resource versions continue from that of the snapshot, so that later
// writes have versions that clients have seen before. All connections are cut, the history is
// empty, and instances start again. The snapshot must be of this server; it may be restored again.
func (s *Server) Rewind(to *Snapshot) {
	if to.server != s {
		panic("apisim: the snapshot is of another server")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer cut(s.frontendsLocked()...) // before anyone can ask
	for _, r := range s.resources {
		if to.resources[r.gvr()] != r {
			r.remove(to.version)
		}
	}
	s.resources, s.removed = maps.Clone(to.resources), maps.Clone(to.removed)
	s.advanceLocked()
	s.version = to.version
	for _, r := range s.instances {
		r.restartLocked()
	}
	for c, state := range to.collections {
		c.objects = *state.objects.Copy()
		c.terminating = state.terminating
		c.compact(to.version)
		c.wake()
	}
}
