package queue

import (
	"sync"
	"time"
)

// Queue hands keys to workers. Use [New]. Its methods may be called from any goroutine.
type Queue[R comparable] struct {
	epoch time.Time

	mu      sync.Mutex // guards the rest
	free    *sync.Cond // workers wait for a key
	s       *schedule[R]
	timer   *time.Timer // calls tick; nil until the first delay
	alarm   int64       // the time at which the timer fires; 0 if it is not set
	closed  bool
	metrics *metrics // nil without a provider
}

// New returns an empty queue. It starts no goroutine.
func New[R comparable](o Options[R]) *Queue[R] {
	o = o.withDefaults()
	q := &Queue[R]{
		epoch: time.Now(), s: newSchedule(o),
		metrics: newMetrics(o.Metrics, o.Name, o.panicsOf("Metrics")),
	}
	q.free = sync.NewCond(&q.mu)
	return q
}

func (q *Queue[R]) now() int64 { return int64(time.Since(q.epoch)) }

// Add requests a run of a key. An ask for a queued key adds no other run; an ask for a running
// key leads to another run afterwards. After Close, Add does nothing.
func (q *Queue[R]) Add(key string, a Ask[R]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.s.add(q.now(), key, a)
	q.changed()
}

// Requeue requests a run of a key now, which replaces the one after the delay of its last result.
// The end of a run that is under way does not undo it.
func (q *Queue[R]) Requeue(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.s.requeue(q.now(), key)
	q.changed()
}

// Get waits for a key, which is then Running until Done. Workers are numbered from 0: Get returns
// false to workers beyond the number of workers, and to all workers after Close. The reasons of
// the item are appended to buf.
func (q *Queue[R]) Get(worker int, buf []Counted[R]) (Item[R], bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		if q.closed || worker >= q.s.workers {
			q.free.Signal() // this worker may have been woken in the place of another
			return Item[R]{}, false
		}
		now := q.now()
		q.s.expire(now)
		if item, ok := q.s.take(now, buf); ok {
			q.metrics.started(item.Waited)
			q.changed()
			return item, true
		}
		q.free.Wait()
	}
}

// Done ends the run of an item that Get has returned.
func (q *Queue[R]) Done(item Item[R], o Outcome) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	if err := q.s.done(now, item, o); err != nil {
		return err
	}
	q.metrics.ended(time.Duration(now-item.began), o.Result)
	q.changed()
	return nil
}

// Wake queues a key if it is parked. If it is running, the end of the run does not park it.
func (q *Queue[R]) Wake(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i, ok := q.s.index.get(key)
	if !ok || q.closed {
		return
	}
	if state := q.s.entries.at(i).state; state == Parked || state == Running {
		q.s.wake(q.now(), i)
		q.changed()
	}
}

// WakeAll calls Wake for every key.
func (q *Queue[R]) WakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	for i := q.s.lists[Running].first; i != nobody; i = q.s.entries.at(i).next {
		q.s.wake(q.now(), i)
	}
	for i := q.s.lists[Parked].first; i != nobody; i = q.s.lists[Parked].first {
		q.s.wake(q.now(), i)
	}
	q.changed()
}

// Failures returns the number of failures of a key in a row.
func (q *Queue[R]) Failures(key string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i, ok := q.s.index.get(key); ok {
		return int(q.s.entries.at(i).failures)
	}
	return 0
}

// Has reports whether a key is queued, runs, is parked, backs off, or waits for a requeue.
func (q *Queue[R]) Has(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.s.index.get(key)
	return ok
}

// Reset forgets the failures of a key.
func (q *Queue[R]) Reset(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.s.reset(key)
}

// All returns the keys that are not idle, or wait for a requeue.
func (q *Queue[R]) All() (keys []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, place := range q.s.index.slots {
		if place.entry != 0 {
			keys = append(keys, q.s.entries.at(place.entry-1).key)
		}
	}
	return keys
}

// Forget forgets keys, except for those that run. It returns the number of keys that were queued.
func (q *Queue[R]) Forget(keys []string) (queued int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := total(q.s.queued)
	for _, key := range keys {
		if i, ok := q.s.index.get(key); ok && q.s.entries.at(i).state != Running {
			q.s.erase(q.now(), i)
		}
	}
	q.changed()
	return before - total(q.s.queued)
}

// SetWorkers changes the number of workers. Workers beyond it leave with their next Get.
func (q *Queue[R]) SetWorkers(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.s.setWorkers(q.now(), max(n, 1))
	q.free.Broadcast()
}

// Close ends every Get. Keys that are added later are ignored. Running keys stay until their Done.
func (q *Queue[R]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.metrics.depth([bands]int{})
	if q.timer != nil {
		q.timer.Stop()
	}
	q.free.Broadcast()
}

// changed wakes a worker if a key is ready, and sets the timer for the first delay that ends.
func (q *Queue[R]) changed() {
	if q.s.ready.turn != nil {
		q.free.Signal()
	}
	if q.closed {
		return
	}
	q.metrics.depth(q.s.queued)
	due, ok := q.s.due()
	if !ok || q.alarm != 0 && q.alarm <= due {
		return
	}
	now := q.now()
	if due <= now {
		q.s.expire(now)
		q.changed()
		return
	}
	q.alarm = due
	wait := time.Duration(due - now)
	if q.timer == nil {
		q.timer = time.AfterFunc(wait, q.tick)
	} else {
		q.timer.Reset(wait)
	}
}

// tick is called by the timer.
func (q *Queue[R]) tick() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.alarm = 0
	q.s.expire(q.now())
	q.changed()
}
