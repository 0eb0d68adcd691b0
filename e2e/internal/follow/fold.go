package follow

import (
	"fmt"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// State is the identity of each object, UID@version, by namespace/name.
type State map[string]string

// keyOf and identityOf are what a State has of an object.
func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

func identityOf(obj metav1.Object) string {
	return string(obj.GetUID()) + "@" + obj.GetResourceVersion()
}

// fold is what a handler makes of what it is told. It notes what cannot be: an add of
// what is there, an update or a delete of what is not, an update from another state
// than the last.
type fold struct {
	mu      sync.Mutex // guards the rest
	state   State
	wrong   []string
	deletes int
	events  int
}

// wrongLimit bounds how much of what cannot be is kept.
const wrongLimit = 20

func (f *fold) complain(format string, args ...any) {
	if len(f.wrong) < wrongLimit {
		f.wrong = append(f.wrong, fmt.Sprintf(format, args...))
	}
}

func (f *fold) added(obj metav1.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events++
	key := keyOf(obj)
	if has, there := f.state[key]; there {
		f.complain("add of %s %s, which is there as %s", key, identityOf(obj), has)
	}
	f.state[key] = identityOf(obj)
}

func (f *fold) updated(before, after metav1.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events++
	key := keyOf(after)
	if has := f.state[key]; has != identityOf(before) {
		f.complain("update of %s from %s, which is there as %q", key, identityOf(before), has)
	}
	f.state[key] = identityOf(after)
}

func (f *fold) deleted(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events++
	f.deletes++
	if _, there := f.state[key]; !there {
		f.complain("delete of %s, which is not there", key)
	}
	delete(f.state, key)
}

// snapshot returns the state, and what could not be.
func (f *fold) snapshot() (State, []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.state), append([]string(nil), f.wrong...)
}
