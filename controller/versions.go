package controller

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/internal/written"
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
	raise(v[slot], part, version)
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
			raise(versions, part, version)
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

// wroteTo returns the newest version that the calls have written to a resource, or that the last owners have
// left for a part of it; "" for none.
func (b *barrier[T]) wroteTo(r schema.GroupResource, part string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	version := b.answered[r]
	for _, versions := range b.newest {
		version = newer(version, versions[part])
	}
	return version
}

// shows records a version at which a write shows.
func (b *barrier[T]) shows(w *awaited, version string) {
	namespace, _ := written.SplitKey(w.Object)
	b.newest.raise(w.shownTo(), w.by.part(namespace), version)
}

// withoutVersion returns the keys with a write whose version is not in the result of written: a
// delete that does not show, also one of a collection, a write whose outcome is not known, or one that
// a selector may hide.
func (b *barrier[T]) withoutVersion() (keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, p := range b.keys {
		b.prune(p)
		for w := range p.writes() {
			if !w.shown && (w.Gone || w.Unknown || !w.mustShow() && !w.Conflict) {
				keys = append(keys, key)
				break
			}
		}
		b.drop(p)
	}
	return keys
}

// raise sets the version of a part, if the new one is later, or the known one is no number.
func raise(versions map[string]string, part, version string) {
	if version != "" {
		versions[part] = newer(versions[part], version)
	}
}

// newer returns a version if it is later than a known one, or if the known one is no number.
func newer(known, version string) string {
	_, isNumber := delta.CompareDecimal(known, known)
	order, ok := delta.CompareDecimal(version, known)
	if version != "" && (!isNumber || ok && order > 0) {
		return version
	}
	return known
}
