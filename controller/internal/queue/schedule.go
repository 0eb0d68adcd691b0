package queue

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
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
	waiting int // the flows that have a queued key
	ready   ring
	full    []*flow  // the flows that have a queued key and hold all workers but one; two at most
	started [2]start // the last start of any flow, and the last one of another flow
	timers  timers
	lists   [BackingOff + 1]list // the entries in a state, except for Idle and Queued
	queued  [bands]int
	changed map[uint32]int64 // the time of the first change of each running entry marked changed
	// promoted has the time at which an entry was queued that has changed its band since.
	promoted map[uint32]int64
	// least has, for entries that back off, the time before which no change makes them ready.
	least map[uint32]int64
}

func newSchedule[R comparable](o Options[R]) *schedule[R] {
	s := &schedule[R]{
		o: o, workers: o.Workers, flows: map[string]*flow{}, changed: map[uint32]int64{},
		promoted: map[uint32]int64{}, least: map[uint32]int64{},
	}
	s.timers.entries, s.index = &s.entries, newIndex(&s.entries)
	s.started = [2]start{{at: never}, {at: never}}
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
		if a.Band == Changes && !a.Echo {
			s.hasten(i, s.gate(i))
		}
	}
}

// requeue requests a run of a key now, which replaces the one that its last result has requested.
// It ends the wait of a failed key, except for the part that the outcome has named.
func (s *schedule[R]) requeue(now int64, key string) {
	i := s.entry(key)
	e := s.entries.at(i)
	if e.state == BackingOff {
		s.hasten(i, max(now, s.least[i]))
	} else {
		s.timers.stop(i)
	}
	s.add(now, key, Ask[R]{Band: Requeues, Reason: s.o.Requeued})
}

// gate returns the earliest time at which a change ends the wait of a failed key: after the first
// delay, and after the delay that the outcome has named.
func (s *schedule[R]) gate(i uint32) int64 {
	return max(after(s.entries.at(i).since, s.o.FirstDelay), s.least[i])
}

