package queue

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// schedule is the state of a queue. It has no clock: times are nanoseconds since any moment, and
// never go back. Equal calls lead to equal states.
type schedule[R comparable] struct {
	o       Options[R]
	workers int

	index   index
	entries slab[entry]
	reasons slab[reason[R]]
	flows   map[string]*flow
	ready   ring
	timers  timers
	lists   [BackingOff + 1]list // the entries in a state, except for Idle and Queued
	queued  [bands]int
	changed map[uint32]int64 // the time of the first change, of each running entry with the mark changed
}

func newSchedule[R comparable](o Options[R]) *schedule[R] {
	s := &schedule[R]{
		o: o, workers: o.Workers, flows: map[string]*flow{}, changed: map[uint32]int64{},
	}
	s.timers.entries, s.index = &s.entries, newIndex(&s.entries)
	for i := range s.lists {
		s.lists[i] = newList()
	}
	return s
}

// add requests a run of a key.
func (s *schedule[R]) add(now int64, key string, a Ask[R]) {
	i := s.entry(key)
	e := s.entries.at(i)
	s.note(e, Counted[R]{a.Reason, 1})
	switch e.state {
	case Idle:
		s.enqueue(now, i, a.Band)
	case Queued:
		s.promote(now, i, a.Band)
	case Running:
		e.band = min(e.band, a.Band)
		if a.Band == Changes && !a.Echo && !e.marks.has(changed) {
			e.marks |= changed
			s.changed[i] = now
		}
	case Parked:
		e.band = min(e.band, a.Band)
	case BackingOff:
		e.band = min(e.band, a.Band)
		if a.Band == Changes && !a.Echo && !e.marks.has(firm) {
			s.hasten(i, e)
		}
	}
}

// requeue requests a run of a key now, which replaces the one that its last result has requested.
func (s *schedule[R]) requeue(now int64, key string) {
	if i := s.entry(key); s.entries.at(i).state != BackingOff {
		s.timers.stop(i)
	}
	s.add(now, key, Ask[R]{Band: Requeues, Reason: s.o.Requeued})
}

// hasten ends the wait of a failed key, but not before the first delay has passed.
func (s *schedule[R]) hasten(i uint32, e *entry) {
	earliest := after(e.since, s.o.FirstDelay)
	if due, ok := s.timers.due(i); ok && earliest < due {
		s.timers.set(i, earliest)
	}
}

func (s *schedule[R]) entry(key string) uint32 {
	i, isNew := s.index.obtain(key)
	if !isNew {
		return i
	}
	name := s.o.Flow(key)
	f := s.flows[name]
	if f == nil {
		f = &flow{name: name, bands: [bands]list{newList(), newList(), newList()}}
		s.flows[name] = f
	}
	f.keys++
	e := s.entries.at(i)
	e.flow, e.reasons, e.band = f, nobody, none
	return i
}

// forget removes the entry of an idle key without timers.
func (s *schedule[R]) forget(i uint32) {
	e := s.entries.at(i)
	if e.flow.keys--; e.flow.keys == 0 {
		delete(s.flows, e.flow.name)
	}
	s.index.release(i)
}

// erase forgets a key that does not run, with its requests and failures.
func (s *schedule[R]) erase(i uint32) {
	e := s.entries.at(i)
	s.takeReasons(e, nil)
	s.timers.stop(i)
	switch e.state {
	case Queued:
		s.dequeue(i)
		s.settle(e.flow)
	case Parked, BackingOff:
		s.lists[e.state].remove(&s.entries, i)
	}
	if s.o.Limiter != nil {
		s.o.Limiter.Forget(e.key)
	}
	s.forget(i)
}

// enqueue appends an entry that is in no list to those of its flow and band.
func (s *schedule[R]) enqueue(now int64, i uint32, b Band) {
	e := s.entries.at(i)
	e.state, e.since, e.band = Queued, now, b
	e.flow.bands[b].push(&s.entries, i)
	e.flow.queued++
	s.queued[b]++
	s.settle(e.flow)
}

// promote moves a queued entry to a more urgent band, unless its age has made it as urgent
// already.
func (s *schedule[R]) promote(now int64, i uint32, b Band) {
	e := s.entries.at(i)
	step := int64(s.o.Step)
	if b >= e.band || now+int64(b)*step >= e.since+int64(e.band)*step {
		return
	}
	s.dequeue(i)
	s.enqueue(now, i, b)
}

func (s *schedule[R]) dequeue(i uint32) {
	e := s.entries.at(i)
	e.flow.bands[e.band].remove(&s.entries, i)
	e.flow.queued--
	s.queued[e.band]--
}

// settle puts a flow into the ring, or takes it out.
func (s *schedule[R]) settle(f *flow) {
	ready := f.queued > 0 && f.running < max(1, s.workers-1)
	switch {
	case ready && !s.ready.contains(f):
		s.ready.push(f)
	case !ready && s.ready.contains(f):
		s.ready.remove(f)
	}
}

func (s *schedule[R]) setWorkers(n int) {
	s.workers = n
	for _, name := range slices.Sorted(maps.Keys(s.flows)) {
		s.settle(s.flows[name])
	}
}

