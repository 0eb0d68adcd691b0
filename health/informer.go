package health

import (
	"time"

	"github.com/tidings-go/tidings/source"
)

// Informer describes an informer. docs/health.md describes its JSON form.
type Informer struct {
	// Name names the informer: its resource and, in brackets, its selection.
	Name string
	// Watch describes its list and watch, of all namespaces together.
	Watch
	// Synced reports whether the cache holds the first complete list.
	Synced bool
	// Version is the resource version that the cache reflects; with several namespaces,
	// the oldest of theirs.
	Version string
	// Objects is how many objects are cached.
	Objects int
	// Queued is how many changes have been read and not yet applied.
	Queued int
	// Stale counts events and list items that were older than the cache.
	Stale uint64
	// IndexErrors counts index entries that are missing because an index function failed.
	IndexErrors    uint64
	LastIndexError error
	// Decoding counts the objects that were decoded, and those of them that share what
	// they have in common with others.
	Decoding source.DecodingStats
	// Namespaces describes the list and watch of each namespace; empty if there is one.
	Namespaces map[string]Watch
	// Handlers describes each handler, in the order of registration.
	Handlers []Handler
}

// HandlerState is how a handler keeps up.
type HandlerState string

// The states of a handler.
const (
	// HandlerIdle has received everything.
	HandlerIdle HandlerState = "Idle"
	// HandlerBusy has pending notifications, fewer than its limit.
	HandlerBusy HandlerState = "Busy"
	// HandlerBehind is over its limit: its policy applies.
	HandlerBehind HandlerState = "Behind"
	// HandlerStuck is over its limit, and objects that came and went pile up.
	HandlerStuck HandlerState = "Stuck"
	// HandlerRemoved will not be called again.
	HandlerRemoved HandlerState = "Removed"
)

// Handler describes a registered handler.
type Handler struct {
	// Name is the name of the handler.
	Name string `json:"name"`
	// State is how it keeps up.
	State HandlerState `json:"state"`
	// Synced reports whether it has returned from its whole initial set.
	Synced bool `json:"synced,omitzero"`
	// Pending is how many notifications wait for it.
	Pending int `json:"pending,omitzero"`
	// Delivered counts the calls that returned, Folded the updates that were folded into
	// later ones, LeftOut the objects that came and went unseen and were left out, Panics
	// the calls that panicked.
	Delivered uint64 `json:"delivered,omitzero"`
	Folded    uint64 `json:"folded,omitzero"`
	LeftOut   uint64 `json:"leftOut,omitzero"`
	Panics    uint64 `json:"panics,omitzero"`
	// Unseen is how many objects came and went since it fell behind, and wait.
	Unseen int `json:"unseen,omitzero"`
	// Running is the key of the object of the running call and RunningSince when that
	// began; empty and zero between calls.
	Running      string    `json:"running,omitzero"`
	RunningSince time.Time `json:"runningSince,omitzero"`
}