// hasten ends the wait of a failed key at a time, unless it ends earlier.
func (s *schedule[R]) hasten(i uint32, earliest int64) {
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
func (s *schedule[R]) erase(now int64, i uint32) {
	e := s.entries.at(i)
	s.takeReasons(e, nil)
	s.timers.stop(i)
	switch e.state {
	case Queued:
		s.dequeue(i)
		delete(s.promoted, i)
		s.settle(now, e.flow)
	case Parked, BackingOff:
		s.lists[e.state].remove(&s.entries, i)
		delete(s.least, i)
	}
	s.forgetFailures(e.key)
	s.forget(i)
}

// enqueue appends an entry that is in no list to those of its flow and band.
func (s *schedule[R]) enqueue(now int64, i uint32, b Band) {
	e := s.entries.at(i)
	e.state, e.since, e.band = Queued, now, b
	e.flow.bands[b].push(&s.entries, i)
	if e.flow.queued++; e.flow.queued == 1 {
		s.waiting++
	}
	s.queued[b]++
	s.settle(now, e.flow)
}

// promote moves a queued entry to a more urgent band, unless its age has made it as urgent
// already.
func (s *schedule[R]) promote(now int64, i uint32, b Band) {
	e := s.entries.at(i)
	step := int64(s.o.Step)
	if b >= e.band || now+int64(b)*step >= e.since+int64(e.band)*step {
		return
	}
	if _, ok := s.promoted[i]; !ok {
		s.promoted[i] = e.since
	}
	s.dequeue(i)
	s.enqueue(now, i, b)
}

func (s *schedule[R]) dequeue(i uint32) {
	e := s.entries.at(i)
	e.flow.bands[e.band].remove(&s.entries, i)
	if e.flow.queued--; e.flow.queued == 0 {
		s.waiting--
	}
	s.queued[e.band]--
}

// never is a time before all others.
const never = math.MinInt64

// start is the start of a key.
type start struct {
	flow string
	at   int64
}

// alone is the time without starts of other flows after which a flow may hold all workers.
const alone = time.Minute

// aloneAt returns the time from which a flow is alone, if no other one gets a queued key.
func (s *schedule[R]) aloneAt(f *flow) int64 {
	other := s.started[0]
	if other.flow == f.name {
		other = s.started[1]
	}
	if other.at == never {
		return never
	}
	return after(other.at, alone)
}

// settle puts a flow that has changed into the ring, or takes it out, and does so with those that
// may be alone now, or not any more.
func (s *schedule[R]) settle(now int64, f *flow) {
	if len(s.full) == 0 || len(s.full) == 1 && s.full[0] == f {
		s.place(now, f)
		return
	}
	affected := slices.Clone(s.full)
	if !slices.Contains(affected, f) {
		affected = append(affected, f)
	}
	s.placeAll(now, affected)
}

// placeAll places flows in the order of their names.
func (s *schedule[R]) placeAll(now int64, flows []*flow) {
	slices.SortFunc(flows, func(a, b *flow) int { return strings.Compare(a.name, b.name) })
	for _, f := range flows {
		s.place(now, f)
	}
}

// place puts a flow into the ring, or takes it out.
func (s *schedule[R]) place(now int64, f *flow) {
	limit, isAlone := max(1, s.workers-1), s.waiting <= 1 && s.aloneAt(f) <= now
	isFull := f.queued > 0 && f.running >= limit
	switch at := slices.Index(s.full, f); {
	case isFull && at < 0:
		s.full = append(s.full, f)
	case !isFull && at >= 0:
		s.full = slices.Delete(s.full, at, at+1)
	}
	ready := f.queued > 0 && (f.running < limit || isAlone && f.running < s.workers)
	switch {
	case ready && !s.ready.contains(f):
		s.ready.push(f)
	case !ready && s.ready.contains(f):
		s.ready.remove(f)
	}
}

// due returns the first time at which a timer ends, or a flow that waits for a worker is alone. ok
// is false without one.
func (s *schedule[R]) due() (at int64, ok bool) {
	if ok = len(s.timers.heap) > 0; ok {
		at = s.timers.heap[0].due
	}
	for _, f := range s.full {
		if s.waiting != 1 || f.running >= s.workers || s.ready.contains(f) {
			continue
		}
		if from := s.aloneAt(f); !ok || from < at {
			at, ok = from, true
		}
	}
	return at, ok
}

func (s *schedule[R]) setWorkers(now int64, n int) {
	s.workers = n
	s.placeAll(now, slices.Collect(maps.Values(s.flows)))
}

func (s *schedule[R]) expire(now int64) {
	if len(s.full) > 0 {
		s.placeAll(now, slices.Clone(s.full))
	}
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
	delete(s.least, i)
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
	since, wasPromoted := s.promoted[i]
	if !wasPromoted {
		since = e.since
	}
	delete(s.promoted, i)
	item := Item[R]{
		Key: e.key, entry: i, began: now, Failures: int(e.failures), Band: e.band,
		Waited: time.Duration(now - since), MoreReasons: int(e.untold),
	}
	item.Reasons = s.takeReasons(e, buf)
	e.band, e.marks = none, 0
	s.enter(now, i, Running)
	f.running++
	if s.started[0].flow != f.name {
		s.started[1] = s.started[0]
	}
	s.started[0] = start{f.name, now}
	s.ready.turn = f.next
	s.settle(now, f)
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
	if !s.entries.has(i) || s.entries.at(i).key != item.Key || s.entries.at(i).state != Running {
		return fmt.Errorf("queue: Done of %q, which is not running", item.Key)
	}
	e := s.entries.at(i)
	s.lists[Running].remove(&s.entries, i)
	delete(s.changed, i)
	e.flow.running--
	s.settle(now, e.flow)
	switch o.Result {
	case Park:
		s.park(now, i, item)
		return nil
	case Retry:
		s.backOff(now, i, o)
		return nil
	}
	e.failures = 0
	s.forgetFailures(e.key)
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
