package controller

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// echoKept is the least time for which an own write that shows is kept, so that its event is
// recognised.
const echoKept = time.Minute

// barrier keeps the writes of the calls of each key until the caches show them (C3). It outlives the
// runs of its controller, as the caches do. An event leads to the writes of its object, and a timer
// to the keys that are due. All times are since epoch.
type barrier[T tidings.Object] struct {
	epoch time.Time
	timer *time.Timer   // fires when the first key is due, for a call of overdue
	asks  chan struct{} // receives when toAsk has a key
	// records counts the calls whose writes are recorded. It changes under mu.
	records atomic.Uint64

	mu    sync.Mutex // guards the rest
	alarm time.Duration
	ledger
	asked  []string // the keys that the server is to be asked about
	newest newestVersions
	// answered is the last write to each resource, also to one that no informer follows.
	answered map[schema.GroupResource]last
	open     int                    // the number of writes that do not show
	openIn   map[int]map[string]int // of these, the number by the slot of the call, and by key
}

// change is a new state of an object, which leads to a call of a key.
type change struct {
	objectID
	version string
	deleted string // the UID of the object, if the change is its end
	why     why
	isNew   bool          // if others made it, earlier failures of the key do not count
	writer  string        // the key whose call made it
	sent    time.Duration // the time at which the write of that call was sent
	came    time.Duration // the time at which a running call kept it
	records uint64        // barrier.records, read when the writer was looked for
}

func newBarrier[T tidings.Object]() *barrier[T] {
	b := &barrier[T]{epoch: time.Now(), timer: time.NewTimer(0)}
	b.newest, b.openIn = newestVersions{}, map[int]map[string]int{}
	b.answered = map[schema.GroupResource]last{}
	b.timer.Stop()
	b.asks = make(chan struct{}, 1)
	b.keys, b.objects = map[string]*pending{}, map[objectID]*writes{}
	return b
}

func (b *barrier[T]) now() time.Duration { return time.Since(b.epoch) }

// setTimer makes the timer fire when the first key is due.
func (b *barrier[T]) setTimer() {
	if len(b.due) > 0 && (b.alarm == 0 || b.due[0].due < b.alarm) {
		b.alarm = b.due[0].due
		b.timer.Reset(b.alarm - b.now())
	}
}

// restart prepares the barrier for a run: no key is parked, no question to the server is under
// way, and no event is an echo, as every key is called.
func (b *barrier[T]) restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = nil
	for _, p := range b.keys {
		p.parked, p.asking = false, false
		for w := range p.all(ofKey) {
			w.echoed = true
		}
		b.prune(p)
		b.drop(p)
	}
}

// record adds the writes of a call of a key in a slot, or noSlot. followers returns the informers in
// whose caches the writes may show. record marks the changes that have come during the call and were
// made by these writes.
func (b *barrier[T]) record(
	key string, slot int, writes []guard.Write, came []change, followers func() []*caches.Informer,
) {
	if len(writes) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records.Add(1)
	now := b.now()
	p := b.obtain(key, now+echoKept)
	of := map[objectID][]*change{}
	for i := range came {
		of[came[i].objectID] = append(of[came[i].objectID], &came[i])
	}
	for i := range writes {
		b.note(&writes[i])
	}
	for _, f := range followers() { // under the lock: forget comes before or after
		for i := range writes {
			if f.IsOf(writes[i].Resource) {
				w := b.awaitedOf(&writes[i], p, slot, f)
				b.await(w, of[w.id()])
			}
		}
	}
	b.drop(p)
	b.setTimer()
}

// awaitedOf returns the entry for a write.
func (b *barrier[T]) awaitedOf(w *guard.Write, of *pending, slot int, by *caches.Informer) *awaited {
	a := &awaited{
		Write: written.Of(w, b.epoch), by: by, of: of, slot: slot, at: b.now(), sent: w.Sent.Sub(b.epoch),
	}
	if a.Object == of.key {
		a.Object = of.key // one string for both
	}
	return a
}

// await adds a write, which replaces earlier ones of the same object. It marks its event among the
// changes of the object that have come.
func (b *barrier[T]) await(w *awaited, came []*change) {
	now := b.now()
	if w.Conflict || w.Unknown {
		w.echoed = true // it has no event, or one that cannot be recognised
	} else {
		for _, ch := range came {
			if w.made(*ch) {
				ch.writer, ch.sent, w.echoed = w.of.key, w.sent, true
				w.hasVersion = ch.version != ""
				now = ch.came
				b.shows(w, ch.version)
			}
		}
		if w.mustShow() { // else it may never show
			b.shows(w, w.Version)
		}
	}
	for earlier := range b.earlier(w) {
		if w.Replaces(&earlier.Write) {
			b.show(earlier)
		}
	}
	b.count(w, 1)
	b.insert(w)
	b.look(w, now)
}

// count adds to the number of writes that do not show.
func (b *barrier[T]) count(w *awaited, n int) {
	w.of.open += int32(n)
	b.open += n
	if w.slot == noSlot {
		return
	}
	keys := b.openIn[w.slot]
	if keys == nil {
		keys = map[string]int{}
		b.openIn[w.slot] = keys
	}
	if keys[w.of.key] += n; keys[w.of.key] == 0 {
		delete(keys, w.of.key)
	}
}

