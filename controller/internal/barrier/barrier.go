package barrier

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/written"
)

const (
	// eventWait is the least time for which a settled write is kept, so that its event is recognised.
	eventWait = time.Minute
	// NoSlot is in place of a slot for controllers without slots.
	NoSlot = -1
)

// Barrier keeps the writes of the calls of each key until the caches show them. An event leads to
// the writes of its object, and a timer to the keys that are due. All times are since epoch.
type Barrier struct {
	epoch time.Time
	timer *time.Timer   // fires when the first key is due, for a call of CheckDue
	asks  chan struct{} // receives when toAsk has a key
	// records counts the calls whose writes are recorded. It changes under mu.
	records atomic.Uint64

	mu    sync.Mutex // guards the rest
	alarm time.Duration
	ledger
	toAsk  []string // the keys that the server is to be asked about
	newest newestVersions
	// answered is the last write to each resource, also to one that no informer follows.
	answered map[schema.GroupResource]Last
	open     int                    // the number of writes that are not settled
	openIn   map[int]map[string]int // of these, the number by the slot of the call, and by key
}

// Event is a new state of an object in a cache.
type Event struct {
	caches.State
	Writer  string        // the key whose call made it, "" if others did
	Sent    time.Duration // the time at which the write of that call was sent
	Came    time.Duration // the time at which a running call kept the event
	records uint64        // Barrier.records, read when the writer was looked for
}

// New returns a barrier without writes.
func New() *Barrier {
	b := &Barrier{epoch: time.Now(), timer: time.NewTimer(0)}
	b.newest, b.openIn = newestVersions{}, map[int]map[string]int{}
	b.answered = map[schema.GroupResource]Last{}
	b.timer.Stop()
	b.asks = make(chan struct{}, 1)
	b.keys, b.objects = map[string]*pending{}, map[caches.ObjectID]*writes{}
	return b
}

// Now returns the time of events.
func (b *Barrier) Now() time.Duration { return time.Since(b.epoch) }

// Alarm receives when CheckDue is to be called.
func (b *Barrier) Alarm() <-chan time.Time { return b.timer.C }

// setTimer makes the timer fire when the first key is due.
func (b *Barrier) setTimer() {
	if len(b.due) > 0 && (b.alarm == 0 || b.due[0].due < b.alarm) {
		b.alarm = b.due[0].due
		b.timer.Reset(b.alarm - b.Now())
	}
}

// Restart prepares the barrier for a run: no key is parked, no question to the server is under way,
// and no event is recognised as that of a write, as every key is called.
func (b *Barrier) Restart() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.toAsk = nil
	for _, p := range b.keys {
		p.parked, p.asking = false, false
		for w := range p.all(ofKey) {
			w.echoed = true
		}
		b.checkKey(p)
		b.drop(p)
	}
}

// Record adds the writes of a call of a key in a slot, or NoSlot. informers returns those in whose
// caches the writes may show. Record sets the writer of the events that have come during the call
// and were led to by these writes.
func (b *Barrier) Record(
	key string, slot int, writes []guard.Write, came []*Event, informers func() []*caches.Informer,
) {
	if len(writes) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records.Add(1)
	p := b.obtain(key, b.Now()+eventWait)
	of := map[caches.ObjectID][]*Event{}
	for _, ev := range came {
		of[ev.ObjectID] = append(of[ev.ObjectID], ev)
	}
	for i := range writes {
		b.noteLast(&writes[i])
	}
	for _, f := range informers() { // under the lock: Forget comes before or after
		for i := range writes {
			if f.IsOf(writes[i].Resource) {
				w := b.newWrite(&writes[i], p, slot, f)
				b.add(w, of[w.id()])
			}
		}
	}
	b.drop(p)
	b.setTimer()
}

// newWrite returns the entry for a write of a key, which waits for an informer.
func (b *Barrier) newWrite(w *guard.Write, of *pending, slot int, by *caches.Informer) *write {
	made := &write{
		Write: written.Of(w, b.epoch), by: by, of: of, slot: slot, at: b.Now(), sent: w.Sent.Sub(b.epoch),
	}
	if made.Object == of.key {
		made.Object = of.key // one string for both
	}
	return made
}

