package gate

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// Gate is closed for the keys that no call may begin for, because of an informer, in one run. The
// fields are set before its first use.
type Gate struct {
	Informers    *caches.Set
	Barrier      *barrier.Barrier
	Server       *guard.Guard // nil: it cannot be asked
	MaxStaleness time.Duration
	Logger       *slog.Logger
	Context      context.Context // of the run
	// Go starts a goroutine that the run waits for.
	Go func(does string, f func())
	// Follows reports whether an informer has a handler of the run.
	Follows func(*caches.Informer) bool
	// Waits has the versions that hold up calls until the caches reach them.
	Waits Waits

	// stale maps a namespace to the informer that has been out of contact for too long and that its
	// keys need; "" stands for all namespaces. parked has the namespaces with keys that wait for one.
	stale  atomic.Pointer[map[string]string]
	parked sync.Map
}

// Check finds the namespaces of informers that have received nothing for longer than MaxStaleness.
// It reports whether a namespace with parked keys has what calls need again.
func (g *Gate) Check() (ready bool) {
	stale := map[string]string{}
	for _, f := range g.Informers.All() {
		for _, namespace := range f.Namespaces() {
			if g.Follows(f) && f.IsSilent(namespace, g.MaxStaleness) {
				stale[g.Informers.NeededBy(f, namespace)] = f.Name()
			}
		}
	}
	admitted := g.admit()
	g.Update(&g.Waits)
	g.stale.Store(&stale)
	for _, f := range admitted {
		f.Admitted.Store(true)
	}
	g.parked.Range(func(namespace, _ any) bool {
		if g.closedIn(namespace.(string)) == "" {
			g.parked.Delete(namespace)
			ready = true
		}
		return true
	})
	return ready
}

// IsClosed reports whether no call for a key may begin, because of an informer. Check reports when
// the key is to be woken.
func (g *Gate) IsClosed(key string) bool {
	if g.ClosedBy(key) == "" {
		return false
	}
	namespace, _ := written.SplitKey(key)
	g.parked.Store(namespace, nil)
	return true
}

// ClosedBy returns the name of an informer that holds up the calls of a key: it is out of contact
// for too long, it lacks the objects of a namespace that was added, or it does not show what was
// written before. It returns "" without one.
func (g *Gate) ClosedBy(key string) string {
	namespace, _ := written.SplitKey(key)
	return g.closedIn(namespace)
}

// closedIn is ClosedBy for the keys of a namespace.
func (g *Gate) closedIn(namespace string) string {
	holding := g.Holding()
	if name := cmp.Or(holding[namespace], holding[""]); name != "" {
		return name
	}
	for _, f := range g.Informers.All() {
		if f.IsMissing(namespace) || !f.Admitted.Load() && len(g.lacking(f)) > 0 {
			return f.Name()
		}
	}
	return ""
}

// Holding maps each namespace whose keys an informer holds up to its name: it is out of contact for
// too long, or does not show what was written before. The namespace "" is all.
func (g *Gate) Holding() map[string]string {
	stale, waits := g.stale.Load(), g.Waits.All()
	holding := map[string]string{}
	switch {
	case stale == nil: // before the first Check
	case len(waits) == 0:
		return *stale
	default:
		maps.Copy(holding, *stale)
	}
	for _, u := range waits {
		if u.HoldsUp() {
			holding[g.HeldUpBy(u)] = u.Name()
		}
	}
	return holding
}

// Names returns the names of the informers that hold up calls, with the namespace of the keys if
// that is not all, and whether all calls are held up.
func (g *Gate) Names() (all bool, names []string) {
	holding := g.Holding()
	if name := holding[""]; name != "" {
		return true, []string{name}
	}
	for _, namespace := range slices.Sorted(maps.Keys(holding)) {
		names = append(names, holding[namespace]+" in namespace "+namespace)
	}
	return len(names) > 0 && len(names) == len(g.Informers.Primary().Namespaces()), names
}

// lacking returns the versions that calls, or the last owners, have written before the cache of an
// informer could be read, and that it may not show.
func (g *Gate) lacking(f *caches.Informer) (behind []Behind) {
	resource := f.GVR()
	if resource.Empty() || g.Server == nil {
		return nil
	}
	for _, namespace := range f.Namespaces() {
		last := g.Barrier.LastWrite(resource.GroupResource(), f.Part(namespace))
		if u := (Behind{f, namespace, last}); !u.isOver() {
			behind = append(behind, u)
		}
	}
	return behind
}

// admit returns the informers whose caches can be read since the last check, and adds what they
// lack to the versions that hold up calls.
func (g *Gate) admit() (admitted []*caches.Informer) {
	for _, f := range g.Informers.All() {
		if !f.Admitted.Load() && !f.GVR().Empty() {
			admitted = append(admitted, f)
			g.Waits.Add(g.lacking(f)...)
		}
	}
	return admitted
}
