package fanout

import (
	"context"
	"runtime/pprof"
	"time"

	"github.com/tidings-go/tidings/internal/engine/change"
)

const (
	// bufferSize is the number of notifications that a reader takes at once from an initial set, a
	// replay or a backlog. Notifications that it has taken fold no more.
	bufferSize = 64
	// stampEvery is the number of calls that share one reading of the clock while calls are fast: a
	// reading costs about as much as a notification does.
	stampEvery = 16
	// slowRun is the time for stampEvery calls from which on each call is stamped.
	slowRun = time.Millisecond
)

// run has the notifications that a reader delivers next. Meanwhile it looks at nothing shared,
// except whether it is stopped.
type run[T any] struct {
	calls   []change.Change[T]
	first   uint64 // the number of calls[0], for a run of the log
	fromLog bool
	counted bool // counts towards the limit: of the log or a backlog
}

// Items returns the next item of a snapshot with its key; ok is false at the end. It is called by
// one goroutine at a time and may be dropped before the end. A cursor, and not an iter.Seq2, goes
// on where it was if the handler ends the goroutine. iter.Pull2 would make one of the other at the
// price of a coroutine, which leaks unless it is stopped and of which the race detector keeps
// several KB for good.
type Items[T any] func() (key string, object T, ok bool)

// feed is an initial set or a replay under way.
type feed[T any] struct {
	next   Items[T]
	resync bool
}

// notification makes one of an item.
func (f *feed[T]) notification(key string, obj T) change.Change[T] {
	if f.resync {
		return change.Change[T]{Type: change.Updated, Resync: true, Key: key, Old: obj, New: obj}
	}
	return change.Change[T]{Type: change.Added, Initial: true, Key: key, New: obj}
}

// reader calls the handler. Only the goroutine of the subscription uses its fields.
type reader[T any] struct {
	*Subscription[T]
	feed   *feed[T]           // initial set or replay under way
	buffer []change.Change[T] // holds the runs that are not of the log
	made   int                // calls of the run that have been made
	timed  int                // of made, the calls whose durations are counted
	inCall bool               // the handler has been called and has not returned
	slow   bool               // calls take long: stamp each
	exited bool               // the handler has ended the goroutine
}

// serve is the subscription's goroutine. It delivers until it is stopped.
func (s *reader[T]) serve() {
	labels := pprof.Labels("informer", s.log.name(), "handler", s.name)
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), labels))
	ended := false
	defer func() {
		if s.exited {
			s.exited = false
			s.log.start(s.Subscription)
			return
		}
		if !ended {
			// A crash must not look like an end: a caller that waits for it could end the process
			// before the runtime reports the panic.
			if v := recover(); v != nil {
				panic(v)
			}
		}
		s.end()
	}()
	s.deliver()
	for s.take() {
		s.deliver()
	}
	ended = true
}

// end removes the subscription and closes Done.
func (s *Subscription[T]) end() {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.removeLocked(s)
	s.endLocked()
}

// endLocked closes Done. It is called under Log.mu, when no goroutine runs.
func (s *Subscription[T]) endLocked() {
	delete(s.log.running, s)
	close(s.ended)
}

// deliver makes the calls of the run that have not been made.
func (s *reader[T]) deliver() {
	for s.made < len(s.run.calls) && !s.stopped.Load() {
		s.makeCalls()
	}
}

// makeCalls is deliver up to a panic that is isolated.
func (s *reader[T]) makeCalls() {
	defer s.guard()
	calls := s.run.calls
	for s.made < len(calls) && !s.stopped.Load() {
		if s.made > 0 && (s.slow || s.made%stampEvery == 0) {
			s.stamp()
		}
		s.inCall = true
		s.handle(calls[s.made])
		s.inCall = false
		s.called()
	}
}

// called accounts for a call that has returned.
func (s *reader[T]) called() {
	initial := s.run.calls[s.made].Initial
	s.made++
	if !s.run.fromLog {
		s.index.Store(uint64(s.made))
		return
	}
	if initial {
		s.initials.Add(1)
	}
	s.done.Store(s.run.first + uint64(s.made))
	if s.policy == Block {
		s.offerRoom()
	}
}

// stamp notes the time, and the durations of the calls since the last note.
func (s *reader[T]) stamp() {
	now := time.Since(s.log.epoch)
	if calls := s.made - s.timed; calls > 0 {
		took := now - time.Duration(s.since.Load())
		s.slow = took > slowRun
		s.calls.ObserveRun(calls, took)
		s.timed = s.made
	}
	s.since.Store(int64(now))
}

