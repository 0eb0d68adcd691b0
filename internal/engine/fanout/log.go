package fanout

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/internal/engine/change"
)

// Options configure a Log. The zero value is ready.
type Options[T any] struct {
	// Name returns the name of the collection, for labels and the value of a panic. Nil is no name.
	// It must not refer to the cache.
	Name func() string
	// Describe returns the version of a state and the UID of its incarnation, "" where it has none.
	// Nil: all states of a key are of one incarnation. It is called with the log's locks held, and
	// only for a backlog that is being folded: it must be a pure function of the object.
	Describe func(T) (version, uid string)
}

// Log delivers every change to any number of handlers, in order. It keeps only changes that are
// pending for some handler. See the package documentation for its structure. Use New.
//
// Publish, MarkSynced, Replay and AwaitRoom are for one publisher, which calls them one at a time;
// everything else is for any goroutine.
type Log[T any] struct {
	name     func() string
	describe func(T) (version, uid string)
	epoch    time.Time // time stamps of readers count from it

	end      atomic.Uint64 // the number of the next notification; stored under mu
	initials atomic.Uint64 // notifications below end that are Initial; stored under mu
	busy     atomic.Int64  // attached subscriptions that are not parked; at 0, look for garbage
	blocking atomic.Int64  // subscriptions with the policy Block
	waiters  atomic.Int64  // calls of AwaitRoom that wait

	room    chan struct{} // one token: a Block subscription has got room
	resync  chan struct{} // one token: the next resync may be earlier than it was
	closing chan struct{} // closed by Close

	// mu guards the fields below and is taken before any Subscription.mu. It is never held while a
	// handler is called or an iterator is asked.
	mu       sync.Mutex
	tail     *chunk[T]
	subs     []*Subscription[T]            // that receive published batches
	running  map[*Subscription[T]]struct{} // those whose goroutine has not ended
	attached int                           // of subs, the ones that read the log
	made     int                           // subscriptions there ever were
	synced   bool
	closed   bool
	started  bool // no goroutine runs before
}

// New returns an empty log without subscriptions. It starts no goroutine before Start:
// subscriptions of a log that never starts cost none.
func New[T any](o Options[T]) *Log[T] {
	if o.Name == nil {
		o.Name = func() string { return "" }
	}
	return &Log[T]{
		name:     o.Name,
		describe: o.Describe,
		epoch:    time.Now(),
		room:     make(chan struct{}, 1),
		resync:   make(chan struct{}, 1),
		closing:  make(chan struct{}),
		tail:     &chunk[T]{},
		running:  make(map[*Subscription[T]]struct{}),
	}
}

// Start starts the goroutines of the subscriptions. It is called before the first Publish. Calling
// it again changes nothing.
func (l *Log[T]) Start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.started {
		return
	}
	l.started = true
	for _, s := range l.subs {
		l.start(s)
	}
}

// Publish appends a batch of notifications, in order. live is the number of keys in the cache after
// the batch: each adds one to the default limit of a handler's backlog. Publish never waits for a
// handler and keeps no reference to the batch's array. After Close it does nothing.
func (l *Log[T]) Publish(batch []change.Change[T], live int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(batch) == 0 {
		return
	}
	l.appendLocked(batch)
	for _, s := range l.subs {
		s.offerLocked(batch, live)
	}
	if l.attached == 0 {
		l.reclaimLocked()
	}
}

// appendLocked writes the batch to the log, if a subscription reads it there.
func (l *Log[T]) appendLocked(batch []change.Change[T]) {
	initials := l.initials.Load()
	for i := range batch {
		if batch[i].Initial {
			initials++
		}
	}
	l.initials.Store(initials)
	end := l.end.Load()
	if l.attached > 0 {
		l.tail, end = l.tail.write(batch, end)
	} else {
		if l.tail.base != end {
			l.tail = &chunk[T]{}
		}
		end += uint64(len(batch))
		l.tail.base = end
	}
	l.end.Store(end)
}

// reclaimLocked lets go of the notifications in the last chunk if every subscription has passed
// them: an idle log keeps no object alive.
func (l *Log[T]) reclaimLocked() {
	end := l.end.Load()
	if l.busy.Load() != 0 || l.tail.base == end {
		return
	}
	for _, s := range l.subs {
		if !s.detached && !s.idleAt(end) {
			return
		}
	}
	t := l.tail
	if !t.lent && len(t.entries) <= smallChunk {
		clear(t.entries[:end-t.base])
		t.base = end
		return
	}
	l.tail = &chunk[T]{base: end}
	for _, s := range l.subs {
		if !s.detached {
			s.mu.Lock()
			s.node = l.tail
			s.mu.Unlock()
		}
	}
}

// MarkSynced puts the mark into the log that the first list is complete: a subscription is synced
// when its handler has returned from everything before the mark, one that joins later when it has
// returned from its initial set. Calling it again changes nothing.
func (l *Log[T]) MarkSynced() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.synced || l.closed {
		return
	}
	l.synced = true
	for _, s := range l.subs {
		s.mu.Lock()
		if s.detached {
			s.backlog.addMark()
		} else {
			s.syncAt = l.end.Load()
		}
		s.mu.Unlock()
		s.wake()
	}
}

