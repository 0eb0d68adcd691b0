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
	"github.com/tidings-go/tidings/internal/served"
	"github.com/tidings-go/tidings/source"
)

// ErrRanAlready is returned by a second call of Run: a reflector runs once.
var ErrRanAlready = errors.New("reflector: Run was called before; " +
	"make a new Reflector to list and watch again")

// Reflector keeps one partition of a queue in step with one source. Create it with [New].
type Reflector[T any] struct {
	source   source.Source[T]
	queue    Queue[T]
	o        Options[T]
	invalid  error // why the options cannot be used, nil if they can
	recorder *healthRecorder
	ran      atomic.Bool

	// The goroutine of Run shares these with filling.run and the callers of Merge, Leave, SuspectWatch
	// and CatchUp. With slots, handingOn is held while lists and events are handed on, which may wait
	// for room in the queue.

	handingOn lock
	filling   filling[T]
	running   atomic.Pointer[stream[T]]  // the running watch, or the last one
	suspected atomic.Pointer[lastChange] // a read has shown an older state of it, or of the collection; nil for none
	demand    demand
	sharding  atomic.Bool // the server has honoured the last shard selector of a list

	// The rest outlives a state. Only the goroutine of Run uses it.

	history  history
	server   server
	attempts attempts
	listed   bool // a list was handed on
	mistrust mistrust
	emptied  bool   // later, the queue was told that the server has no such resource
	counted  int    // objects of the running list that health counts
	removes  uint64 // of slots, up to which forgetGone has looked
	// lastListed is the number of objects in the last list. The next one makes room for as many.
	lastListed int
}

// server has the facts that a reflector has learned about its server.
type server struct {
	lastContact   time.Time // see "checking" in the package documentation
	noStreams     bool      // it does not stream lists
	failedStreams int       // streamed lists that failed in a row
	silentStreams int       // streamed lists in a row that fell silent before a list in pages
	// betweenBookmarks is the longest wait between two bookmarks of the last watch that had two.
	betweenBookmarks time.Duration
	absence          served.Absence // for how long it answers that there is no such resource
}

// attempts has the counters that decide how long to wait and when to list again.
type attempts struct {
	failures      int  // failures in a row
	lists         int  // lists handed on since a watch last lasted
	uselessInRow  int  // useless watches in a row; see mostUseless
	undecodable   bool // a watch from this version could not be understood
	answered      bool // the server has begun one of the useless watches, or told its version since
	uselessListed bool // useless watches have led to a list, and no watch made progress since
	voided        int  // lists in a row that slots have made void
}

// progress resets the counters after a watch that brought something new, or lasted.
func (a *attempts) progress() {
	a.failures, a.uselessInRow, a.answered, a.uselessListed = 0, 0, false, false
}

// state is a state of the machine. step does its work and returns the next state, or nil to
// end Run.
type state[T any] interface {
	step(ctx context.Context) state[T]
}

// New returns a reflector that hands the objects and events of src to queue. Run starts it.
func New[T any](src source.Source[T], queue Queue[T], o Options[T]) *Reflector[T] {
	failureLevel := slog.LevelWarn
	if o.OnFailure != nil {
		failureLevel = slog.LevelInfo
	}
	invalid := o.Transport.Check("Options")
	recent := recentEvents{off: o.Compare == nil}
	o = o.withDefaults()
	if o.Beside == nil {
		o.Beside = src
	}
	r := &Reflector[T]{
		source: src, queue: queue, o: o, invalid: invalid, handingOn: make(lock, 1),
		history:  history{compare: o.Compare, newest: o.Newest, recent: recent},
		server:   server{noStreams: o.NoStreamedLists},
		recorder: newHealthRecorder(failureLevel, o.OnChange),
	}
	r.filling.r = r
	return r
}

// Health describes the reflector.
func (r *Reflector[T]) Health() health.Watch {
	h := r.recorder.snapshot()
	h.SlotsToList = r.filling.lacking()
	return h
}

// Run lists and watches until ctx ends or the queue is closed, and then returns nil. It
// returns ErrRanAlready if it was called before, and the error of Options.Check if there is
// one.
func (r *Reflector[T]) Run(ctx context.Context) error {
	if !r.ran.CompareAndSwap(false, true) {
		return fmt.Errorf("%w (collection %s)", ErrRanAlready, r.o.Name)
	}
	if r.invalid != nil {
		return fmt.Errorf("reflector: collection %s: %w", r.o.Name, r.invalid)
	}
	// Not in New: a logger may use the informer, which does not exist then.
	r.recorder.log = r.o.Logger.With("informer", r.o.Name)
	defer r.recorder.enter(health.StateStopped)
	if r.o.Slots != nil {
		defer r.filling.start(ctx)()
	}
	now := r.list()
	defer func() { // a step may panic
		if s, ok := now.(interface{ close() }); ok {
			s.close()
		}
	}()
	for ctx.Err() == nil {
		next := now.step(ctx)
		if next == nil {
			break
		}
		now = next
	}
	return nil
}

// list returns the state that lists. The choice depends on the facts that are known about the
// server.
func (r *Reflector[T]) list() state[T] {
	if s := &r.server; s.noStreams || s.failedStreams >= 2 || s.silentStreams >= 2 {
		return &paging[T]{Reflector: r, limit: r.o.PageSize}
	}
	return &streaming[T]{Reflector: r}
}

// report calls Options.OnFailure, except at the end of Run.
func (r *Reflector[T]) report(ctx context.Context, ended Step, err error) {
	if ctx.Err() == nil && !errors.Is(err, delta.ErrClosed) {
		r.o.OnFailure(ended, source.Bound(err))
	}
}

// noteError records an error that is answered at once.
func (r *Reflector[T]) noteError(err error) {
	err = source.Bound(err) // not every source bounds its errors
	r.recorder.change(func(h *health.Watch) { h.LastError, h.LastErrorAt = err, time.Now() })
}

// received records an answer of the server in health. The counters of attempts are reset only
// by a watch that makes progress, so that a server which can be listed and not watched is not
// listed without end.
func (r *Reflector[T]) received() {
	now := time.Now()
	r.recorder.change(func(h *health.Watch) {
		h.LastEvent, h.Version = now, r.history.version
		h.Failures, h.FailingSince = 0, time.Time{}
	})
	r.server.absence = served.Absence{}
	r.recorder.recovered()
}
