package fanout

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/see/histogram"
)

// noMark stands for a mark that is not in the log.
const noMark = math.MaxUint64

// SubscriptionOptions configure a handler. The zero value is ready.
type SubscriptionOptions struct {
	// Name tells handlers apart in errors and reports. Empty: "handler-" and the handler's number
	// in the order of subscription, from 1.
	Name string
	// Policy decides about a backlog beyond Limit. Zero: ConflateUpdates.
	Policy Policy
	// Limit is the number of notifications that may be pending before Policy is applied. Initial
	// adds, resyncs and marks do not count. Zero: 10,000, and one more for each live key unless the
	// policy is Block.
	Limit int
	// ResyncPeriod is the time between two resyncs. Zero: none. The log only keeps the schedule:
	// see Log.DueForResync.
	ResyncPeriod time.Duration
	// ResyncOffset is the time to the first resync, by which the resyncs of many handlers are
	// spread. Zero: ResyncPeriod.
	ResyncOffset time.Duration
	// IsolatePanics keeps the process alive when the handler panics: the notification is lost for
	// this handler and counted in Stats.Panics, and delivery goes on. False: the panic crashes the
	// process.
	IsolatePanics bool
	// OnPanic is called for each panic, on the handler's goroutine, before the process crashes if
	// it does. Nil: it is not called.
	OnPanic func(Panic)
}

// check returns an error that names the first option that cannot be used.
func (o *SubscriptionOptions) check() error {
	refuse := func(option string, value any, remedy string) error {
		return fmt.Errorf("fanout: subscribe handler %q: SubscriptionOptions.%s is %v: %s",
			o.Name, option, value, remedy)
	}
	switch {
	case o.Policy > Unbounded:
		return refuse("Policy", o.Policy,
			"use one of ConflateUpdates, ConflateState, Block, Unbounded")
	case o.Limit < 0:
		return refuse("Limit", o.Limit, "use a positive number, or the policy Unbounded for none")
	case o.ResyncPeriod < 0:
		return refuse("ResyncPeriod", o.ResyncPeriod, "use a positive duration, or 0 for no resync")
	case o.ResyncOffset < 0:
		return refuse("ResyncOffset", o.ResyncOffset,
			"use a positive duration, or 0 for the period")
	case o.ResyncOffset > 0 && o.ResyncPeriod == 0:
		return refuse("ResyncOffset", o.ResyncOffset, "give a ResyncPeriod too")
	}
	return nil
}

// Subscription is a handler's place in a log: a cursor, or, beyond its limit, a backlog of its own.
// It owns one goroutine, which calls the handler and ends after Remove or Log.Close, when the call
// that is running has returned.
type Subscription[T any] struct {
	log     *Log[T]
	handle  func(change.Change[T])
	name    string
	number  int // in the order of subscription, from 1
	policy  Policy
	limit   int
	perKey  bool // each live key adds one to limit
	isolate bool
	onPanic func(Panic)

	stopped atomic.Bool   // removed, or the log is closed
	parked  atomic.Bool   // the goroutine waits for wakeup
	wakeup  chan struct{} // one token
	synced  chan struct{}
	ended   chan struct{} // closed when the goroutine has ended

	meter
	place[T]
	schedule schedule
	reader   reader[T]
}

// meter counts the calls of a handler. The goroutine writes it; anyone may read it without a lock.
type meter struct {
	done     atomic.Uint64 // attached: the number up to which calls have returned
	index    atomic.Uint64 // calls of the run that have returned, for a run not of the log
	initials atomic.Uint64 // Log.initials as of done
	since    atomic.Int64  // the time of the last stamp, in nanoseconds after Log.epoch
	panics   atomic.Uint64
	calls    histogram.Histogram
}

// place is what a handler has yet to receive, and what it has received.
type place[T any] struct {
	// mu guards the rest. The goroutine, the only writer of run while it runs a call, reads run
	// without mu. detached is written under Log.mu too, so that either lock is enough to read it.
	mu        sync.Mutex
	detached  bool // the subscription has a backlog
	backlog   *backlog[T]
	node      *chunk[T] // attached: where pos lies or, at its end, what pos follows
	pos       uint64    // the number of the next notification to take from the log
	syncAt    uint64    // attached: the number before which the synced mark stands
	replay    Items[T]
	replayAt  uint64 // the number before which replay stands
	replaying bool   // the replay is being delivered
	run       run[T] // is being delivered
	delivered uint64 // calls of earlier runs
	folded    uint64 // of earlier backlogs
	leftOut   uint64 // of earlier backlogs
	dropped   backlogSize
}

