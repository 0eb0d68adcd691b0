package health

import (
	"cmp"
	"time"
)

// State is the state of an informer, or of the list and watch of one of its namespaces.
type State string

// The states.
const (
	// StatePending has not been started.
	StatePending State = "Pending"
	// StateListing reads the collection.
	StateListing State = "Listing"
	// StateWatching follows the changes.
	StateWatching State = "Watching"
	// StateBackoff waits after the failure in Watch.LastError.
	StateBackoff State = "Backoff"
	// StateForbidden waits as StateBackoff does: the server does not accept the credentials, or
	// they may not list and watch. It recovers by itself once they may.
	StateForbidden State = "Forbidden"
	// StateNoSuchResource waits as StateBackoff does: the server does not serve the resource. It
	// recovers by itself once the server does.
	StateNoSuchResource State = "NoSuchResource"
	// StateSilent closed a watch that outlived its own timeout, or that was quiet for several
	// times as long as between its bookmarks, and resumes.
	StateSilent State = "Silent"
	// StateStopped has ended.
	StateStopped State = "Stopped"
)

// Failing reports whether the state needs something from outside: a server that answers, a
// permission, a definition.
func (s State) Failing() bool {
	return s == StateBackoff || s == StateForbidden || s == StateNoSuchResource
}

// severity orders states by how far they are from Watching, and before them that of no watch.
var severity = map[State]int{
	"": -1, StateWatching: 0, StateSilent: 1, StateListing: 2, StatePending: 3,
	StateBackoff: 4, StateNoSuchResource: 5, StateForbidden: 6, StateStopped: 7,
}

// Watch describes the list and watch of one namespace, or of several together, as Add says.
type Watch struct {
	// State is the present state, and Since the time at which it began.
	State State     `json:"state"`
	Since time.Time `json:"since,omitzero"`
	// History has the last states, the present one included, the oldest first: up to 16, without
	// attempts between failures. It is empty for several namespaces together.
	History []Transition `json:"history,omitempty"`
	// Version is the resource version up to which everything was read.
	Version string `json:"version,omitzero"`
	// LastEvent is the time of the last event, bookmark or list; of several namespaces, the
	// earliest of theirs.
	LastEvent time.Time `json:"lastEvent,omitzero"`
	// LastError is the last failure and LastErrorAt its time. They stay after the recovery.
	LastError   error     `json:"-"`
	LastErrorAt time.Time `json:"lastErrorAt,omitzero"`
	// Failures counts the failures in a row; 0 is healthy.
	Failures int `json:"failures,omitzero"`
	// FailingSince is the time of the first of them; zero without failures. Of several namespaces,
	// it is that of the one that has failed for longest, and Failures the most of one.
	FailingSince time.Time `json:"failingSince,omitzero"`
	// RetryAt is the end of the present wait; zero without one. A server's Retry-After
	// counts up to 5 minutes, with jitter on top; LastError names a longer one.
	RetryAt time.Time `json:"retryAt,omitzero"`
	// Lists and Watches count the lists and watches begun. A list in pages is one.
	Lists   uint64 `json:"lists,omitzero"`
	Watches uint64 `json:"watches,omitzero"`
	// Checks counts the lists of one object that ask for the server's version, or whether it
	// selects slots.
	Checks uint64 `json:"checks,omitzero"`
	// Bytes counts the bytes of the answers to lists and watches, without compression. 0 means
	// that the source does not count them: a ListerWatcher does not.
	Bytes uint64 `json:"bytes,omitzero"`
	// Sharded reports whether the last watch was begun with a shard selector, because the server
	// has honoured one.
	Sharded bool `json:"sharded,omitzero"`
	// Listed is the number of objects that the running lists have brought, 0 between lists.
	Listed int `json:"listed,omitzero"`
	// SlotsToList is the number of slots that have come and whose objects are not listed yet; of
	// several namespaces, the largest.
	SlotsToList int `json:"slotsToList,omitzero"`
	// Dropped counts objects that do not belong to the collection, and states of objects that
	// cannot be decoded. LastDropped names the last object that does not belong to it and the
	// reason, and LastDroppedAt is its time; while there are undecodable objects, it names one of
	// these and the field, and LastDroppedAt is zero.
	Dropped       uint64    `json:"dropped,omitzero"`
	LastDropped   error     `json:"-"`
	LastDroppedAt time.Time `json:"lastDroppedAt,omitzero"`
	// Undecodable is the number of objects whose present state cannot be decoded: the cache has
	// their last decoded state, or none. Healthy is 0.
	Undecodable int `json:"undecodable,omitzero"`
	// TransformErrors counts objects that the transform failed on; the cache keeps their
	// state of before. LastTransformError names the last, LastTransformErrorAt is its time.
	TransformErrors      uint64    `json:"transformErrors,omitzero"`
	LastTransformError   error     `json:"-"`
	LastTransformErrorAt time.Time `json:"lastTransformErrorAt,omitzero"`
}

