package health

import (
	"time"

	"github.com/tidings-go/tidings/internal/see/histogram"
	"github.com/tidings-go/tidings/source"
)

// Informer describes an informer. docs/operate.md describes its JSON form.
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
	// Objects is the number of cached objects.
	Objects int
	// Queued is the number of changes that have been read and not yet applied.
	Queued int
	// Batches measures the time of applying a batch of changes: from its leaving the queue until
	// the cache and the log of the handlers have it.
	Batches Durations
	// Stale counts events and list items that were older than the cache.
	Stale uint64
	// IndexErrors counts index entries that are missing because an index function failed.
	IndexErrors    uint64
	LastIndexError error
	// Decoding counts the objects that were decoded, and those of them that share parts with other
	// objects.
	Decoding source.DecodingStats
	// Published is the name of a drop-in informer in client-go's metrics; zero without one.
	Published Published
	// Declares are the paths of the fields that the objects have, if they are a view, where
	// "metadata" are those of each view; nil for whole objects.
	Declares []string
	// Fallback says why an informer of clientgo or ctrlruntime does less than it otherwise would:
	// it reads through the methods of the program's client, or reads do not wait for writes. "" is
	// healthy.
	Fallback string
	// Namespaces describes the list and watch of each namespace; empty if there is one.
	Namespaces map[string]Watch
	// Handlers describes each handler, in the order of registration.
	Handlers []Handler
}

// Durations counts durations by their length, in powers of two of a second.
type Durations = histogram.Durations

// Published names an informer in client-go's metrics.
type Published struct {
	// Name is that of the cache.InformerName.
	Name string `json:"name"`
	// Group, Version and Resource are those of its objects.
	Group    string `json:"group,omitzero"`
	Version  string `json:"version,omitzero"`
	Resource string `json:"resource,omitzero"`
}

// HandlerState is the state of a handler.
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
	// State is the present state.
	State HandlerState `json:"state"`
	// Synced reports whether it has returned from its whole initial set.
	Synced bool `json:"synced,omitzero"`
	// Pending is the number of notifications that wait for it.
	Pending int `json:"pending,omitzero"`
	// Delivered counts the calls that returned, Folded the updates that were folded into
	// later ones, LeftOut the objects that came and went unseen and were left out, Panics
	// the calls that panicked.
	Delivered uint64 `json:"delivered,omitzero"`
	Folded    uint64 `json:"folded,omitzero"`
	LeftOut   uint64 `json:"leftOut,omitzero"`
	Panics    uint64 `json:"panics,omitzero"`
	// Calls measures the time that calls took. Up to 16 fast calls are counted with their mean.
	Calls Durations `json:"calls,omitzero"`
	// Unseen is the number of objects that came and went since it fell behind, and wait.
	Unseen int `json:"unseen,omitzero"`
	// Running is the key of the object of the running call and RunningSince when that
	// began; empty and zero between calls.
	Running      string    `json:"running,omitzero"`
	RunningSince time.Time `json:"runningSince,omitzero"`
}
