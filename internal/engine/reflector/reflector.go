package reflector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/served"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// ErrRanAlready is returned by a second call of Run: a reflector runs once.
var ErrRanAlready = errors.New("reflector: Run was called before; " +
	"make a new Reflector to list and watch again")

// Queue receives lists, events and bookmarks. *delta.Queue implements it.
type Queue[T any] interface {
	Push(ctx context.Context, partition, version string, changes []delta.Event[T]) error
	Replace(ctx context.Context, partition, version string, items []delta.Item[T],
		o delta.ReplaceOptions) error
	Bookmark(ctx context.Context, partition, version string) error
}

// Reflector keeps one partition of a queue in step with one source. Create it with [New].
//
// Its methods stand in three files: here, list.go, and next.go, which has what follows the end of a
// watch, a list or a check.
type Reflector[T any] struct {
	*shared[T]
	invalid error // why the options cannot be used, nil if they can
	ran     atomic.Bool
	filling filling[T]

	// The rest outlives a state. Only the goroutine of Run uses it.

	history  history
	server   server
	attempts attempts
	mistrust mistrust
	listed   bool // a list was handed on
	emptied  bool // later, the queue was told that the server has no such resource
	count    listCount
	// lastListed is the number of objects in the last list. The next one makes room for as many.
	lastListed int
}

// shared has the parts that Run shares with filling, and with the callers of the other methods.
// Each part guards its own state.
type shared[T any] struct {
	o        Options[T]
	queue    Queue[T]
	recorder *healthRecorder
	slots    slotFilter
	objects  objects[T]
	requests requests[T]
	watch    watchControl[T]
	// handingOn is held, with slots, while lists and events are handed on, which may wait for room
	// in the queue.
	handingOn lock
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
	failures     int  // failures in a row
	lists        int  // lists handed on since a watch last lasted
	uselessInRow int  // useless watches in a row; see mostUseless
	undecodable  bool // a watch from this version could not be understood
	answered     bool // the server has begun one of the useless watches, or told its version since
	relisted     bool // useless watches have led to a list, and no watch made progress since
	voided       int  // lists in a row that slots have made void
}

// progress resets the counters after a watch that brought something new, or lasted.
func (a *attempts) progress() {
	a.failures, a.uselessInRow, a.answered, a.relisted = 0, 0, false, false
}

// state is a state of the machine. step does its work and returns the next state, or nil to end
// Run. Then close ends what the state has open.
type state[T any] interface {
	step(ctx context.Context) state[T]
	close()
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
	recorder := newHealthRecorder(failureLevel, o.OnChange)
	parts := &shared[T]{
		o: o, queue: queue, recorder: recorder, slots: slotFilter{holding: o.Slots},
		handingOn: make(lock, 1),
	}
	parts.objects = objects[T]{parts}
	parts.requests = requests[T]{parts, src}
	parts.watch.shared = parts
	r := &Reflector[T]{
		shared: parts, invalid: invalid, count: listCount{recorder: recorder},
		history: history{
			slots: &parts.slots, compare: o.Compare, newest: o.Newest, recent: recent,
		},
		server: server{noStreams: o.NoStreamedLists},
	}
	r.filling = filling[T]{
		shared: parts, isOlder: r.history.isOlder, count: listCount{recorder: recorder},
	}
	return r
}

// Health describes the reflector.
func (r *Reflector[T]) Health() health.Watch {
	h := r.recorder.snapshot()
	h.SlotsToList = r.filling.lacking()
	return h
}

// SuspectWatch reports that a consistent read has shown another state of the object of a key than
// the watch has brought. The watch ends, unless it began less than half a minute ago, and is begun
// anew: with several servers, maybe at one that does not lag. If the read has shown a state before
// version, which was cached before the read, the server may have been set back, and is checked
// before the next watch, or while the watch goes on once it has brought a bookmark. Without a uid,
// the version of the collection is before version, which was reached before the read. version and
// uid are "" otherwise. When the next watch is suspected too, the collection is listed. It may be
// called from any goroutine.
func (r *Reflector[T]) SuspectWatch(key, version, uid string) { r.watch.suspect(key, version, uid) }

// CatchUp has the collection listed, in the place of the running watch, unless it has reached a
// version that a consistent read has shown, or a list was demanded a moment ago. That the cache has
// what the server has does not prove that it has reached the version: the watch may have yet to
// bring objects that came and went. If the list fails, the watch goes on. It may be called from any
// goroutine.
func (r *Reflector[T]) CatchUp(version string) {
	r.watch.demand.ask(version)
	r.watch.endOutdated()
}

// Merge waits until the queue has the objects of slots that were added to the Holding. They are
// listed beside the watch. Before the first list, which has them too, Merge does not wait. When ctx
// ends, only the wait ends: the list is made again until it succeeds, the slots have gone or Run
// has ended. Merge returns a failure that the next list is unlikely to mend, or the eighth in a
// row.
func (r *Reflector[T]) Merge(ctx context.Context, slots slot.Set) error {
	return r.filling.await(ctx, slots)
}

// Leave returns when the events that were decoded before are handed on. Those of slots that have
// gone by now, which these must be, are not handed on afterwards. An error is the one of the
// context.
func (r *Reflector[T]) Leave(ctx context.Context, slots slot.Set) error {
	return r.filling.leave(ctx, slots)
}

// Run lists and watches until ctx ends or the queue is closed, and then returns nil. It returns
// ErrRanAlready if it was called before, and the error of Options.Check if there is one.
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
	defer func() { now.close() }() // a step may panic
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

// resume returns the state that begins a watch from the last version.
func (r *Reflector[T]) resume() state[T] { return &opening[T]{Reflector: r} }

// takeSuspicion makes a read that has contradicted the history a suspicion of a rewind. It reports
// whether there was one.
func (r *Reflector[T]) takeSuspicion() bool {
	older := r.watch.suspected.Swap(nil)
	if older != nil {
		r.history.suspect()
		r.history.toCheck, r.history.alive = *older, lastChange{}
	}
	return older != nil
}

// received records an answer of the server in health. The counters of attempts are reset only by a
// watch that makes progress, so that a server which can be listed and not watched is not listed
// without end.
func (r *Reflector[T]) received() {
	now := time.Now()
	r.recorder.change(func(h *health.Watch) {
		h.LastEvent, h.Version = now, r.history.version
		h.Failures, h.FailingSince = 0, time.Time{}
	})
	r.server.absence = served.Absence{}
	r.recorder.recovered()
}

// lock is a mutex made of a channel with room for one token: a context can end the wait for it.
type lock chan struct{}

// acquire locks l, or returns why ctx has ended.
func (l lock) acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if ctx.Err() != nil {
		l.release()
		return context.Cause(ctx)
	}
	return nil
}

func (l lock) release() { <-l }