// Transition is the beginning of a state.
type Transition struct {
	State State     `json:"state"`
	At    time.Time `json:"at"`
}

// Add makes w describe the watch of another namespace as well. The order of the namespaces does not
// matter, and the zero value describes none:
//
//   - State, Since and RetryAt are those of one namespace: the state that is furthest from
//     Watching, and of several in that state the one that began first;
//   - LastEvent and FailingSince are the earliest, so that no namespace hides how long another one
//     has been out of contact; Failures is the greatest;
//   - each last error is the newest, with its time; of two at one time, that whose text comes last;
//     LastDropped is of a namespace with undecodable objects, if there is one;
//   - counters are added up, and Sharded is true if it is for one of them;
//   - History and Version are of one namespace alone, and left as they are.
func (w *Watch) Add(other Watch) {
	if other.isWorse(w) {
		w.State, w.Since, w.RetryAt = other.State, other.Since, other.RetryAt
	}
	w.LastEvent = earliest(w.LastEvent, other.LastEvent)
	w.FailingSince = earliest(w.FailingSince, other.FailingSince)
	w.Failures = max(w.Failures, other.Failures)
	newest(&w.LastError, &w.LastErrorAt, other.LastError, other.LastErrorAt)
	switch undecodable := other.Undecodable > 0; {
	case undecodable && w.Undecodable == 0:
		w.LastDropped, w.LastDroppedAt = other.LastDropped, other.LastDroppedAt
	case undecodable == (w.Undecodable > 0):
		newest(&w.LastDropped, &w.LastDroppedAt, other.LastDropped, other.LastDroppedAt)
	}
	newest(&w.LastTransformError, &w.LastTransformErrorAt, other.LastTransformError, other.LastTransformErrorAt)
	w.Listed += other.Listed
	w.SlotsToList = max(w.SlotsToList, other.SlotsToList)
	w.Sharded = w.Sharded || other.Sharded
	w.Undecodable += other.Undecodable
	w.AddCounters(other)
}

// isWorse reports whether the state of w stands for both.
func (w *Watch) isWorse(than *Watch) bool {
	return cmp.Or(
		cmp.Compare(severity[w.State], severity[than.State]), than.Since.Compare(w.Since),
		w.RetryAt.Compare(than.RetryAt), cmp.Compare(w.State, than.State),
	) > 0
}

// earliest returns the earlier of two times. A zero time does not count.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// newest replaces an error and its time by those of another one that is newer.
func newest(err *error, at *time.Time, other error, otherAt time.Time) {
	if cmp.Or(otherAt.Compare(*at), cmp.Compare(text(other), text(*err))) > 0 {
		*err, *at = other, otherAt
	}
}

// AddCounters adds the counters that never go back. An informer keeps those of a namespace
// that it no longer has.
func (w *Watch) AddCounters(other Watch) {
	w.Lists += other.Lists
	w.Checks += other.Checks
	w.Watches += other.Watches
	w.Bytes += other.Bytes
	w.Dropped += other.Dropped
	w.TransformErrors += other.TransformErrors
}