// add adds a write, which replaces earlier ones of the same object. It finds its event among the
// events of the object that have come.
func (b *Barrier) add(w *write, came []*Event) {
	now := b.Now()
	if w.Conflict || w.Unknown {
		w.echoed = true // it has no event, or one that cannot be recognised
	} else {
		for _, ev := range came {
			if ev.IsBy(w.Version, w.UID, w.Gone) {
				now = ev.Came
				b.recognise(w, ev)
			}
		}
		if w.mustShow() { // else it may never show
			b.noteVersion(w, w.Version)
		}
	}
	for earlier := range b.earlier(w) {
		if w.Replaces(&earlier.Write) {
			b.settle(earlier)
		}
	}
	b.count(w, 1)
	b.insert(w)
	b.check(w, now)
}

// recognise records the event of a write.
func (b *Barrier) recognise(w *write, ev *Event) {
	ev.Writer, ev.Sent, w.echoed, w.hasVersion = w.of.key, w.sent, true, ev.Version != ""
	b.noteVersion(w, ev.Version)
}

// count adds to the number of writes that are not settled.
func (b *Barrier) count(w *write, n int) {
	w.of.open += int32(n)
	b.open += n
	if w.slot == NoSlot {
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

// settle records that no call waits for a write any more.
func (b *Barrier) settle(w *write) {
	if !w.settled {
		w.settled = true
		b.count(w, -1)
	}
	if w.echoed || b.Now()-w.at >= eventWait {
		b.remove(w)
	}
}

// check settles a write that the cache shows at the time now. The end of an object does not show
// before the earlier writes of the object: a cache without it may yet show them.
func (b *Barrier) check(w *write, now time.Duration) {
	if w.held && !w.echoed && !w.Held(w.by, now) { // the cache follows another history of the server
		w.settled, w.held = false, false
		b.count(w, 1)
	}
	if !w.settled {
		if !w.Held(w.by, now) || w.Gone && b.follows(w) {
			return
		}
		switch {
		case !w.Gone && !w.Unknown && !w.Conflict:
			if reached, ok := w.Reached(w.by); ok && written.Reaches(reached, w.Version) {
				b.noteVersion(w, w.Version)
			}
		case w.Gone && !w.hasVersion: // the version of the end is not known, and is not later
			reached, _ := w.Reached(w.by)
			b.noteVersion(w, reached)
		}
		w.measure(now)
		w.held = true
	}
	b.settle(w)
}

// checkKey checks the writes of a key, and reports whether all of them are settled.
func (b *Barrier) checkKey(p *pending) bool {
	now := b.Now()
	for w := range p.all(ofKey) {
		b.check(w, now)
	}
	return p.open == 0
}

// Hold reports whether a key is to be parked. If it is not, unshown reports whether a write was
// settled by asking.
func (b *Barrier) Hold(key string) (parked, unshown bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.keys[key]
	switch {
	case p == nil:
		return false, false
	case b.checkKey(p):
		unshown = p.unshown
		p.parked, p.unshown, p.problem = false, false, nil
		b.drop(p)
		return false, unshown
	case !p.parked:
		p.parked, p.since = true, b.Now()
		b.plan(p)
		b.setTimer()
	}
	return true, false
}

// plan sets the time at which a parked key is due next, and decides whether the server is to be
// asked now.
func (b *Barrier) plan(p *pending) {
	now := b.Now()
	next, ask := now+written.AskAgain, false
	for w := range p.all(ofKey) {
		if w.settled {
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
	b.toAsk = append(b.toAsk, p.key)
	select {
	case b.asks <- struct{}{}:
	default:
	}
}

// CheckDue checks the keys that are due, when the alarm has fired. It returns the keys that are no
// longer held back.
func (b *Barrier) CheckDue() (wake []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.Now()
	for len(b.due) > 0 && b.due[0].due <= now {
		p := b.due[0]
		switch settled := b.checkKey(p); {
		case p.parked && !settled:
			b.plan(p)
			continue
		case p.parked:
			wake = append(wake, p.key)
		}
		b.schedule(p, now+eventWait)
		b.drop(p)
	}
	b.alarm = 0
	b.setTimer()
	return wake
}

// Event records an event, and sets its writer if a call made it. It returns the keys that waited
// for the object and are no longer held back.
func (b *Barrier) Event(ev *Event) (wake []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ev.records = b.records.Load()
	for w := range b.objects[ev.ObjectID].all(ofObject) {
		p, open := w.of, w.of.open
		if !w.echoed && ev.IsBy(w.Version, w.UID, w.Gone) {
			b.recognise(w, ev)
		} else if order, ok := delta.CompareDecimal(ev.Version, w.Version); ok && order > 0 && !w.Gone {
			w.echoed = true // the event does not come any more
		}
		b.check(w, b.Now())
		if p.parked && p.open == 0 && open > 0 {
			wake = append(wake, p.key)
		}
		b.drop(p)
	}
	return wake
}

// IsOutdated reports whether writes were recorded since the writer of an event was looked for.
func (b *Barrier) IsOutdated(ev *Event) bool { return b.records.Load() != ev.records }

// Forget drops the writes that wait for an informer that is no longer followed. It returns the keys
// that are no longer held back.
func (b *Barrier) Forget(by *caches.Informer) (wake []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, p := range b.keys {
		for w := range p.all(ofKey) {
			if w.by == by {
				w.echoed = true
				b.settle(w)
			}
		}
		if p.parked && p.open == 0 {
			wake = append(wake, key)
		}
		b.drop(p)
	}
	return wake
}

// NewHistory asks the server about the writes that wait for an informer, which follows another
// history of the server: some may have been made in the one before. It returns the keys that are no
// longer held back.
func (b *Barrier) NewHistory(by *caches.Informer) (wake []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lower(by)
	for key, p := range b.keys {
		wasHeld := p.open > 0
		for w := range p.all(ofKey) {
			if w.by == by {
				b.check(w, b.Now())
			}
			if w.by == by && !w.settled {
				w.Unknown, w.Conflict, w.Until, w.echoed = true, false, b.Now(), true
			}
		}
		switch {
		case p.parked && p.open > 0:
			b.plan(p)
		case p.parked && wasHeld:
			wake = append(wake, key)
		}
		b.drop(p)
	}
	b.setTimer()
	return wake
}

// Release records that a key is no longer parked: no call is made for it.
func (b *Barrier) Release(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.keys[key]; p != nil {
		p.parked = false
		b.drop(p)
	}
}

// Unsettled returns the keys with a write that a call in one of some slots has made, and that is
// not settled.
func (b *Barrier) Unsettled(slots slot.Set) (keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n := range slots.Slots() {
		keys = slices.AppendSeq(keys, maps.Keys(b.openIn[n]))
	}
	return keys
}

// Open returns the number of writes that are not settled.
func (b *Barrier) Open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open
}

// Keys returns the keys that are parked, or have writes.
func (b *Barrier) Keys() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.keys))
}

// Held is a key that is held back, and the first write that it waits for. It has the fields of
// controller.Parked.
type Held struct {
	Key      string
	Since    time.Time
	Informer string
	Object   string
	Version  string
	Unknown  bool
	Problem  string
}

// Held describes a key. ok is false if it is not parked, or not held back any more.
func (b *Barrier) Held(key string) (h Held, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.keys[key]
	if p == nil || !p.parked || p.open == 0 {
		return Held{}, false
	}
	w := p.first
	for w.settled {
		w = w.links[ofKey].next
	}
	h = Held{
		Key: p.key, Since: b.epoch.Add(p.since), Informer: w.by.Name(), Object: w.Object,
		Version: w.Version, Unknown: w.Unknown,
	}
	if p.problem != nil {
		h.Problem = p.problem.Error()
	}
	return h, true
}
