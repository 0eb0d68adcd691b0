package fights

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/source"
)

const (
	// fightAfter is the number of changes by others of a field that a call had written which make a
	// fight. loopAfter is the number of calls in a row which changed a field because of own writes
	// that make a loop.
	fightAfter, loopAfter = 5, 10
	// restAfter is the longest time between two such changes. After it, a fight or loop is over.
	restAfter = 10 * time.Minute

	// watchedAfter is the number of writes of an object after which its states are compared.
	watchedAfter = 2
	// clearedAfter is the number of writes without a sign of a fight or loop after which its states
	// are no longer compared.
	clearedAfter = 4
	// watchedFor is the least time for which an object is watched before another one may take its
	// place.
	watchedFor = time.Minute

	// maxWatched bounds the objects that are watched, maxFields their fields that are counted,
	// maxStates the states that are kept of each until a call of their key ends. maxWritten bounds the
	// objects whose writes are counted.
	maxWatched, maxFields, maxStates, maxWritten = 32, 64, 32, 1024
	// maxPaths bounds the fields of a Rewrite.
	maxPaths = 10
)

// wholeObject is the path of a creation or deletion.
const wholeObject = "(the object)"

// Detector finds the fights and the loops of a run. It compares the states of an object that was
// written twice, until it is clear that none of its fields flaps.
type Detector struct {
	ctx       context.Context // of log lines
	informers *caches.Set
	logger    *slog.Logger

	ids atomic.Pointer[watchedIDs] // the keys of watched

	mu      sync.Mutex // guards the rest
	written map[caches.ObjectID]writeCount
	watched map[caches.ObjectID]*object
}

// watchedIDs are the objects that are watched, for events, which take no lock. It does not change.
type watchedIDs struct {
	// some excludes most other objects, by the last characters of their keys: a look into the map
	// costs more.
	some [256]bool
	all  map[caches.ObjectID]bool
}

func (w *watchedIDs) has(id caches.ObjectID) bool { return w.some[mark(id.Key)] && w.all[id] }

// mark returns a number that most keys of the same length do not share.
func mark(key string) (n byte) {
	for i := max(len(key)-3, 0); i < len(key); i++ {
		n = n*31 + key[i]
	}
	return n + byte(len(key))
}

// writeCount counts the writes of an object.
type writeCount struct {
	times int
	last  time.Time
}

// New returns a detector for the calls of a controller with some informers. It logs the beginning
// and the end of fights and loops.
func New(ctx context.Context, informers *caches.Set, logger *slog.Logger) *Detector {
	d := &Detector{
		ctx: ctx, informers: informers, logger: logger,
		written: map[caches.ObjectID]writeCount{}, watched: map[caches.ObjectID]*object{},
	}
	d.publishIDs()
	return d
}

// isIdle reports whether no object is watched.
func (d *Detector) isIdle() bool { return len(d.ids.Load().all) == 0 }

// publishIDs is called when another object is watched, or one is no longer watched.
func (d *Detector) publishIDs() {
	ids := &watchedIDs{all: make(map[caches.ObjectID]bool, len(d.watched))}
	for id := range d.watched {
		ids.some[mark(id.Key)], ids.all[id] = true, true
	}
	d.ids.Store(ids)
}

// keep keeps a state of a watched object until its writer is known.
func (d *Detector) keep(st state) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.watched[st.ObjectID]
	if o == nil {
		return
	}
	if len(o.states) == maxStates {
		o.states = slices.Delete(o.states, 0, 1)
	}
	o.states = append(o.states, st)
}

// Rewrite is a fight or a loop. It has the fields of controller.Rewrite.
type Rewrite struct {
	Key      string
	Informer string
	Object   string
	Fields   []string
	Manager  string
	Other    string
	Times    int
	Since    time.Time
	Last     time.Time
}

// notice is a fight or a loop, or its beginning or end.
type notice struct {
	Rewrite
	id           caches.ObjectID
	loop, begins bool
}

// CallEnded records a call of a key with its writes. loops reports whether own writes alone have
// led to it.
func (d *Detector) CallEnded(key string, began time.Time, loops bool, writes []guard.Write) {
	if len(writes) == 0 && d.isIdle() {
		return
	}
	var own []ownWrite
	for i := range writes {
		w := &writes[i]
		if f := d.informers.Of(w.Resource); f != nil && !w.Conflict && w.Name != "" {
			id := caches.ObjectID{Informer: f.Number, Key: source.Key(w.Namespace, w.Name)}
			own = append(own, ownWrite{id, *w, loops})
		}
	}
	d.log(d.ended(key, began, loops, own))
}