func newSubscription[T any](
	l *Log[T], handle func(change.Change[T]), o SubscriptionOptions,
) *Subscription[T] {
	s := &Subscription[T]{
		log: l, handle: handle, name: o.Name, number: l.made, policy: o.Policy, limit: o.Limit,
		isolate: o.IsolatePanics, onPanic: o.OnPanic,
		wakeup: make(chan struct{}, 1), synced: make(chan struct{}), ended: make(chan struct{}),
		place:    place[T]{syncAt: noMark},
		schedule: newSchedule(o.ResyncPeriod, o.ResyncOffset),
	}
	s.reader.Subscription = s
	if s.limit == 0 {
		s.limit, s.perKey = defaultLimit, true
	}
	s.attachLocked()
	return s
}

// attachLocked puts the cursor at the end of the log. It is called under Log.mu, and under mu once
// other goroutines know the subscription.
func (s *Subscription[T]) attachLocked() {
	s.node, s.pos = s.log.tail, s.log.end.Load()
	s.done.Store(s.pos)
	s.initials.Store(s.log.initials.Load())
	s.log.attached++
	s.log.busy.Add(1)
}

// Name returns the name given in the options, or the one that was made up.
func (s *Subscription[T]) Name() string { return s.name }

// Remove ends the subscription and drops its pending notifications. It never waits for the handler
// and may be called by the handler itself: then no further call follows. Called elsewhere, one call
// may be running or about to begin; Done tells when that has returned. Calling it again changes
// nothing.
func (s *Subscription[T]) Remove() {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.removeLocked(s)
}

// Done is closed when the subscription has been removed, or the log closed, and the handler's last
// call has returned.
func (s *Subscription[T]) Done() <-chan struct{} { return s.ended }

// Synced is closed when the log was marked synced and the handler has returned from everything
// before the mark, for one that joined later from its initial set.
func (s *Subscription[T]) Synced() <-chan struct{} { return s.synced }

// HasSynced reports whether Synced is closed.
func (s *Subscription[T]) HasSynced() bool { return isClosed(s.synced) }

// wake makes the goroutine look for work if it is parked, and reports whether it was. It is called
// under Log.mu.
func (s *Subscription[T]) wake() bool {
	if !s.parked.Load() || !s.parked.CompareAndSwap(true, false) {
		return false
	}
	if !s.detached {
		s.log.busy.Add(1)
	}
	s.wakeup <- struct{}{}
	return true
}

// offerLocked tells the subscription of a batch that was written to the log. It is called under
// Log.mu.
func (s *Subscription[T]) offerLocked(batch []change.Change[T], live int) {
	if s.detached {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range batch {
			s.backlog.add(&batch[i])
		}
		return
	}
	s.wake()
	if s.policy.conflates() && s.isBehind(live) {
		s.detachLocked(live)
	}
}

// countable returns the number of notifications in the log that count towards the limit. The order
// of the loads makes it too small, if anything, beside a call that returns.
func (s *Subscription[T]) countable() int {
	initials := s.initials.Load()
	return int(s.log.end.Load()-s.done.Load()) - int(s.log.initials.Load()-initials)
}

// isBehind reports whether more is pending than the limit of a policy that folds.
func (s *Subscription[T]) isBehind(live int) bool {
	pending := s.countable()
	if s.perKey {
		pending -= live
	}
	return pending > s.limit
}

// detachLocked takes the subscription off the log: notifications that it has not taken from there
// are folded into a backlog of its own. A replay that waits in the log is dropped, because its
// snapshot is no longer the state there; it is due again when the backlog is empty. It is called
// under Log.mu.
//
// A detached subscription is never parked: while this call waited for mu, the goroutine may have
// delivered everything and parked, or be about to find that it must not.
func (s *Subscription[T]) detachLocked(live int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isBehind(live) {
		return
	}
	s.wake()
	s.backlog = newBacklog(s.policy, s.log.describe)
	for pos, end := s.pos, s.log.end.Load(); ; {
		if pos == s.syncAt {
			s.backlog.addMark()
			s.syncAt = noMark
		}
		if pos == end {
			break
		}
		var notifications []change.Change[T]
		s.node, notifications = s.node.run(pos, min(end, s.syncAt))
		for i := range notifications {
			s.backlog.add(&notifications[i])
		}
		pos += uint64(len(notifications))
	}
	s.node, s.detached = nil, true
	if s.replay != nil {
		s.replay = nil
		s.schedule.owe()
	}
	s.log.tail.lent = true
	s.log.attached--
	s.log.busy.Add(-1)
}

// idleAt reports whether the subscription waits at the end of the log. It is called under Log.mu.
func (s *Subscription[T]) idleAt(end uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parked.Load() && s.pos == end
}
