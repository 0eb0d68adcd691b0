package barrier

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// newestVersions are the newest versions that were written or waited for, by slot and part. The
// versions of NoSlot are for all. Others differ by slot, as a server that selects slots does not
// show the writes of one to the owner of another.
type newestVersions map[int]map[string]string

func (v newestVersions) raise(slot int, part, version string) {
	if v[slot] == nil {
		v[slot] = map[string]string{}
	}
	caches.Raise(v[slot], part, version)
}

// Written returns the newest versions that were written and show in the caches, by part: for some
// slots, and for all.
func (b *Barrier) Written(slots slot.Set) map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	versions := map[string]string{} // not nil: they are known
	maps.Copy(versions, b.newest[NoSlot])
	for n := range slots.Slots() {
		for part, version := range b.newest[n] {
			caches.Raise(versions, part, version)
		}
	}
	return versions
}

// Reached records versions that the run waits for, for the next owner of a slot.
func (b *Barrier) Reached(slot int, versions map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for part, version := range versions {
		b.newest.raise(slot, part, version)
	}
}

// Last is the last write to a resource.
type Last struct {
	Version string // of the newest answer; "" without one
	// Unknown reports whether there were writes without a version, such as a delete. The server, which
	// has ended them at the time Until, tells a version at which they show.
	Unknown bool
	Until   time.Duration
}

// noteLast records a write as the last one to its resource.
func (b *Barrier) noteLast(w *guard.Write) {
	l := b.answered[w.Resource]
	switch {
	case w.Conflict:
		return
	case w.Unknown:
		l.Unknown, l.Until = true, max(l.Until, w.NotBefore.Sub(b.epoch))
	case w.Gone:
		l.Unknown, l.Until = true, max(l.Until, b.Now())
	default:
		l.Version = caches.Newer(l.Version, w.Version)
	}
	b.answered[w.Resource] = l
}

// Know records a version at which the writes to a resource show that ended at a time at the latest.
func (b *Barrier) Know(r schema.GroupResource, until time.Duration, version string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.answered[r]
	l.Version = caches.Newer(l.Version, version)
	l.Unknown = l.Unknown && l.Until > until
	b.answered[r] = l
}

// LastWrite returns the last write of the calls to a resource. Its version may be one that the last
// owners have left for a part of the resource.
func (b *Barrier) LastWrite(r schema.GroupResource, part string) Last {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.answered[r]
	for _, versions := range b.newest {
		l.Version = caches.Newer(l.Version, versions[part])
	}
	return l
}

// lower lowers the versions of an informer to those that it has reached, as it follows another
// history of the server.
func (b *Barrier) lower(by *caches.Informer) {
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
	l.Version = caches.Older(l.Version, most)
	b.answered[r] = l
}

// noteVersion records a version at which a write shows.
func (b *Barrier) noteVersion(w *write, version string) {
	namespace, _ := written.SplitKey(w.Object)
	b.newest.raise(w.shownTo(), w.by.Part(namespace), version)
}

// Unversioned returns the keys with a write whose version is not in the result of Written: a delete
// that does not show, also one of a collection, a write whose outcome is not known, or one that a
// selector may hide.
func (b *Barrier) Unversioned() (keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, p := range b.keys {
		b.checkKey(p)
		for w := range p.all(ofKey) {
			if !w.settled && (w.Gone || w.Unknown || !w.mustShow() && !w.Conflict) {
				keys = append(keys, key)
				break
			}
		}
		b.drop(p)
	}
	return keys
}