// show records that no call waits for a write any more.
func (b *barrier[T]) show(w *awaited) {
	if !w.shown {
		w.shown = true
		b.count(w, -1)
	}
	if w.echoed || b.now()-w.at >= echoKept {
		b.remove(w)
	}
}

// look settles a write that the cache shows at the time now. The end of an object does not show
// before the earlier writes of the object: a cache without it may yet show them.
func (b *barrier[T]) look(w *awaited, now time.Duration) {
	if w.held && !w.echoed && !w.Held(w.by, now) { // the cache follows another history of the server
		w.shown, w.held = false, false
		b.count(w, 1)
	}
	if !w.shown {
		if !w.Held(w.by, now) || w.Gone && b.follows(w) {
			return
		}
		switch {
		case !w.Gone && !w.Unknown && !w.Conflict:
			if reached, ok := w.Reached(w.by); ok && written.Reaches(reached, w.Version) {
				b.shows(w, w.Version)
			}
		case w.Gone && !w.hasVersion: // the version of the end is not known, and is not later
			reached, _ := w.Reached(w.by)
			b.shows(w, reached)
		}
		b.measure(w, now)
		w.held = true
	}
	b.show(w)
}

// prune settles the writes of a key that the caches show, and reports whether all of them show.
func (b *barrier[T]) prune(p *pending) bool {
	now := b.now()
	for w := range p.all(ofKey) {
		b.look(w, now)
	}
	return p.open == 0
}

// hold reports whether a key is to be parked. unshown is true if a write was settled by asking.
func (b *barrier[T]) hold(key string) (parked, unshown bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.keys[key]
	switch {
	case p == nil:
		return false, false
	case b.prune(p):
		unshown = p.unshown
		p.parked, p.unshown, p.problem = false, false, nil
		b.drop(p)
		return false, unshown
	case !p.parked:
		p.parked, p.since = true, b.now()
		b.plan(p)
		b.setTimer()
	}
	return true, false
}

// plan sets the time at which a parked key is due next, and decides whether the server is to be
// asked now.
func (b *barrier[T]) plan(p *pending) {
	now := b.now()
	next, ask := now+askAfter, false
	for w := range p.all(ofKey) {
		if w.shown {
			continue
		}
		if due := w.Due(w.by, p.since); due > now {
			next = min(next, due)
		} else {
			ask = !p.asking
		}
	}
	b.schedule(p, next)
	if !ask {
		return
	}
	p.asking = true
	b.asked = append(b.asked, p.key)
	select {
	case b.asks <- struct{}{}:
	default:
	}
}

// overdue checks the keys that are due, when the timer has fired. It returns those that are no
// longer held back.
func (b *barrier[T]) overdue() (wake []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	for len(b.due) > 0 && b.due[0].due <= now {
		p := b.due[0]
		switch isHeld := b.prune(p); {
		case p.parked && !isHeld:
			b.plan(p)
			continue
		case p.parked:
			wake = append(wake, p.key)
		}
		b.schedule(p, now+echoKept)
		b.drop(p)
	}
	b.alarm = 0
	b.setTimer()
	return wake
}

// event records a change, and sets its writer if a call made it. It returns the keys that waited
// for the object and are no longer held back.
func (b *barrier[T]) event(ch *change) (wake []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ch.records = b.records.Load()
	for w := range b.objects[ch.objectID].all(ofObject) {
		p, open := w.of, w.of.open
		if !w.echoed && w.made(*ch) {
			ch.writer, ch.sent, w.echoed, w.hasVersion = p.key, w.sent, true, ch.version != ""
			b.shows(w, ch.version)
		} else if order, ok := delta.CompareDecimal(ch.version, w.Version); ok && order > 0 && !w.Gone {
			w.echoed = true // the event does not come any more
		}
		b.look(w, b.now())
		if p.parked && p.open == 0 && open > 0 {
			wake = append(wake, p.key)
		}
		b.drop(p)
	}
	return wake
}

// forget drops the writes that wait for a cache that is no longer followed. It returns the keys that are no
// longer held back.
func (b *barrier[T]) forget(by *caches.Informer) (wake []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, p := range b.keys {
		for w := range p.all(ofKey) {
			if w.by == by {
				w.echoed = true
				b.show(w)
			}
		}
		if p.parked && p.open == 0 {
			wake = append(wake, key)
		}
		b.drop(p)
	}
	return wake
}

// release records that a key is no longer parked: no call is made for it.
func (b *barrier[T]) release(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.keys[key]; p != nil {
		p.parked = false
		b.drop(p)
	}
}

// unshown returns the keys with a write that a call in one of some slots has made, and that does not
// show.
func (b *barrier[T]) unshown(slots slot.Set) (keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := range slots.Slots() {
		keys = slices.AppendSeq(keys, maps.Keys(b.openIn[n]))
	}
	return keys
}

// describe returns a description of each parked key that is held back.
func (b *barrier[T]) describe(keys []queue.KeyStats) (all []Parked) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range keys {
		p := b.keys[k.Key]
		if p == nil || !p.parked || p.open == 0 {
			continue
		}
		w := p.first
		for w.shown {
			w = w.links[ofKey].next
		}
		all = append(all, Parked{
			Key: p.key, Since: b.epoch.Add(p.since), Informer: w.by.Name(), Object: w.Object,
			Version: w.Version, Unknown: w.Unknown, Problem: errorText(p.problem),
		})
	}
	return all
}