func (s *schedule[R]) expire(now int64) {
	for {
		i, ok := s.timers.pop(now)
		if !ok {
			return
		}
		if e := s.entries.at(i); e.state == BackingOff {
			s.wake(now, i)
		} else {
			s.add(now, e.key, Ask[R]{Band: Requeues, Reason: s.o.Requeued})
		}
	}
}

// wake queues an entry that is parked or backing off, or keeps a running one from being parked.
func (s *schedule[R]) wake(now int64, i uint32) {
	e := s.entries.at(i)
	if e.state == Running {
		e.marks |= woken
		return
	}
	s.lists[e.state].remove(&s.entries, i)
	s.enqueue(now, i, min(e.band, Requeues))
}

// take starts the next key. Its reasons are appended to buf.
func (s *schedule[R]) take(now int64, buf []Counted[R]) (Item[R], bool) {
	f := s.ready.turn
	if f == nil {
		return Item[R]{}, false
	}
	i, _ := f.first(&s.entries, s.o.Step)
	s.dequeue(i)
	e := s.entries.at(i)
	item := Item[R]{
		Key: e.key, entry: i, began: now, Failures: int(e.failures), Band: e.band,
		Waited: time.Duration(now - e.since), MoreReasons: int(e.untold),
	}
	item.Reasons = s.takeReasons(e, buf)
	e.band, e.marks = none, 0
	s.enter(now, i, Running)
	f.running++
	s.ready.turn = f.next
	s.settle(f)
	return item, true
}

// enter puts an entry that is in no list into the list of a state.
func (s *schedule[R]) enter(now int64, i uint32, state State) {
	e := s.entries.at(i)
	e.state, e.since = state, now
	s.lists[state].push(&s.entries, i)
}

// done ends the run of an item.
func (s *schedule[R]) done(now int64, item Item[R], o Outcome) error {
	i := item.entry
	if i >= s.entries.used || s.entries.at(i).key != item.Key || s.entries.at(i).state != Running {
		return fmt.Errorf("queue: Done of %q, which is not running", item.Key)
	}
	e := s.entries.at(i)
	s.lists[Running].remove(&s.entries, i)
	delete(s.changed, i)
	e.flow.running--
	s.settle(e.flow)
	switch o.Result {
	case Park:
		s.park(now, i, item)
		return nil
	case Retry:
		s.backOff(now, i, o)
		return nil
	}
	e.failures = 0
	if s.o.Limiter != nil {
		s.o.Limiter.Forget(e.key)
	}
	s.timers.stop(i)
	if o.Result == Succeed && o.After > 0 {
		s.timers.set(i, after(now, o.After))
	}
	s.rest(now, i)
	return nil
}

// rest queues an entry that is in no list if a run of it is requested, and otherwise leaves it
// idle.
func (s *schedule[R]) rest(now int64, i uint32) {
	e := s.entries.at(i)
	if e.band != none {
		s.enqueue(now, i, e.band)
		return
	}
	e.state, e.since = Idle, now
	if e.timer == 0 {
		s.forget(i)
	}
}

// park holds a key back until it is woken, unless it was woken during its run. Its reasons are
// kept for its next run.
func (s *schedule[R]) park(now int64, i uint32, item Item[R]) {
	e := s.entries.at(i)
	for _, r := range item.Reasons {
		s.note(e, r)
	}
	e.untold.add(item.MoreReasons)
	e.band = min(e.band, item.Band)
	if e.marks.has(woken) {
		s.enqueue(now, i, min(e.band, Requeues))
	} else {
		s.enter(now, i, Parked)
	}
}

// backOff holds a failed key back for the delay of its failures, or for the delay of the outcome.
func (s *schedule[R]) backOff(now int64, i uint32, o Outcome) {
	e := s.entries.at(i)
	e.failures.add(1)
	delay := s.delay(e)
	if o.After > 0 {
		delay = o.After
	}
	e.band = min(e.band, Requeues)
	s.note(e, Counted[R]{s.o.Retried, 1})
	s.enter(now, i, BackingOff)
	s.timers.set(i, after(now, delay))
	switch {
	case o.After > 0:
		e.marks = firm
	case e.marks.has(changed):
		s.hasten(i, e)
	}
}

func (s *schedule[R]) delay(e *entry) time.Duration {
	if s.o.Limiter != nil {
		return s.o.Limiter.When(e.key)
	}
	d := s.o.FirstDelay
	for n := count(1); n < e.failures && d < s.o.MaxDelay; n++ {
		d = time.Duration(after(int64(d), d))
	}
	d = min(d, s.o.MaxDelay)
	return time.Duration(after(int64(d), time.Duration(s.o.Jitter()*float64(d)/10)))
}

// after returns the time that is d after another one, or the last one of all if that is later.
func after(t int64, d time.Duration) int64 {
	if int64(d) > math.MaxInt64-t {
		return math.MaxInt64
	}
	return t + int64(d)
}

// reset forgets the failures of a key that has another object.
func (s *schedule[R]) reset(key string) {
	if i, ok := s.index.get(key); ok {
		s.entries.at(i).failures = 0
		if s.o.Limiter != nil {
			s.o.Limiter.Forget(key)
		}
	}
}
