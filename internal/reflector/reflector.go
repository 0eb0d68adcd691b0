package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

// ErrRanAlready is returned by Run when it was called before: a reflector runs
// once.
var ErrRanAlready = errors.New("reflector: Run was called before; make a new Reflector to list and watch again")

// Options are the choices of a [Reflector]. The zero value is ready.
type Options[T any] struct {
	// Name is how logs and errors call the collection, for example "pods.v1".
	Name string
	// Scope is the part of the queue that this reflector keeps: the prefix of
	// the keys of its objects.
	Scope string
	// Accept returns why an object does not belong to the collection, or nil.
	// For a deleted object, only what cannot change is to be looked at. nil
	// accepts all.
	Accept func(item source.Item[T], deleted bool) error
	// Transform replaces an object before it is handed on. nil leaves it. An error, a panic
	// and a nil result leave the cached state as it is.
	Transform func(T) (T, error)
	// AfterTransform gets the result of Transform, which is not nil, or the object itself
	// where there is no Transform, beside what was received; Transform may have written to
	// the object of that. It returns what is handed on, or an error as Transform does. nil
	// leaves the result.
	AfterTransform func(received source.Item[T], made T) (T, error)
	// Known returns the cached object of a key with its version and UID. It must not
	// keep the key, which is valid during the call only. nil knows none, and every list
	// decodes all it brings.
	Known func(key string) (obj T, version, uid string, ok bool)
	// Compare orders the versions of events as [delta.Options].Compare does those of objects; nil
	// means delta.CompareDecimal. Where it cannot, what a watch brings is handed on.
	Compare func(a, b string) (order int, ok bool)
	// PageSize is how many objects a page of a list asks for; 0 means 500.
	PageSize int64
	// NoStreamedLists makes every list one in pages.
	NoStreamedLists bool
	// ConsistentFirstList makes the first list, if it is one in pages, ask for the newest
	// state, as every later list does. Without it the first list asks for version "0": any
	// state that the server has in memory, which may be older than one that an earlier
	// process has seen. The server reads a consistent list from its storage, page by page.
	ConsistentFirstList bool
	// WatchTimeout is the least time after which a watch is to be ended by the
	// server and begun anew; the most is twice that. 0 means 5 minutes, the least is a second.
	WatchTimeout time.Duration
	// Grace is how much longer than that a watch may last before it is torn
	// down as silent, and how long an answer to a look at the server's version may
	// take; 0 means 30 s, the least is a second.
	Grace time.Duration
	// MaxSilence is how long a list, streamed or in pages, may bring nothing before it is
	// ended: no byte of a page, no object of a streamed list. A list that brings something
	// may last as long as it needs. 0 means 2 minutes, twice what a kube-apiserver gives
	// itself for a request; below 0 there is no limit, and the least above is a second. It is kept by sources that tell what
	// they hear (source.ListOptions.OnActivity), and for the objects of a stream by all.
	MaxSilence time.Duration
	// Backoff says how long to wait after failures.
	Backoff Backoff
	// Heartbeat is how often a failure that goes on is logged again; 0 means
	// 10 minutes, the least is a second.
	Heartbeat time.Duration
	// Logger receives a line per change of state; nil discards them.
	Logger *slog.Logger
	// OnChange is called after every change of state, from Run's goroutine. It
	// must not block.
	OnChange func()
	// OnFailure is called with every failure and what it ended, from Run's
	// goroutine, before the wait that follows. It must not block. With it, failures
	// are no warnings for Logger but news: someone is told of them.
	OnFailure func(ended Step, err error)
	// Optional takes a resource that the server does not have for an empty collection:
	// at once before the first list, and after a minute of that answer afterwards.
	// Without it the last known state stays, and the first list is waited for.
	Optional bool
	// PagesAfterFailure lists in pages at once after a streamed list that failed,
	// instead of waiting and streaming again, unless the server could not be reached
	// or asked for patience. It doubles what a failing server is asked.
	PagesAfterFailure bool
}

// Step is what a reflector was at when it failed.
type Step string

// The steps.
const (
	// StreamedList is a list read as the beginning of a watch.
	StreamedList Step = "streamed list"
	// PagedList is a list read in pages.
	PagedList Step = "list"
	// OpenWatch is a watch that the server did not begin, or the look at its version
	// before that.
	OpenWatch Step = "opening the watch"
	// RunningWatch is a watch that had begun.
	RunningWatch Step = "watch"
)

