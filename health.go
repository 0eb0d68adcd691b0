package tidings

import (
	"time"

	"github.com/tidings-go/tidings/internal/fanout"
	"github.com/tidings-go/tidings/internal/reflector"
	"github.com/tidings-go/tidings/source"
)

// State is what an informer is doing: Pending, Listing, Watching, Backoff,
// Forbidden, NoSuchResource, Silent or Stopped.
type State = reflector.State

// Health is what an informer says of itself. It is a value: it does not change
// after it was returned.
type Health struct {
	// Name names the informer: its resource and, in brackets, its selection.
	Name string
	// State is what it does, Since when. With several namespaces it is the one
	// that is furthest from Watching.
	State State
	Since time.Time
	// Synced reports whether the cache holds the first complete list.
	Synced bool
	// Version is the resource version that the cache reflects; with several
	// namespaces, the oldest of theirs.
	Version string
	// Objects is how many objects are cached.
	Objects int
	// Queued is how many changes have been read and not yet applied.
	Queued int
	// LastEvent is the time of the last event, bookmark or list.
	LastEvent time.Time
	// LastError is the last failure and LastErrorAt its time. They stay when the
	// informer has recovered.
	LastError   error
	LastErrorAt time.Time
	// RetryAt is when a wait after a failure ends, zero if there is none.
	RetryAt time.Time
	// Lists and Watches count the lists and watches begun.
	Lists, Watches uint64
	// Listed is how many objects the running list has brought so far.
	Listed int
	// Dropped counts objects that did not belong to the selection.
	Dropped     uint64
	LastDropped error
	// Stale counts events and list items that were older than the cache.
	Stale uint64
	// TransformErrors counts objects that the transform failed on.
	TransformErrors    uint64
	LastTransformError error
	// IndexErrors counts index entries that are missing because an index
	// function failed.
	IndexErrors    uint64
	LastIndexError error
	// Decoding counts the objects that were decoded, and says which of them share what
	// they have in common with others.
	Decoding source.DecodingStats
	// Namespaces says the same of each namespace; it is empty for one watch.
	Namespaces map[string]reflector.Health
	// Handlers says how each handler is, in the order of registration.
	Handlers []HandlerHealth
}

// HandlerState is how a handler keeps up.
type HandlerState string

const (
	// Idle has been told of everything.
	Idle HandlerState = "Idle"
	// Busy has notifications pending, fewer than its limit.
	Busy HandlerState = "Busy"
	// Behind is over its limit: its policy applies.
	Behind HandlerState = "Behind"
	// Stuck is over its limit, and objects that came and went pile up.
	Stuck HandlerState = "Stuck"
	// Removed will not be called again.
	Removed HandlerState = "Removed"
)

// HandlerHealth is what a handler's registration says of itself.
type HandlerHealth struct {
	// Name is the name of the handler.
	Name string
	// State is how it keeps up.
	State HandlerState
	// Synced reports whether it has returned from its whole initial set.
	Synced bool
	// Pending is how many notifications wait for it.
	Pending int
	// Delivered counts the calls that returned, Folded the updates that were
	// folded into later ones, LeftOut the notifications of objects that came and
	// went unseen and were left out, Panics the calls that panicked.
	Delivered, Folded, LeftOut, Panics uint64
	// Unseen is how many objects came and went since it fell behind, and wait.
	Unseen int
	// Running is the key of the object that the running call is about and
	// RunningSince when it began; empty and zero between calls.
	Running      string
	RunningSince time.Time
}

// Subscription is what [HandlerHealthOf] asks of a *fanout.Subscription.
type Subscription interface {
	Name() string
	Done() <-chan struct{}
	HasSynced() bool
	Stats() fanout.Stats
}

// HandlerHealthOf describes the handler of a subscription. It is for whoever builds an
// informer of their own out of the packages below this one.
func HandlerHealthOf(s Subscription) HandlerHealth {
	stats := s.Stats()
	h := HandlerHealth{
		Name: s.Name(), State: Idle, Synced: s.HasSynced(),
		Pending: stats.Pending, Delivered: stats.Delivered, Folded: stats.Folded,
		LeftOut: stats.LeftOut, Panics: stats.Panics, Unseen: stats.Unseen,
		Running: stats.Key, RunningSince: stats.Since,
	}
	select {
	case <-s.Done():
		h.State = Removed
		return h
	default:
	}
	switch {
	case stats.Unseen > 0:
		h.State = Stuck
	case stats.Behind:
		h.State = Behind
	case stats.Pending > 0 || !stats.Since.IsZero():
		h.State = Busy
	}
	return h
}

// severity orders states by how far they are from Watching.
var severity = map[State]int{
	reflector.Watching: 0, reflector.Silent: 1, reflector.Listing: 2, reflector.Pending: 3,
	reflector.BackingOff: 4, reflector.NoSuchResource: 5, reflector.Forbidden: 6, reflector.Stopped: 7,
}

// HealthOf returns what a reflector alone knows of an informer. It is for whoever
// builds an informer of their own out of the packages below this one.
func HealthOf(r reflector.Health) Health {
	var h Health
	h.merge(r, true)
	return h
}

// merge adds what a reflector says to h.
func (h *Health) merge(r reflector.Health, first bool) {
	if first || severity[r.State] > severity[h.State] {
		h.State, h.Since, h.RetryAt = r.State, r.Since, r.RetryAt
	}
	if r.LastEvent.After(h.LastEvent) {
		h.LastEvent = r.LastEvent
	}
	if r.LastErrorAt.After(h.LastErrorAt) {
		h.LastError, h.LastErrorAt = r.LastError, r.LastErrorAt
	}
	h.Lists += r.Lists
	h.Watches += r.Watches
	h.Listed += r.Listed
	h.Dropped += r.Dropped
	h.TransformErrors += r.TransformErrors
	if r.LastDropped != nil {
		h.LastDropped = r.LastDropped
	}
	if r.LastTransformError != nil {
		h.LastTransformError = r.LastTransformError
	}
}
