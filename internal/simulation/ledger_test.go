package simulation

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ledger holds what was written since the last audit.
type ledger struct {
	mu      sync.Mutex // guards the rest
	changes []change
	// torn are resources whose objects went or came without an event since then.
	torn map[schema.GroupVersionResource]bool
}

// change is a write that has been done. n is "" where there is no object.
type change struct {
	resource             schema.GroupVersionResource
	namespace, name, uid string
	before, after        *string // the label n, nil where there is no object
}

func (l *ledger) note(c change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes = append(l.changes, c)
}

// tear notes that events alone do not tell what became of a resource.
func (l *ledger) tear(resources ...schema.GroupVersionResource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, resource := range resources {
		l.torn[resource] = true
	}
}

func (l *ledger) isTorn(resource schema.GroupVersionResource) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.torn[resource]
}

func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changes, l.torn = nil, map[schema.GroupVersionResource]bool{}
}

// edges returns which objects began and ended for whoever holds a scope, by key.
func (l *ledger) edges(s scope) map[string][]edge {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string][]edge{}
	for _, c := range l.changes {
		was := c.before != nil && s.holds(c.resource, c.namespace, c.name, *c.before)
		is := c.after != nil && s.holds(c.resource, c.namespace, c.name, *c.after)
		if was != is {
			key := c.namespace + "/" + c.name
			found[key] = append(found[key], edge{is, c.uid})
		}
	}
	return found
}
