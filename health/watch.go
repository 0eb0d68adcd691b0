package health

import "time"

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
	// StateForbidden waits as StateBackoff does: the server does not accept the credentials, or they
	// may not list and watch. It recovers by itself once they may.
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

// severity orders states by how far they are from Watching.
var severity = map[State]int{
	StateWatching: 0, StateSilent: 1, StateListing: 2, StatePending: 3,
	StateBackoff: 4, StateNoSuchResource: 5, StateForbidden: 6, StateStopped: 7,
}

// Watch describes the list and watch of one namespace, or of all.
type Watch struct {
	// State is the present state, and Since the time at which it began.
	State State     `json:"state"`
	Since time.Time `json:"since,omitzero"`
	// History has the last states, the present one included, the oldest first: up to 16, without
	// attempts between failures. It is empty for several namespaces together.
	History []Transition `json:"history,omitempty"`
	// Version is the resource version up to which everything was read.
	Version string `json:"version,omitzero"`
	// LastEvent is the time of the last event, bookmark or list.
	LastEvent time.Time `json:"lastEvent,omitzero"`
	// LastError is the last failure and LastErrorAt its time. They stay after the recovery.
	LastError   error     `json:"-"`
	LastErrorAt time.Time `json:"lastErrorAt,omitzero"`
	// Failures counts the failures in a row; 0 is healthy.
	Failures int `json:"failures,omitzero"`
	// FailingSince is the time of the first of them; zero without failures.
	FailingSince time.Time `json:"failingSince,omitzero"`
	// RetryAt is the end of the present wait; zero without one. A server's Retry-After
	// counts up to 5 minutes, with jitter on top; LastError names a longer one.
	RetryAt time.Time `json:"retryAt,omitzero"`
	// Lists and Watches count the lists and watches begun. A list in pages is one.
	Lists   uint64 `json:"lists,omitzero"`
	Watches uint64 `json:"watches,omitzero"`
	// Bytes counts the bytes of the answers to lists and watches, without compression. 0 means
	// that the source does not count them: a ListerWatcher does not.
	Bytes uint64 `json:"bytes,omitzero"`
	// Sharded reports whether the last watch was begun with a shard selector, because the server has
	// honoured one.
	Sharded bool `json:"sharded,omitzero"`
	// Listed is the number of objects that the running list has brought, 0 between lists.
	Listed int `json:"listed,omitzero"`
	// Dropped counts objects that do not belong to the collection, and states of objects that cannot
	// be decoded. LastDropped names the last object that does not belong to it and the reason or,
	// while there are undecodable objects, one of these and the field.
	Dropped     uint64 `json:"dropped,omitzero"`
	LastDropped error  `json:"-"`
	// Undecodable is the number of objects whose present state cannot be decoded: the cache has their
	// last decoded state, or none. Healthy is 0.
	Undecodable int `json:"undecodable,omitzero"`
	// TransformErrors counts objects that the transform failed on; the cache keeps their
	// state of before. LastTransformError names the last.
	TransformErrors    uint64 `json:"transformErrors,omitzero"`
	LastTransformError error  `json:"-"`
}

// Transition is the beginning of a state.
type Transition struct {
	State State     `json:"state"`
	At    time.Time `json:"at"`
}

// Add makes w describe the watch of another namespace as well: the state that is further
// from Watching, the newest times and errors, and the sums of the counters.
func (w *Watch) Add(other Watch) {
	if w.State == "" || severity[other.State] > severity[w.State] {
		w.State, w.Since, w.RetryAt = other.State, other.Since, other.RetryAt
		w.FailingSince = other.FailingSince
	}
	if other.LastEvent.After(w.LastEvent) {
		w.LastEvent = other.LastEvent
	}
	if other.LastErrorAt.After(w.LastErrorAt) {
		w.LastError, w.LastErrorAt = other.LastError, other.LastErrorAt
	}
	w.Failures = max(w.Failures, other.Failures)
	w.Listed += other.Listed
	w.Sharded = w.Sharded || other.Sharded
	if other.LastDropped != nil && (other.Undecodable > 0 || w.Undecodable == 0) {
		w.LastDropped = other.LastDropped
	}
	w.Undecodable += other.Undecodable
	if other.LastTransformError != nil {
		w.LastTransformError = other.LastTransformError
	}
	w.AddCounters(other)
}

// AddCounters adds the counters that never go back. An informer keeps those of a namespace
// that it no longer has.
func (w *Watch) AddCounters(other Watch) {
	w.Lists += other.Lists
	w.Watches += other.Watches
	w.Bytes += other.Bytes
	w.Dropped += other.Dropped
	w.TransformErrors += other.TransformErrors
}
