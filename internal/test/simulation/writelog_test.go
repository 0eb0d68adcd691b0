package simulation

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/source"
)

// writeLog holds the writes since the last audit, and all ends.
type writeLog struct {
	mu      sync.Mutex // guards the rest
	changes []change
	// gaps are the resources with changes without an event since then.
	gaps map[schema.GroupVersionResource]bool
	// ended are the UIDs of all objects that were ever deleted: the list of slots that come may be
	// older than the last audit, and what it holds is then deleted after it.
	ended map[string]bool
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
	if c.after == nil {
		if l.ended == nil {
			l.ended = map[string]bool{}
		}
		l.ended[c.uid] = true
	}
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

// deleted reports whether an object was ever deleted.
func (l *writeLog) deleted(uid string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended[uid]
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
