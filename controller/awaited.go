package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/internal/delta"
)

const (
	// askAfter is how long a key waits for the caches before the server is asked whether they
	// are behind it.
	askAfter = 10 * time.Second
	// conflictWait is how long a key waits for the state that it was in conflict with.
	conflictWait = time.Second
	// hiddenWait is how long a key waits for an object that the selection of the informer may
	// leave out, before the server is asked whether it does.
	hiddenWait = time.Second
)

// awaited is a write of a call, until the cache of an informer shows it and its event has come.
// Its times are those of the barrier.
type awaited struct {
	by     cache
	of     *pending // the key whose call has written
	object string   // the key of the object that was written
	// uid and version are as a guard.Write has them.
	uid, version string
	at           time.Duration // when it was recorded
	sent         time.Duration // when it was sent
	// until is the end of the wait for a conflict, and the time at which an unknown write can be
	// resolved.
	until                   time.Duration
	gone, unknown, conflict bool
	shown                   bool // it is not waited for: the cache shows it, or need not
	echoed                  bool // its event has come, or does not come any more
	asked                   bool // the server had to be asked for its outcome

	nextOfKey, nextOfObject *awaited
}

// cache is what the barrier needs of a follower.
type cache interface {
	id() uint32
	resource() schema.GroupVersionResource
	Name() string
	Selects() bool
	Selectors() (labels, fields string)
	Over() error
	Reached(namespace string) (version string, ok bool)
	Cached(key string) (version, uid string, ok bool)
	observeLag(d time.Duration)
}

func (w *awaited) id() objectID { return objectID{w.by.id(), w.object} }

// reached returns the version up to which the cache reflects the namespace of the object. ok is
// false if the informer does not hold that namespace.
func (w *awaited) reached() (version string, ok bool) {
	namespace, _ := splitKey(w.object)
	return w.by.Reached(namespace)
}

// made reports whether the write has led to a change.
func (w *awaited) made(ch change) bool {
	if w.gone && w.uid != "" {
		return w.uid == ch.deleted
	}
	return w.version != "" && w.version == ch.version
}

// held reports whether the cache shows the write, or something later.
func (w *awaited) held(now time.Duration) bool {
	reached, ok := w.reached()
	if !ok || w.by.Over() != nil {
		return true // the informer does not hold that namespace, or follows the server no more
	}
	if w.unknown {
		return false
	}
	version, uid, cached := w.by.Cached(w.object)
	shown := cached && reaches(version, w.version) || reaches(reached, w.version)
	switch {
	case w.gone && w.uid == "":
		return !cached || shown
	case w.gone:
		return (!cached || uid != w.uid) && (w.version == "" || shown)
	case w.conflict && now >= w.until:
		return true
	case w.conflict:
		order, ok := delta.CompareDecimal(version, w.version)
		return cached && (!ok || order > 0)
	}
	return shown
}

// due returns when a wait for the write has taken so long that the server is asked. A selection
// may hide what was written: then the server is asked earlier.
func (w *awaited) due(since time.Duration) time.Duration {
	switch {
	case w.unknown, w.conflict:
		return w.until
	case w.by.Selects() && !w.gone:
		if _, _, cached := w.by.Cached(w.object); !cached {
			return since + hiddenWait
		}
	}
	return since + askAfter
}

// replaces reports whether a write makes an earlier one of its key one that is not waited for.
func (w *awaited) replaces(earlier *awaited) bool {
	return w.by == earlier.by && w.object == earlier.object && w.uid == earlier.uid &&
		!w.unknown && !earlier.unknown && w.gone == earlier.gone &&
		w.conflict == earlier.conflict && (w.gone || reaches(w.version, earlier.version))
}

// write returns the write as the guard is asked about it.
func (w *awaited) write() guard.Write {
	namespace, name := splitKey(w.object)
	return guard.Write{
		Resource: w.by.resource().GroupResource(), Namespace: namespace, Name: name,
		UID: types.UID(w.uid), Version: w.version, Gone: w.gone, Unknown: w.unknown,
	}
}

// reaches reports whether a version is another one or later. Versions that are not decimal
// have no order: then nothing is waited for.
func reaches(version, other string) bool {
	if version == "" {
		return false
	}
	order, ok := delta.CompareDecimal(version, other)
	return !ok || order >= 0
}

// raise takes note of a version, if it is later than the one that is known of its resource.
func raise(versions map[string]string, resource, version string) {
	known := versions[resource]
	order, ok := delta.CompareDecimal(version, known)
	if version != "" && (known == "" || ok && order > 0) {
		versions[resource] = version
	}
}
