package written

import (
	"iter"
	"strings"
	"time"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

const (
	// AskAfter is the wait for a write before the server is asked whether the cache is behind it.
	AskAfter = 10 * time.Second
	// conflictWait is the longest wait for the state that a write was in conflict with.
	conflictWait = time.Second
	// hiddenWait is the wait for a write that may bring no event, before the server is asked: one
	// of an object that the selection of the cache may leave out, or of a collection.
	hiddenWait = time.Second
)

// Cache is the cache of an informer.
type Cache interface {
	// Selects reports whether it has a label or field selector, and Selectors returns them.
	Selects() bool
	Selectors() (labels, fields string)
	// Holds reports whether an object with a UID and a namespace is in a slot that it holds.
	Holds(uid, namespace string) bool
	// Over returns why it follows the server no more; nil if it does or will.
	Over() error
	// Reached returns the version up to which it reflects the objects of a namespace. ok is false
	// if it does not hold that namespace.
	Reached(namespace string) (version string, ok bool)
	// Cached returns the version and UID of a cached object.
	Cached(key string) (version, uid string, ok bool)
	// Received returns those of the present state of an object, which may be one that cannot be
	// decoded, in the place of the cached one: it shows a write all the same.
	Received(key string) (version, uid string, ok bool)
	// Keys yields the keys of all cached objects.
	Keys() iter.Seq[string]
	// SuspectWatch reports that a consistent read has shown another state of an object than is
	// cached: one before version, which is that of an object with a UID, or a later one for "". Without
	// a UID, the version of the collection is before version.
	SuspectWatch(key, version, uid string)
}

// Write is a write that a cache may not show. Times are those since an epoch that the caller has
// chosen.
type Write struct {
	Object string // the key of the object
	// UID and Version are as a guard.Write has them.
	UID, Version string
	// Until is the end of the wait for a conflict, and the time at which an unknown write can be
	// resolved.
	Until                   time.Duration
	Gone, Unknown, Conflict bool
}

// Of returns a write that a guard has noted.
func Of(w *guard.Write, epoch time.Time) Write {
	made := Write{
		Object: source.Key(w.Namespace, w.Name), UID: string(w.UID), Version: w.Version,
		Gone: w.Gone, Unknown: w.Unknown, Conflict: w.Conflict,
	}
	switch {
	case w.Unknown:
		made.Until = w.NotBefore.Sub(epoch)
	case w.Conflict:
		made.Until = w.Sent.Add(conflictWait).Sub(epoch)
	}
	return made
}

// isAnswered reports whether Version is that of the object in the answer to the write.
func (w *Write) isAnswered() bool {
	_, name := SplitKey(w.Object)
	return name != "" && w.Version != "" && !w.Gone && !w.Unknown && !w.Conflict
}

// SplitKey returns the namespace and the name of a key.
func SplitKey(key string) (namespace, name string) {
	i := strings.IndexByte(key, '/')
	return key[:max(i, 0)], key[i+1:]
}

// Reached returns the version up to which a cache reflects the namespace of the object. ok is
// false if the cache does not hold that namespace.
func (w *Write) Reached(by Cache) (version string, ok bool) {
	namespace, _ := SplitKey(w.Object)
	return by.Reached(namespace)
}

// Held reports whether a cache shows the write, or something later.
func (w *Write) Held(by Cache, now time.Duration) bool {
	reached, ok := w.Reached(by)
	if !ok || by.Over() != nil {
		return true // it does not hold that namespace, or follows the server no more
	}
	if namespace, _ := SplitKey(w.Object); w.UID != "" && !by.Holds(w.UID, namespace) {
		return true // it is in a slot of another process
	}
	if w.Unknown {
		return false
	}
	version, uid, cached := by.Received(w.Object)
	shown := cached && Reaches(version, w.Version) || Reaches(reached, w.Version) && !w.isLost(by)
	switch {
	case w.Gone && w.UID == "":
		return !cached || shown
	case w.Gone:
		return (!cached || Another(uid, w.UID)) && (w.Version == "" || shown)
	case w.Conflict && now >= w.Until:
		return true
	case w.Conflict && w.UID != "" && (!cached || Another(uid, w.UID)):
		return true // the request was for an object that the cache shows no more
	case w.Conflict && w.UID != "" && w.Version == "":
		return false
	case w.Conflict:
		order, ok := delta.CompareDecimal(version, w.Version)
		return cached && (!ok || order > 0)
	}
	return shown
}

// isLost reports whether a cache has passed the version of the write with an older state of the object: the
// two are of different histories of the server.
func (w *Write) isLost(by Cache) bool {
	reached, ok := w.Reached(by)
	version, _, cached := by.Received(w.Object)
	order, isNumber := delta.CompareDecimal(version, w.Version)
	return ok && cached && isNumber && order < 0 && !by.Selects() && Reaches(reached, w.Version)
}

// Due returns when a wait that began at since has taken so long that the server is asked. A write
// may bring no event: then the server is asked earlier.
func (w *Write) Due(by Cache, since time.Duration) time.Duration {
	_, name := SplitKey(w.Object)
	switch {
	case w.Unknown, w.Conflict:
		return w.Until
	case name == "", w.isLost(by):
		return since + hiddenWait
	case by.Selects() && !w.Gone:
		if _, _, cached := by.Received(w.Object); !cached {
			return since + hiddenWait
		}
	}
	return since + AskAfter
}

// Replaces reports whether the write makes an earlier one one that is not waited for.
func (w *Write) Replaces(earlier *Write) bool {
	return w.Object == earlier.Object && w.UID == earlier.UID &&
		!w.Unknown && !earlier.Unknown && w.Gone == earlier.Gone &&
		w.Conflict == earlier.Conflict && (w.Gone || Reaches(w.Version, earlier.Version))
}

// Another reports whether two UIDs are those of different objects. One that is empty is not known: a
// transform may have removed it.
func Another[S ~string](a, b S) bool { return a != "" && b != "" && a != b }

// Reaches reports whether a version is another one or later. Versions that are not decimal
// have no order: then nothing is waited for.
func Reaches(version, other string) bool {
	if version == "" {
		return false
	}
	order, ok := delta.CompareDecimal(version, other)
	return !ok || order >= 0
}
