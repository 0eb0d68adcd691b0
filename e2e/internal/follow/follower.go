package follow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
)

// State is the identity of each object, UID@version, by namespace/name.
type State map[string]string

// Add adds an object.
func (s State) Add(obj metav1.Object) { s[keyOf(obj)] = identityOf(obj) }

func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

func identityOf(obj metav1.Object) string {
	return string(obj.GetUID()) + "@" + obj.GetResourceVersion()
}

// Follower is an informer with a handler.
type Follower struct {
	// Name says of what kind the informer is.
	Name string
	// Namespaces are those it follows; none means all.
	Namespaces []string
	// Cache returns the state of the informer's cache.
	Cache func() State
	// Health returns the health of the informer.
	Health func() tidings.Health

	add, remove func(namespace string) error // nil if Namespaces cannot change

	mu         sync.Mutex // guards what follows
	state      State      // the sum of the handler's events
	impossible []string   // events that contradict the state before them
}

// limit bounds the lists of differences and of impossible events.
const limit = 20

// added, updated and deleted are the handler.
func (f *Follower) added(obj metav1.Object) { f.set(keyOf(obj), "", identityOf(obj)) }

func (f *Follower) updated(before, after metav1.Object) {
	f.set(keyOf(after), identityOf(before), identityOf(after))
}

// set applies an add, for which before is "", or an update.
func (f *Follower) set(key, before, after string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if has := f.state[key]; has != before {
		f.refuseLocked("%s becomes %q after %q, but it was %q", key, after, before, has)
	}
	f.state[key] = after
}

func (f *Follower) deleted(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.state[key] == "" {
		f.refuseLocked("%s is deleted, but it was not there", key)
	}
	delete(f.state, key)
}

func (f *Follower) refuseLocked(format string, args ...any) {
	if len(f.impossible) < limit {
		f.impossible = append(f.impossible, fmt.Sprintf(format, args...))
	}
}

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
// handler's events, and the events that were impossible.
func (f *Follower) Check(server State) []string {
	if len(f.Namespaces) > 0 {
		server = maps.Clone(server)
		maps.DeleteFunc(server, func(key, _ string) bool {
			namespace, _, _ := strings.Cut(key, "/")
			return !slices.Contains(f.Namespaces, namespace)
		})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Concat(f.impossible, differences("cache", f.Cache(), server),
		differences("handler", f.state, server))
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
