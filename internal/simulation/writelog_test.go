package simulation

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/source"
)

// writeLog holds the writes since the last audit.
type writeLog struct {
	mu      sync.Mutex // guards the rest
	changes []change
	// gaps are the resources with changes without an event since then.
	gaps map[schema.GroupVersionResource]bool
}

// change is a write.
type change struct {
	resource             schema.GroupVersionResource
	namespace, name, uid string
	before, after        *string // the label n, nil where there is no object
}

func (l *writeLog) note(c change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, c)
}

// addGaps notes that objects of some resources changed without events.
func (l *writeLog) addGaps(resources ...schema.GroupVersionResource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, resource := range resources {
		l.gaps[resource] = true
	}
}

func (l *writeLog) hasGap(resource schema.GroupVersionResource) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gaps[resource]
}

func (l *writeLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes, l.gaps = nil, map[schema.GroupVersionResource]bool{}
}

// deleted reports whether an object was deleted.
func (l *writeLog) deleted(uid string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.changes, func(c change) bool { return c.uid == uid && c.after == nil })
}

// edges returns which objects began and ended in a scope, by key.
func (l *writeLog) edges(s scope) map[string][]edge {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string][]edge{}
	for _, c := range l.changes {
		was := c.before != nil && s.holds(c.resource, c.namespace, c.name, c.uid, *c.before)
		is := c.after != nil && s.holds(c.resource, c.namespace, c.name, c.uid, *c.after)
		if was != is {
			key := source.Key(c.namespace, c.name)
			found[key] = append(found[key], edge{is, c.uid})
		}
	}
	return found
}