const (
	defaultPageSize     = 500
	defaultWatchTimeout = 5 * time.Minute
	defaultGrace        = 30 * time.Second
	defaultMaxSilence   = 2 * time.Minute
	defaultHeartbeat    = 10 * time.Minute
	// shortWatch is how long a watch must last for the next one to begin
	// without a wait.
	shortWatch = time.Second
)

func (o Options[T]) withDefaults() Options[T] {
	o.PageSize = orDefault(o.PageSize, defaultPageSize)
	o.WatchTimeout = orDefault(o.WatchTimeout, defaultWatchTimeout)
	o.Grace = orDefault(o.Grace, defaultGrace)
	o.MaxSilence = orDefault(o.MaxSilence, defaultMaxSilence)
	o.Heartbeat = orDefault(o.Heartbeat, defaultHeartbeat)
	o.Backoff = o.Backoff.withDefaults()
	if o.Accept == nil {
		o.Accept = func(source.Item[T], bool) error { return nil }
	}
	if o.Compare == nil {
		o.Compare = delta.CompareDecimal
	}
	if o.Known == nil {
		o.Known = func(string) (obj T, version, uid string, ok bool) { return }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.OnChange == nil {
		o.OnChange = func() {}
	}
	if o.OnFailure == nil {
		o.OnFailure = func(Step, error) {}
	}
	return o
}

func orDefault[V comparable](value, byDefault V) V {
	var zero V
	if value == zero {
		return byDefault
	}
	return value
}

// Queue is what a reflector hands its work to. *delta.Queue implements it.
type Queue[T any] interface {
	Push(ctx context.Context, scope, version string, changes []delta.Event[T]) error
	Replace(ctx context.Context, scope, version string, items []delta.Item[T], o delta.ReplaceOptions) error
	Bookmark(ctx context.Context, scope, version string) error
}

// Reflector keeps one scope of a queue in step with one source.
type Reflector[T any] struct {
	source   source.Source[T]
	queue    Queue[T]
	o        Options[T]
	recorder healthRecorder
	ran      atomic.Bool
	// invalid says which option cannot be used, or is nil.
	invalid error

	// Below is the state of the machine, used by Run's goroutine only.

	version      string      // up to which everything was handed on
	resume       string      // where the next watch starts: version, or the one before it
	highest      string      // of all versions of this history, also those of objects and of events out of order
	listed       bool        // a list was handed on
	fresh        bool        // no watch has begun since the last list
	stream       *watched[T] // the running watch, nil if there is none
	opened       time.Time   // when stream was opened
	progressed   bool        // stream brought something
	moved        bool        // stream brought something new
	paged        bool        // the server does not stream lists
	streamFails  int         // streamed lists that failed in a row
	mute         bool        // the running list is in pages because the streamed one fell silent
	muteStreams  int         // streamed lists in a row that fell silent while pages came
	undecodable  bool        // the watch from version could not be understood once, by the reflector or by the server
	fruitless    int         // watches in a row; see fruitlessWatches
	answering    bool        // since a watch was last of use, the server has said its version or begun a watch
	barren       bool        // no watch was of use since fruitless ones led to a list
	failures     int         // failures in a row
	lists        int         // handed on since a watch last lasted
	pages        pages       // of the running list
	staged       staged[T]   // of the running list
	lastList     int         // how many objects the last list had
	reused       bool        // staged has cached objects in the place of listed ones
	rewound      bool        // it was found that versions went back, and nothing was handed on since
	doubtful     bool        // versions may have gone back
	looks        int         // looks at the server's version that failed since a watch last began
	contact      time.Time   // when the server last showed that it is there
	missingSince time.Time   // since when the server says that there is no such resource
	emptied      bool        // the collection was handed on as empty for that
	changes      []delta.Event[T]
	wait         time.Duration // what backoff waits
	afterBackoff stateFunc[T]
}

// stateFunc is a state of the machine: it does its work and returns the next
// state, or nil to end.
type stateFunc[T any] func(context.Context) stateFunc[T]

// New returns a reflector that hands what src yields to queue. Run starts it.
func New[T any](src source.Source[T], queue Queue[T], o Options[T]) *Reflector[T] {
	level := slog.LevelWarn
	if o.OnFailure != nil {
		level = slog.LevelInfo
	}
	invalid := o.Check("Options")
	o = o.withDefaults()
	r := &Reflector[T]{source: src, queue: queue, o: o, invalid: invalid, paged: o.NoStreamedLists}
	r.recorder = healthRecorder{
		health:    health.Watch{State: health.Pending, Since: time.Now()},
		level:     level,
		heartbeat: o.Heartbeat,
		onChange:  o.OnChange,
	}
	return r
}

// Health says how the reflector is.
func (r *Reflector[T]) Health() health.Watch { return r.recorder.snapshot() }

// Run lists and watches until ctx ends or the queue is closed. It returns nil
// then, ErrRanAlready if it was called before, and what Options.Check says of options
// that cannot be used.
func (r *Reflector[T]) Run(ctx context.Context) error {
	if !r.ran.CompareAndSwap(false, true) {
		return fmt.Errorf("%w (collection %s)", ErrRanAlready, r.o.Name)
	}
	if r.invalid != nil {
		return fmt.Errorf("reflector: collection %s: %w", r.o.Name, r.invalid)
	}
	r.recorder.log = r.o.Logger.With("collection", r.o.Name)
	defer r.recorder.enter(health.Stopped)
	defer r.closeStream()
	for state := r.list(); state != nil && ctx.Err() == nil; {
		state = state(ctx)
	}
	return nil
}

// list returns the state that lists, by what is known of the server.
func (r *Reflector[T]) list() stateFunc[T] {
	if r.paged || r.streamFails >= 2 || r.muteStreams >= 2 {
		return r.pageList
	}
	return r.streamList
}

// failed tells of a failure, unless it is the end of Run.
func (r *Reflector[T]) failed(ctx context.Context, ended Step, err error) {
	if ctx.Err() == nil && !errors.Is(err, delta.ErrClosed) {
		r.o.OnFailure(ended, source.Bound(err))
	}
}

// retry notes a failure and returns the state that waits before next. The wait grows with
// each list as well, until a watch lasts: watches that bring something new and end at once
// may be those of a server whose events are ahead of its lists.
func (r *Reflector[T]) retry(ctx context.Context, err error, next stateFunc[T]) stateFunc[T] {
	if ctx.Err() != nil || errors.Is(err, delta.ErrClosed) {
		return nil
	}
	r.closeStream()
	r.touchBy(err)
	if r.missing(ctx, err) != nil {
		return nil // the queue is closed, or ctx has ended
	}
	r.failures++
	return r.waitFor(err, max(r.failures, r.lists), next)
}

// waitFor returns the state that waits before next, after so many failures in a row.
func (r *Reflector[T]) waitFor(err error, failures int, next stateFunc[T]) stateFunc[T] {
	asked, _ := source.RetryAfter(err)
	if asked > maxRetryAfter {
		err = fmt.Errorf("%w (the server asks for a wait of %v: the next attempt is after about %v)", err, asked, maxRetryAfter)
	}
	r.wait = r.o.Backoff.delay(failures, min(asked, maxRetryAfter))
	r.afterBackoff = next
	r.recorder.failed(err, time.Now().Add(r.wait))
	return r.backoff
}

// noteError notes an error that is answered without a wait for the server.
func (r *Reflector[T]) noteError(err error) {
	err = source.Bound(err) // sources of one's own may not
	r.recorder.change(func(h *health.Watch) { h.LastError, h.LastErrorAt = err, time.Now() })
}

// backoff waits. What leads out of it: the time, or the context.
func (r *Reflector[T]) backoff(ctx context.Context) stateFunc[T] {
	timer := time.NewTimer(r.wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-timer.C:
		return r.afterBackoff
	}
}

// heard notes that the server has answered. The count of failures that backoff
// goes by starts anew only with a watch that proves itself, so that a server which
// lists well and cannot be watched is not listed again and again.
func (r *Reflector[T]) heard() {
	now := time.Now()
	r.recorder.change(func(h *health.Watch) {
		h.LastEvent, h.Failures, h.Version = now, 0, r.version
	})
	r.missingSince = time.Time{}
	r.recorder.recovered()
}