// take sets run to the notifications that have to be delivered next, and waits for them. It returns
// false when the subscription is stopped.
func (s *reader[T]) take() bool {
	for {
		if s.feed != nil {
			if s.takeFeed() {
				return true
			}
			continue
		}
		s.mu.Lock()
		s.endRun()
		switch {
		case s.stopped.Load():
			s.mu.Unlock()
			return false
		case s.detached:
			took, empty := s.takeBacklog(), s.backlog.empty()
			s.mu.Unlock()
			if took {
				return true
			}
			if empty {
				s.log.attach(s.Subscription)
			}
		case s.passMark() || s.takeReplay():
			s.mu.Unlock()
		case s.takeLog():
			s.mu.Unlock()
			return true
		default:
			s.park()
		}
	}
}

// takeFeed takes the next run of the initial set or replay and returns false at its end.
func (s *reader[T]) takeFeed() bool {
	s.mu.Lock()
	s.endRun()
	s.mu.Unlock()
	buf := s.emptyBuffer()
	for len(buf) < cap(buf) && !s.stopped.Load() {
		key, obj, ok := s.feed.next()
		if !ok {
			break
		}
		buf = append(buf, s.feed.notification(key, obj))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(buf) > 0 && !s.stopped.Load() {
		s.beginRun(run[T]{calls: buf})
		return true
	}
	s.feed, s.buffer, s.replaying = nil, nil, false
	return false
}

// takeBacklog takes the next run of the backlog, under mu.
func (s *reader[T]) takeBacklog() bool {
	buf, synced := s.backlog.take(s.emptyBuffer())
	if synced {
		close(s.synced)
	}
	if len(buf) > 0 {
		s.beginRun(run[T]{calls: buf, counted: true})
	}
	return len(buf) > 0
}

// passMark passes the synced mark of the log if it stands here, under mu.
func (s *reader[T]) passMark() bool {
	if s.pos != s.syncAt {
		return false
	}
	s.syncAt = noMark
	close(s.synced)
	return true
}

// takeReplay begins the replay if it stands here, under mu.
func (s *reader[T]) takeReplay() bool {
	if s.replay == nil || s.pos != s.replayAt {
		return false
	}
	s.feed, s.replay, s.replaying = &feed[T]{next: s.replay, resync: true}, nil, true
	return true
}

// takeLog takes the next run of the log, up to the next mark, under mu.
func (s *reader[T]) takeLog() bool {
	to := min(s.log.end.Load(), s.syncAt)
	if s.replay != nil {
		to = min(to, s.replayAt)
	}
	if s.pos == to {
		return false
	}
	r := run[T]{first: s.pos, fromLog: true, counted: true}
	s.node, r.calls = s.node.run(s.pos, to)
	s.pos += uint64(len(r.calls))
	s.beginRun(r)
	return true
}

// beginRun makes r the run, under mu.
func (s *reader[T]) beginRun(r run[T]) {
	s.run = r
	s.stamp()
}

// endRun accounts for the run and lets go of it, under mu.
func (s *reader[T]) endRun() {
	if s.made > s.timed {
		s.stamp()
	}
	s.delivered += uint64(s.made)
	if !s.run.fromLog {
		clear(s.run.calls)
	}
	s.run, s.made, s.timed = run[T]{}, 0, 0
	s.index.Store(0)
}

// emptyBuffer returns the buffer for a run that is not of the log.
func (s *reader[T]) emptyBuffer() []change.Change[T] {
	if s.buffer == nil {
		s.buffer = make([]change.Change[T], 0, bufferSize)
	}
	return s.buffer[:0]
}

// park waits for wake. It is entered under mu and leaves it: marks set and removals from then on
// find the subscription parked; for notifications that were published meanwhile, it looks again.
func (s *reader[T]) park() {
	s.parked.Store(true)
	missed := s.log.end.Load() != s.pos || s.stopped.Load()
	s.mu.Unlock()
	if missed && s.parked.CompareAndSwap(true, false) {
		return
	}
	if s.log.busy.Add(-1) == 0 {
		s.log.mu.Lock()
		s.log.reclaimLocked()
		s.log.mu.Unlock()
	}
	<-s.wakeup
}
