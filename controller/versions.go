package controller

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// noSlot is in place of a slot for controllers without slots.
const noSlot = -1

// newestVersions are the newest versions that were written or waited for, by slot and part. Those of
// noSlot are for all. Others differ by slot, as a server that selects slots does not show the writes of
// one to the owner of another.
type newestVersions map[int]map[string]string

func (v newestVersions) raise(slot int, part, version string) {
	if v[slot] == nil {
		v[slot] = map[string]string{}
	}
	caches.Raise(v[slot], part, version)
}

// written returns the newest versions that were written and show in the caches, by part: those of
// some slots, and those for all.
func (b *barrier[T]) written(slots slot.Set) map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	versions := map[string]string{} // not nil: they are known
	maps.Copy(versions, b.newest[noSlot])
	for n := range slots.Slots() {
		for part, version := range b.newest[n] {
			caches.Raise(versions, part, version)
		}
	}
	return versions
}

// reached records versions that the run waits for, for the next owner of a slot.
func (b *barrier[T]) reached(slot int, versions map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for part, version := range versions {
		b.newest.raise(slot, part, version)
	}
}

// last is the last write to a resource.
type last struct {
	version string // of the newest answer; "" without one
	// unknown reports whether there were writes without a version, such as a delete. The server, which has
	// ended them at the time until, tells a version at which they show.
	unknown bool
	until   time.Duration
}

// note records a write as the last one to its resource.
func (b *barrier[T]) note(w *guard.Write) {
	l := b.answered[w.Resource]
	switch {
	case w.Conflict:
		return
	case w.Unknown:
		l.unknown, l.until = true, max(l.until, w.NotBefore.Sub(b.epoch))
	case w.Gone:
		l.unknown, l.until = true, max(l.until, b.now())
	default:
		l.version = caches.Newer(l.version, w.Version)
	}
	b.answered[w.Resource] = l
}

// know records a version at which the writes to a resource show that ended at a time at the latest.
func (b *barrier[T]) know(r schema.GroupResource, until time.Duration, version string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.answered[r]
	l.version = caches.Newer(l.version, version)
	l.unknown = l.unknown && l.until > until
	b.answered[r] = l
}

// wroteTo returns the last write of the calls to a resource. Its version may be one that the last owners have
// left for a part of the resource.
func (b *barrier[T]) wroteTo(r schema.GroupResource, part string) last {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.answered[r]
	for _, versions := range b.newest {
		l.version = caches.Newer(l.version, versions[part])
	}
	return l
}

// lower lowers the versions of a follower to those that it has reached, as it follows another history of the
// server.
func (b *barrier[T]) lower(by *caches.Informer) {
	r := by.GVR().GroupResource()
	l, most := b.answered[r], ""
	for _, namespace := range by.Namespaces() {
		part := by.Part(namespace)
		reached, _ := by.Reached(namespace)
		most = caches.Newer(most, reached)
		for _, versions := range b.newest {
			if version, ok := versions[part]; ok {
				versions[part] = caches.Older(version, reached)
			}
		}
	}
	l.version = caches.Older(l.version, most)
	b.answered[r] = l
}

// shows records a version at which a write shows.
func (b *barrier[T]) shows(w *awaited, version string) {
	namespace, _ := written.SplitKey(w.Object)
	b.newest.raise(w.shownTo(), w.by.Part(namespace), version)
}

// withoutVersion returns the keys with a write whose version is not in the result of written: a
// delete that does not show, also one of a collection, a write whose outcome is not known, or one that
// a selector may hide.
func (b *barrier[T]) withoutVersion() (keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, p := range b.keys {
		b.prune(p)
		for w := range p.all(ofKey) {
			if !w.shown && (w.Gone || w.Unknown || !w.mustShow() && !w.Conflict) {
				keys = append(keys, key)
				break
			}
		}
		b.drop(p)
	}
	return keys
}
