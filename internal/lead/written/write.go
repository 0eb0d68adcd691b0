package written

import (
	"cmp"
	"strings"
	"time"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/source"
)

const (
	// askAfter is the wait for a write before the server is asked whether the cache is behind it.
	askAfter = 10 * time.Second
	// AskAgain is the wait after a question before the next one.
	AskAgain = 10 * time.Second
	// AskTimeout bounds a question to the server.
	AskTimeout = 10 * time.Second
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
	// Received returns the version and UID of the present state of an object, which may be one that
	// cannot be decoded, in the place of the cached one: it shows a write all the same.
	Received(key string) (version, uid string, ok bool)
	// SuspectWatch reports that a consistent read has shown another state of an object than is
	// cached: one before version, which is that of an object with a UID, or a later one for "".
	// Without a UID, the version of the collection is before version.
	SuspectWatch(key, version, uid string)
	// CatchUp lists the objects of the namespace of a key, if the cache has not reached a version.
	// It is for versions that no event may ever tell of.
	CatchUp(key, version string)
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

// state is what a cache shows of the object of a write.
type state struct {
	reached      string // the version up to which it reflects the namespace
	cached       bool   // it has an object of the key
	version, uid string // those of the object; "" if a transform has left them out
	selects      bool   // a selector may leave the object out
	elsewhere    bool   // it does not hold the namespace or the slot, or follows the server no more
}

// stateOf reads the cache once. The object is read last: it may be newer than reached, not older.
func stateOf(by Cache, key, uid string) (s state) {
	namespace, _ := SplitKey(key)
	reached, ok := by.Reached(namespace)
	s.elsewhere = !ok || by.Over() != nil || uid != "" && !by.Holds(uid, namespace)
	s.reached, s.selects = reached, by.Selects()
	s.version, s.uid, s.cached = by.Received(key)
	return s
}

// shows reports whether the cache shows a version of an object, or a later one.
func (s *state) shows(version, uid string) bool {
	return s.cached && !Another(s.uid, uid) && Reaches(cmp.Or(s.version, s.reached), version)
}

// Held reports whether a cache shows the write, or something later.
func (w *Write) Held(by Cache, now time.Duration) bool {
	return w.heldIn(stateOf(by, w.Object, w.UID), now)
}

// heldIn is the decision about a write, for calls of controllers and reads of clients alike.
func (w *Write) heldIn(s state, now time.Duration) bool {
	shown := s.cached && Reaches(s.version, w.Version) ||
		Reaches(s.reached, w.Version) && !w.isLostIn(s)
	switch {
	case s.elsewhere:
		return true
	case w.Unknown:
		return false
	case w.Gone && w.UID == "":
		return !s.cached || shown
	case w.Gone:
		return (!s.cached || Another(s.uid, w.UID)) && (w.Version == "" || shown)
	case w.Conflict && now >= w.Until:
		return true
	case w.Conflict && w.UID != "" && (!s.cached || Another(s.uid, w.UID)):
		return true // the request was for an object that the cache shows no more
	case w.Conflict && (w.UID != "" && w.Version == "" || w.Version != "" && s.version == ""):
		return false // the cache does not tell
	case w.Conflict:
		order, ok := delta.CompareDecimal(s.version, w.Version)
		return s.cached && (!ok || order > 0)
	}
	return shown
}

// isLostIn reports whether a cache has passed the version of the write with an older state of the
// object: the two are of different histories of the server.
func (w *Write) isLostIn(s state) bool {
	order, ok := delta.CompareDecimal(s.version, w.Version)
	return s.cached && ok && order < 0 && !s.selects && Reaches(s.reached, w.Version)
}

// Due returns when a wait that began at since has taken so long that the server is asked. A write
// may bring no event: then the server is asked earlier.
func (w *Write) Due(by Cache, since time.Duration) time.Duration {
	_, name := SplitKey(w.Object)
	s := stateOf(by, w.Object, w.UID)
	switch {
	case w.Unknown, w.Conflict:
		return w.Until
	case name == "", w.isLostIn(s), s.selects && (!w.Gone || w.Version != "") && !s.cached:
		return since + hiddenWait
	}
	return since + askAfter
}

// Replaces reports whether nothing waits for an earlier write any more, because of this one.
func (w *Write) Replaces(earlier *Write) bool {
	return w.Object == earlier.Object && w.UID == earlier.UID &&
		!w.Unknown && !earlier.Unknown && w.Gone == earlier.Gone &&
		w.Conflict == earlier.Conflict && (w.Gone || Reaches(w.Version, earlier.Version))
}

// Recreates reports whether the write has made an object after an earlier write has ended another
// one of its name. A cache that shows it, and holds the slots of both, shows that end.
func (w *Write) Recreates(earlier *Write) bool {
	return w.Object == earlier.Object && w.isAnswered() && earlier.Gone && Another(w.UID, earlier.UID)
}

// Another reports whether two UIDs are those of different objects. One that is empty is not known:
// a transform may have removed it.
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