// Check logs the fights and loops that are over, and drops the objects that are no longer written.
func (d *Detector) Check() { d.log(d.expire()) }

// ended records a call of a key with its writes. It returns the fights and loops that have begun.
func (d *Detector) ended(
	key string, began time.Time, loops bool, writes []ownWrite,
) (all []notice) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for _, w := range writes {
		switch o := d.watched[w.ObjectID]; {
		case o == nil:
			d.countWrite(key, w.ObjectID, now)
		case w.Unknown: // its state would count as a change of others
			o.key, o.written, o.own, o.states = key, now, nil, nil
			clear(o.fields)
		default:
			o.key, o.written = key, now
			o.own = append(o.own, w)
			o.own = o.own[max(len(o.own)-maxStates, 0):]
		}
	}
	for id, o := range d.watched {
		if o.key != key {
			continue
		}
		o.attribute(began)
		of := func(w ownWrite) bool { return w.ObjectID == id }
		if !loops || !slices.ContainsFunc(writes, of) {
			o.rest()
		}
		all = o.notices(all, id, now)
		if o.clear >= clearedAfter {
			d.drop(id)
		}
	}
	return all
}

// countWrite counts a write of an object that is not watched, and watches it after several.
func (d *Detector) countWrite(key string, id caches.ObjectID, now time.Time) {
	c := d.written[id]
	if now.Sub(c.last) > restAfter {
		c.times = 0
	}
	c.times, c.last = c.times+1, now
	switch {
	case c.times >= watchedAfter && d.makeRoom(now):
		delete(d.written, id)
		d.watched[id] = &object{
			key: key, since: now, written: now, fields: map[string]*field{},
		}
		d.publishIDs()
		return
	case len(d.written) >= maxWritten:
		clear(d.written)
	}
	d.written[id] = c
}

// makeRoom reports whether another object can be watched. It drops the one that was watched for the
// longest time without a sign of a fight or loop.
func (d *Detector) makeRoom(now time.Time) bool {
	if len(d.watched) < maxWatched {
		return true
	}
	var oldest caches.ObjectID
	since := now.Add(-watchedFor)
	found := false
	for id, o := range d.watched {
		if !o.hasSigns() && !o.since.After(since) {
			oldest, since, found = id, o.since, true
		}
	}
	if found {
		d.drop(oldest)
	}
	return found
}

func (d *Detector) drop(id caches.ObjectID) {
	delete(d.watched, id)
	d.publishIDs()
}

// expire returns the fights and loops that are over, and drops the objects that are no longer
// written.
func (d *Detector) expire() (all []notice) {
	if d.isIdle() {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for id, o := range d.watched {
		all = o.notices(all, id, now)
		if !o.fights && !o.loops && now.Sub(o.written) > restAfter {
			d.drop(id)
		}
	}
	return all
}

// List returns the present fights and loops, the oldest first.
func (d *Detector) List() (fights, loops []Rewrite) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for id, o := range d.watched {
		if fight, ok := o.fight(now); ok {
			fights = append(fights, d.named(fight, id))
		}
		if loop, ok := o.loop(now); ok {
			loops = append(loops, d.named(loop, id))
		}
	}
	oldest := func(a, b Rewrite) int { return a.Since.Compare(b.Since) }
	slices.SortFunc(fights, oldest)
	slices.SortFunc(loops, oldest)
	return fights, loops
}

// named returns a fight or loop with its object.
func (d *Detector) named(r Rewrite, id caches.ObjectID) Rewrite {
	r.Informer, r.Object = d.informers.NameOf(id.Informer), id.Key
	return r
}

// log logs the beginning and the end of fights and loops.
func (d *Detector) log(all []notice) {
	for _, n := range all {
		level, text := slog.LevelInfo, "others and calls do not change the same fields in turn any more"
		switch {
		case n.loop && n.begins:
			level, text = slog.LevelWarn, "calls write the same fields again because of their own writes"
		case n.loop:
			text = "calls do not write the same fields again because of their own writes any more"
		case n.begins:
			level, text = slog.LevelWarn, "others and calls change the same fields in turn"
		}
		attrs := []any{"key", n.Key, "informer", d.informers.NameOf(n.id.Informer), "object", n.id.Key}
		if n.begins {
			attrs = append(attrs, "fields", n.Fields, "manager", n.Manager, "times", n.Times)
		}
		if n.begins && !n.loop {
			attrs = append(attrs, "other", n.Other)
		}
		d.logger.Log(d.ctx, level, text, attrs...)
	}
}
