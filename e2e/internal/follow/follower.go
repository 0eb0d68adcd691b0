package follow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/tidingstest"
)

// State is the state of each object, as [follow.StateOf] returns it, by namespace/name.
type State map[string]string

// Add adds an object.
func (s State) Add(obj tidings.Object) {
	s[obj.GetNamespace()+"/"+obj.GetName()] = follow.StateOf(obj)
}

// Version returns the resource version of an object, "" without the object.
func (s State) Version(key string) string { return follow.Version(s[key]) }

// Follower is an informer with a handler.
type Follower struct {
	// Name is the name of the kind of the informer.
	Name string
	// Namespaces are the followed namespaces; none means all.
	Namespaces []string

	tidingstest.Informer
	handler     follow.Follower
	add, remove func(namespace string) error // nil if Namespaces cannot change
}

// limit bounds the list of differences.
const limit = 20

// Rewind allows the server to go back to earlier states.
func (f *Follower) Rewind() { f.handler.Rewind(true) }

// FailedAt returns when the informer has last failed to reach the server: the earliest of
// its watches, if it has several.
func (f *Follower) FailedAt() time.Time {
	h := f.Health()
	at := h.LastErrorAt
	for _, watch := range h.Namespaces {
		if watch.LastErrorAt.Before(at) {
			at = watch.LastErrorAt
		}
	}
	return at
}

// Follow makes a running informer follow these namespaces, and no others.
func (f *Follower) Follow(namespaces ...string) error {
	if len(f.Namespaces) == 0 || f.add == nil {
		return fmt.Errorf("%s cannot change its namespaces", f.Name)
	}
	for _, n := range namespaces {
		if err := f.add(n); err != nil {
			return err
		}
	}
	for _, n := range f.Namespaces {
		if slices.Contains(namespaces, n) {
			continue
		}
		if err := f.remove(n); err != nil {
			return err
		}
	}
	f.Namespaces = namespaces
	return nil
}

// Check returns the differences between the server's state, the cache, and the sum of the
// handler's events, and the events that the contract does not allow.
func (f *Follower) Check(server State) []string {
	if len(f.Namespaces) > 0 {
		server = maps.Clone(server)
		maps.DeleteFunc(server, func(key, _ string) bool {
			namespace, _, _ := strings.Cut(key, "/")
			return !slices.Contains(f.Namespaces, namespace)
		})
	}
	cached := State{}
	for _, obj := range f.List() {
		cached.Add(obj)
	}
	f.handler.Take()
	return slices.Concat(f.handler.Wrong(), differences("cache", cached, server),
		differences("handler", f.handler.Held(), server))
}

// differences compares the state that something has with the server's.
func differences(owner string, has, server State) (all []string) {
	keys := maps.Clone(server)
	maps.Copy(keys, has)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if has[key] != server[key] && len(all) < limit {
			all = append(all,
				fmt.Sprintf("%s of the %s is %q, the server's is %q", key, owner, has[key], server[key]))
		}
	}
	return all
}
