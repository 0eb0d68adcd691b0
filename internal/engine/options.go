package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/reflector"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// Options configure a collection. Name, Describe and Part are required.
type Options[T any] struct {
	// Name names the collection in errors, logs and health. Lifecycle.Rename changes it.
	Name string
	// Declares are the paths of the fields of a view, for health; nil for whole objects.
	Declares []string
	// Describe returns the version and UID of a cached object, "" where it has none.
	Describe func(T) (version, uid string)
	// Compare orders versions; nil means delta.CompareDecimal.
	Compare func(a, b string) (order int, ok bool)
	// Untrusted reports whether versions mean nothing at present: then lists decode every object.
	// nil trusts versions.
	Untrusted func() bool
	// UnknownDeletes reports whether deletes of unknown objects are changes at present; nil drops
	// them.
	UnknownDeletes func() bool
	// Indexes are the index functions by their identity.
	Indexes map[any]store.IndexFunc[T]
	// Namespaces have a part each; none means one part for everything.
	Namespaces []string
	// Slots are the slots whose objects the collection has; nil means all objects.
	Slots *slot.Holding
	// Scope is the known scope of the type. With NamespacesByDefault, Namespaces give way to one
	// part for everything while the server says that objects of the type have none.
	Scope               source.Scope
	NamespacesByDefault bool
	// Part returns the source and the options of a namespace's part, each time that the part begins
	// to run.
	Part func(ctx context.Context, namespace string, scope source.Scope) Part[T]
	// Supervise runs a reflector until ctx ends, anew after a panic; nil calls run.
	Supervise func(ctx context.Context, run func(context.Context))
	// ReportUnchanged publishes objects that a list found unchanged as updates.
	ReportUnchanged bool
	// Share returns the function that shares the parts of objects which were decoded for
	// themselves. It returns an equal object, and is called from several goroutines. Share is
	// called when Run begins; nil, and a nil function, share nothing.
	Share func() func(T) T
	// Known returns the state that a batch is compared with; nil is the cache.
	Known func(cache store.Snapshot[T]) delta.Known[T]
	// BeforeApply may correct a batch; Observe receives its changes when the cache holds them and
	// no handler has received them. No other batch is applied meanwhile. nil is nothing.
	BeforeApply func(*delta.Batch[T])
	Observe     func([]change.Change[T])
	// Metrics is called for each batch; nil is nothing.
	Metrics Metrics
	// Background are functions that run while the reflectors do, on goroutines of their own.
	Background []func(context.Context)
	// Resync replaces the rule of resyncs; the zero value leaves it.
	Resync ResyncRule
	// StopGrace is the longest time that a stop waits for handlers; 0 means 10 s. Then OnStuck is
	// called with an error that names them, and the wait begins anew; with a nil OnStuck, Run
	// returns the error.
	StopGrace time.Duration
	OnStuck   func(error)
	// OnNamespaces is called with the namespaces after a change of them. It must not call the
	// collection, except Rename.
	OnNamespaces func([]string)
	// OnSynced is called when the first complete list is applied, OnIndexErrors with the failures
	// of index functions, OnUndecodable with the objects whose states cannot be decoded any more,
	// OnNotRun with the error of a reflector that did not run; it is required. They may call the
	// collection.
	OnSynced      func()
	OnIndexErrors func([]store.IndexError)
	OnUndecodable func([]delta.Unusable)
	OnNotRun      func(error)
	// AfterDecoding counts the objects that were searched for common parts after decoding; nil
	// counts none.
	AfterDecoding func() source.SharerStats
}

// Metrics times batches.
type Metrics interface {
	// Batch calls apply.
	Batch(apply func())
	// Reached receives the length of the queue and the version of the cache.
	Reached(queued int, version string)
}

// Part has the source and the options of the reflector of one namespace. The collection sets the
// fields Name, Partition, Known, Compare, OnChange and Share of Reflector.
type Part[T any] struct {
	Source    source.Source[T]
	Reflector reflector.Options[T]
}

func (o Options[T]) withDefaults() Options[T] {
	o.StopGrace = cmp.Or(o.StopGrace, 10*time.Second)
	if o.Compare == nil {
		o.Compare = delta.CompareDecimal
	}
	if o.Untrusted == nil {
		o.Untrusted = func() bool { return false }
	}
	if o.Known == nil {
		o.Known = func(cache store.Snapshot[T]) delta.Known[T] { return cache }
	}
	if o.Supervise == nil {
		o.Supervise = func(ctx context.Context, run func(context.Context)) { run(ctx) }
	}
	return o
}
