package follow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings"
)

// Follower is an informer and what its handler was told.
type Follower struct {
	// Name says of what kind it is.
	Name string
	// Namespaces are those it follows; none means all.
	Namespaces []string
	// Cache returns what the informer's cache holds.
	Cache func() State

	fold        *fold
	synced      func() bool
	health      func() tidings.Health
	stop        func()
	add, remove func(namespace string) error // nil if Namespaces cannot change
}

// Told returns what the handler's fold is, and what it was told that cannot be.
func (f *Follower) Told() (State, []string) { return f.fold.snapshot() }

// Synced reports whether the cache holds the first list.
func (f *Follower) Synced() bool { return f.synced() }

// Health returns how the informer is.
func (f *Follower) Health() tidings.Health { return f.health() }

// FailedAt returns when the informer has last failed to reach the server: the earliest of
// its watches, if it has several.
func (f *Follower) FailedAt() time.Time {
	h := f.health()
	at := h.LastErrorAt
	for _, watch := range h.Namespaces {
		if watch.LastErrorAt.Before(at) {
			at = watch.LastErrorAt
		}
	}
	return at
}

// Counts returns how many events, and how many deletes, the handler was told.
func (f *Follower) Counts() (events, deletes int) {
	f.fold.mu.Lock()
	defer f.fold.mu.Unlock()
	return f.fold.events, f.fold.deletes
}

// Hold has a running informer follow these namespaces, and no others. It must not be called
// beside Check.
func (f *Follower) Hold(namespaces ...string) error {
	if len(f.Namespaces) == 0 || f.add == nil {
		return fmt.Errorf("%s cannot change what it follows", f.Name)
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

// Stop returns when the informer has ended. Its context has to have ended before.
func (f *Follower) Stop() { f.stop() }

// Check returns how the cache and the handler's fold differ from what is true: nothing,
// when they agree and nothing was told that cannot be.
func (f *Follower) Check(truth State) []string {
	if len(f.Namespaces) > 0 {
		truth = maps.Clone(truth)
		maps.DeleteFunc(truth, func(key, _ string) bool {
			namespace, _, _ := strings.Cut(key, "/")
			return !slices.Contains(f.Namespaces, namespace)
		})
	}
	told, wrong := f.Told()
	return slices.Concat(wrong, differences("the cache", f.Cache(), truth), differences("the handler", told, truth))
}

// differences says how a state differs from the truth, up to a limit.
func differences(whose string, state, truth State) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(truth)) {
		if state[key] != truth[key] {
			all = append(all, fmt.Sprintf("%s has %q of %s, which is %s", whose, state[key], key, truth[key]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(state)) {
		if _, there := truth[key]; !there {
			all = append(all, fmt.Sprintf("%s has %s of %s, which is gone", whose, state[key], key))
		}
	}
	return all[:min(len(all), wrongLimit)]
}
