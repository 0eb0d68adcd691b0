package reflector

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// Options configure a [Reflector]. The zero value is ready.
type Options[T any] struct {
	// Name names the collection in logs and errors, for example "pods.v1".
	Name string
	// Partition is the partition of the queue that this reflector fills: the prefix of the keys of
	// its objects.
	Partition string
	// Accept returns why an object does not belong to the collection, or nil. For a deleted object
	// it may use only fields that cannot change. nil accepts all objects.
	Accept func(item source.Item[T], deleted bool) error
	// Slots are the slots whose objects are wanted; nil wants all objects.
	Slots *slot.Holding
	// Beside is the source of the lists of slots that come, beside the watch; nil is the source of
	// the reflector.
	Beside source.Source[T]
	// Resumes reports whether an earlier reflector has listed the partition: then Merge waits for
	// the first list of this one.
	Resumes bool
	// Go starts the goroutine of these lists, which calls the functions of the options; nil is a go
	// statement. Run waits for it.
	Go func(func())
	// Transform replaces an object before it is handed on; nil leaves it. An error, a panic and a
	// nil result leave the cached state as it is. With Slots, it is called by two goroutines.
	Transform func(T) (T, error)
	// AfterTransform replaces the result of Transform, or the object if there is no Transform. The
	// result is not nil. received is the item of the source; Transform may have written to its
	// object. An error is treated as one of Transform. nil leaves the result.
	AfterTransform func(received source.Item[T], made T) (T, error)
	// Share replaces an object of a list by an equal one; nil leaves it.
	Share func(T) T
	// Known returns the cached object of a key with its version and UID. It must not keep the key,
	// which is valid during the call only. nil knows no object: lists decode everything.
	Known func(key string) (obj T, version, uid string, ok bool)
	// Newest returns the cached object of the partition that has changed last, of those that holds
	// accepts, or "" for none, also while the queue is not empty. It may go through all objects: it
	// is called when the server may have been set back after a delete. nil knows no object.
	Newest func(holds func(key, uid string) bool) (key, version, uid string)
	// Compare orders the versions of events as [delta.Options].Compare orders versions of objects;
	// nil means delta.CompareDecimal. Events whose versions it cannot compare are handed on.
	Compare func(a, b string) (order int, ok bool)
	// Transport tunes lists and watches, as far as informers do.
	source.Transport
	// Logger receives a line per change of state; nil discards them.
	Logger *slog.Logger
	// OnChange is called after every change of state, from Run's goroutine. It must not block.
	OnChange func()
	// OnFailure is called with every failure and the step that it ended, from Run's goroutine,
	// before the wait that follows. It must not block. With it, Logger receives failures at level
	// Info instead of Warn.
	OnFailure func(ended Step, err error)
	// OnRewind is called when the list that begins the new history of a server which went back was
	// handed on, from Run's goroutine. It must not block.
	OnRewind func()
	// Optional treats a resource that the server does not have as an empty collection: at once
	// before the first list, and after a minute of that answer afterwards. Without it the last
	// known state stays, and the first list is waited for.
	Optional bool
	// PagesAfterFailure lists in pages at once after a streamed list that failed, instead of
	// waiting and streaming again, unless the connection was refused or the answer was 429. It
	// doubles the requests to a failing server.
	PagesAfterFailure bool
}

// Step is the step of a reflector that failed.
type Step string

// The steps.
const (
	StreamedList Step = "streamed list" // a list read as the beginning of a watch
	PagedList    Step = "list"          // a list read in pages
	RunningWatch Step = "watch"         // a watch that had begun
	// OpenWatch is a watch that the server did not begin, or the check of its version before that.
	OpenWatch Step = "opening the watch"
)

func (o Options[T]) withDefaults() Options[T] {
	o.PageSize = cmp.Or(o.PageSize, 500)
	o.WatchTimeout = cmp.Or(o.WatchTimeout, 5*time.Minute)
	o.MaxSilence = cmp.Or(o.MaxSilence, 2*time.Minute)
	o.Backoff = withDefaults(o.Backoff)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Accept == nil {
		o.Accept = func(source.Item[T], bool) error { return nil }
	}
	if o.Compare == nil {
		o.Compare = delta.CompareDecimal
	}
	if o.Known == nil {
		o.Known = func(string) (obj T, version, uid string, ok bool) { return }
	}
	if o.Newest == nil {
		o.Newest = func(func(key, uid string) bool) (key, version, uid string) { return }
	}
	if o.Go == nil {
		o.Go = func(f func()) { go f() }
	}
	if o.OnChange == nil {
		o.OnChange = func() {}
	}
	if o.OnRewind == nil {
		o.OnRewind = func() {}
	}
	if o.OnFailure == nil {
		o.OnFailure = func(Step, error) {}
	}
	return o
}