// Subscribe adds a handler: it is called with an Added, marked Initial, for everything in initial,
// then with everything that is published from now on, one call at a time, on a goroutine of its
// own. initial may be nil; the caller makes sure that it is the state at the end of the log and
// stays as it is: it is read while the handler is called, and dropped at its end.
func (l *Log[T]) Subscribe(
	handle func(change.Change[T]), initial Items[T], o SubscriptionOptions,
) (*Subscription[T], error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if handle == nil {
		return nil, fmt.Errorf("fanout: subscribe handler %q: the function is nil: "+
			"pass the function to call", o.Name)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("fanout: subscribe handler %q: %w", o.Name, ErrClosed)
	}
	l.made++
	if o.Name == "" {
		o.Name = fmt.Sprintf("handler-%d", l.made)
	}
	s := newSubscription(l, handle, o)
	if initial != nil {
		s.reader.feed = &feed[T]{next: initial}
	}
	if l.synced {
		s.syncAt = s.pos
	}
	l.subs = append(l.subs, s)
	l.running[s] = struct{}{}
	if o.Policy == Block {
		l.blocking.Add(1)
	}
	if s.schedule.period > 0 {
		leaveToken(l.resync)
	}
	if l.started {
		l.start(s)
	}
	return s, nil
}

// start runs a subscription's goroutine. The subscription owns it, Remove and Close stop it, Done
// and Wait wait for it.
func (l *Log[T]) start(s *Subscription[T]) { go s.reader.serve() }

// removeLocked removes s from the log: it receives nothing more, and keeps nothing alive except the
// notifications of a running call.
func (l *Log[T]) removeLocked(s *Subscription[T]) {
	if s.stopped.Swap(true) {
		return
	}
	l.subs = slices.DeleteFunc(l.subs, func(other *Subscription[T]) bool { return other == s })
	if !s.wake() {
		l.tail.lent = true
	}
	s.mu.Lock()
	if !s.detached {
		l.attached--
		l.busy.Add(-1)
	}
	s.dropped = s.pendingLocked()
	s.node, s.backlog, s.replay = nil, nil, nil
	s.mu.Unlock()
	if s.policy == Block {
		l.blocking.Add(-1)
		leaveToken(l.room)
	}
	l.reclaimLocked()
	if !l.started {
		s.reader.feed = nil
		s.endLocked()
	}
}

// attach takes a subscription whose backlog is empty back to the log.
func (l *Log[T]) attach(s *Subscription[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped.Load() || !s.backlog.empty() {
		return
	}
	s.folded, s.leftOut = s.folded+s.backlog.folded, s.leftOut+s.backlog.leftOut
	s.backlog, s.reader.buffer, s.detached = nil, nil, false
	s.attachLocked()
	if _, ok := s.schedule.next(); ok {
		leaveToken(l.resync)
	}
}

// Close ends the log: pending notifications are dropped, no further call is begun, and everything
// that is published or subscribed later is refused. It does not wait for calls that are running;
// Wait does.
func (l *Log[T]) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	close(l.closing)
	for len(l.subs) > 0 {
		l.removeLocked(l.subs[len(l.subs)-1])
	}
	l.tail = &chunk[T]{base: l.end.Load()}
}

// Wait waits until the goroutine of every subscription has ended, also of those removed earlier: it
// is for after Close. If the context ends first, it returns an error that names the handlers whose
// call has not returned.
func (l *Log[T]) Wait(ctx context.Context) error {
	for {
		running := l.Subscriptions()
		if len(running) == 0 {
			return nil
		}
		select {
		case <-running[0].ended:
		case <-ctx.Done():
			return stuckError(l.Subscriptions(), context.Cause(ctx))
		}
	}
}

// Subscriptions returns the subscriptions that are not done, in the order of subscription: also one
// that was removed and whose last call has not returned.
func (l *Log[T]) Subscriptions() []*Subscription[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.SortedFunc(maps.Keys(l.running), func(a, b *Subscription[T]) int {
		return cmp.Compare(a.number, b.number)
	})
}

// AwaitRoom waits while a subscription with the policy Block is at its limit. A publisher that
// wants backpressure calls it before Publish; without such a subscription it costs next to nothing.
// It returns ErrClosed after Close, and an error that names a handler without room when the context
// ends.
func (l *Log[T]) AwaitRoom(ctx context.Context) error {
	if l.blocking.Load() == 0 && !isClosed(l.closing) {
		return nil
	}
	l.waiters.Add(1)
	defer l.waiters.Add(-1)
	for {
		full := l.full()
		switch {
		case isClosed(l.closing):
			return fmt.Errorf("fanout: wait for room: %w", ErrClosed)
		case full == nil:
			return nil
		}
		select {
		case <-l.room:
		case <-l.closing:
		case <-ctx.Done():
			return fmt.Errorf("fanout: wait for room in the backlog of handler %q, "+
				"whose policy is Block: %w", full.name, context.Cause(ctx))
		}
	}
}

// full returns a Block subscription that is at its limit, or nil.
func (l *Log[T]) full() *Subscription[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.subs {
		if s.policy == Block && s.countable() >= s.limit {
			return s
		}
	}
	return nil
}

// offerRoom tells AwaitRoom, if it waits, that a call has made room.
func (s *Subscription[T]) offerRoom() {
	if s.log.waiters.Load() > 0 && s.countable() < s.limit {
		leaveToken(s.log.room)
	}
}

// leaveToken puts a token into a channel with room for one.
func leaveToken(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// isClosed reports whether a channel without values is closed.
func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
