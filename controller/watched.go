package controller

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/controller/internal/caches"
)

const (
	// fightAfter is the number of changes by others of a field that a call had written which make
	// a fight. loopAfter is the number of calls in a row which changed a field because of own
	// writes that make a loop.
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
	// maxStates the states that are kept of each until a call of their key ends. maxWritten bounds
	// the objects whose writes are counted.
	maxWatched, maxFields, maxStates, maxWritten = 32, 64, 32, 1024
)

// wholeObject is the path of a creation or deletion.
const wholeObject = "(the object)"

// rewrites finds the objects that calls write again and again (C12). It compares the states of an
// object that was written twice, until it is clear that none of its fields flaps.
type rewrites struct {
	ids atomic.Pointer[watchedIDs] // the keys of watched

	mu      sync.Mutex // guards the rest
	written map[caches.ObjectID]writeCount
	watched map[caches.ObjectID]*watchedObject
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

// watchedObject is an object whose states are compared.
type watchedObject struct {
	key            string // the key whose calls write it
	since, written time.Time
	manager, other string // the field managers of own writes, and of the others'
	states         []state
	own            []ownWrite // the writes whose states have not come
	clear          int        // own writes since the last sign of a fight or loop
	fields         map[string]*field
	fights, loops  bool // a fight or a loop was logged
}

// state is a state of a watched object that has come.
type state struct {
	version, deleted string // as in change
	at               time.Time
	manager          string
	fields           []string // the paths of the fields that differ from the state before
}

// ownWrite is a write of a call that has ended.
type ownWrite struct {
	caches.ObjectID
	version, uid  string
	gone, unknown bool
	loops         bool // the call had no reasons but own writes
}

func (w ownWrite) made(s state) bool {
	if w.gone && w.uid != "" {
		return w.uid == s.deleted
	}
	return w.version != "" && w.version == s.version
}

// field is a field of a watched object.
type field struct {
	own    bool   // its last change was an own write
	undone repeat // the changes of others after an own write
	looped repeat // the own writes that own writes have led to
}

// repeat counts changes that follow each other within restAfter.
type repeat struct {
	times       int
	since, last time.Time
}

func (r *repeat) add(at time.Time) {
	if at.Sub(r.last) > restAfter {
		*r = repeat{since: at}
	}
	r.times++
	r.last = at
}

func newRewrites() *rewrites {
	s := &rewrites{written: map[caches.ObjectID]writeCount{}, watched: map[caches.ObjectID]*watchedObject{}}
	s.publishIDs()
	return s
}

// watches reports whether the states of an object are compared.
func (s *rewrites) watches(id caches.ObjectID) bool { return s.ids.Load().has(id) }

// isIdle reports whether no object is watched.
func (s *rewrites) isIdle() bool { return len(s.ids.Load().all) == 0 }

// publishIDs is called when another object is watched, or one is no longer watched.
func (s *rewrites) publishIDs() {
	ids := &watchedIDs{all: make(map[caches.ObjectID]bool, len(s.watched))}
	for id := range s.watched {
		ids.some[mark(id.Key)], ids.all[id] = true, true
	}
	s.ids.Store(ids)
}

// came keeps a state of a watched object until its writer is known.
func (s *rewrites) came(id caches.ObjectID, st state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.watched[id]
	if o == nil {
		return
	}
	if len(o.states) == maxStates {
		o.states = slices.Delete(o.states, 0, 1)
	}
	o.states = append(o.states, st)
}

// notice is the beginning or the end of a fight or loop.
type notice struct {
	Rewrite
	id           caches.ObjectID
	loop, begins bool
}

// ended records a call of a key with its writes. It returns the fights and loops that have
// begun.
func (s *rewrites) ended(key string, began time.Time, loops bool, writes []ownWrite) (all []notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, w := range writes {
		switch o := s.watched[w.ObjectID]; {
		case o == nil:
			s.countWrite(key, w.ObjectID, now)
		case w.unknown: // its state would count as a change of others
			o.key, o.written, o.own, o.states = key, now, nil, nil
			clear(o.fields)
		default:
			o.key, o.written = key, now
			o.own = append(o.own, w)
			o.own = o.own[max(len(o.own)-maxStates, 0):]
		}
	}
	for id, o := range s.watched {
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
			s.drop(id)
		}
	}
	return all
}

// countWrite counts a write of an object that is not watched, and watches it after several.
func (s *rewrites) countWrite(key string, id caches.ObjectID, now time.Time) {
	c := s.written[id]
	if now.Sub(c.last) > restAfter {
		c.times = 0
	}
	c.times, c.last = c.times+1, now
	switch {
	case c.times >= watchedAfter && s.makeRoom(now):
		delete(s.written, id)
		s.watched[id] = &watchedObject{
			key: key, since: now, written: now, fields: map[string]*field{},
		}
		s.publishIDs()
		return
	case len(s.written) >= maxWritten:
		clear(s.written)
	}
	s.written[id] = c
}

// makeRoom reports whether another object can be watched. It drops the one that was watched for
// the longest time without a sign of a fight or loop.
func (s *rewrites) makeRoom(now time.Time) bool {
	if len(s.watched) < maxWatched {
		return true
	}
	var oldest caches.ObjectID
	since := now.Add(-watchedFor)
	found := false
	for id, o := range s.watched {
		if !o.hasSigns() && !o.since.After(since) {
			oldest, since, found = id, o.since, true
		}
	}
	if found {
		s.drop(oldest)
	}
	return found
}

func (s *rewrites) drop(id caches.ObjectID) {
	delete(s.watched, id)
	s.publishIDs()
}

// expire returns the fights and loops that are over, and drops the objects that are no longer
// written.
func (s *rewrites) expire() (all []notice) {
	if s.isIdle() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for id, o := range s.watched {
		all = o.notices(all, id, now)
		if !o.fights && !o.loops && now.Sub(o.written) > restAfter {
			s.drop(id)
		}
	}
	return all
}

// list returns the present fights and loops, the oldest first.
func (s *rewrites) list() (all []notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for id, o := range s.watched {
		if fight, ok := o.fight(now); ok {
			all = append(all, notice{Rewrite: fight, id: id})
		}
		if loop, ok := o.loop(now); ok {
			all = append(all, notice{Rewrite: loop, id: id, loop: true})
		}
	}
	slices.SortFunc(all, func(a, b notice) int { return a.Since.Compare(b.Since) })
	return all
}

// attribute finds the writers of the states that have come. A state that no ended call has
// written, and that came before the last call began, is a change of others.
func (o *watchedObject) attribute(began time.Time) {
	for len(o.states) > 0 {
		st := o.states[0]
		i := slices.IndexFunc(o.own, func(w ownWrite) bool { return w.made(st) })
		switch {
		case i >= 0:
			o.changed(st, o.own[i].loops)
			o.own = slices.Delete(o.own, i, i+1)
		case st.at.Before(began):
			o.undone(st)
		default:
			return
		}
		o.states = slices.Delete(o.states, 0, 1)
	}
}

// changed records the fields that an own write has changed.
func (o *watchedObject) changed(st state, loops bool) {
	o.manager = st.manager
	for path, f := range o.fields {
		if !loops || !slices.Contains(st.fields, path) {
			f.rest()
		}
	}
	for _, path := range st.fields {
		f := o.fields[path]
		if f == nil {
			if len(o.fields) == maxFields {
				continue
			}
			f = &field{}
			o.fields[path] = f
		}
		f.own = true
		if loops {
			f.looped.add(st.at)
		}
	}
	if o.clear++; o.hasSigns() {
		o.clear = 0
	}
}

// undone records the fields that others have changed.
func (o *watchedObject) undone(st state) {
	for _, path := range st.fields {
		if f := o.fields[path]; f != nil && f.own {
			f.own, o.other, o.clear = false, st.manager, 0
			f.undone.add(st.at)
		}
	}
}

// rest ends the rows of own writes that lead to each other, unless they are loops already.
func (o *watchedObject) rest() {
	for _, f := range o.fields {
		f.rest()
	}
}

func (f *field) rest() {
	if f.looped.times < loopAfter {
		f.looped = repeat{}
	}
}

// hasSigns reports whether a field flaps or changes in a row of calls, even if only a few times.
func (o *watchedObject) hasSigns() bool {
	for _, f := range o.fields {
		if f.undone.times > 0 || f.looped.times >= clearedAfter-1 {
			return true
		}
	}
	return false
}

// notices appends the fights and loops that have begun or ended since the last time.
func (o *watchedObject) notices(all []notice, id caches.ObjectID, now time.Time) []notice {
	if fight, ok := o.fight(now); ok != o.fights {
		o.fights = ok
		all = append(all, notice{Rewrite: fight, id: id, begins: ok})
	}
	if loop, ok := o.loop(now); ok != o.loops {
		o.loops = ok
		all = append(all, notice{Rewrite: loop, id: id, loop: true, begins: ok})
	}
	return all
}

func (o *watchedObject) fight(now time.Time) (Rewrite, bool) {
	r, ok := o.repeated(func(f *field) repeat { return f.undone }, fightAfter, now)
	r.Other = o.other
	return r, ok
}

func (o *watchedObject) loop(now time.Time) (Rewrite, bool) {
	return o.repeated(func(f *field) repeat { return f.looped }, loopAfter, now)
}

// repeated describes the fields that were changed often enough. ok is false without any.
func (o *watchedObject) repeated(
	of func(*field) repeat, enough int, now time.Time,
) (r Rewrite, ok bool) {
	r = Rewrite{Key: o.key, Manager: o.manager}
	for path, f := range o.fields {
		p := of(f)
		if p.times < enough || now.Sub(p.last) > restAfter {
			continue
		}
		if len(r.Fields) == 0 || p.since.Before(r.Since) {
			r.Since = p.since
		}
		if p.last.After(r.Last) {
			r.Last = p.last
		}
		r.Times = max(r.Times, p.times)
		r.Fields = append(r.Fields, path)
	}
	slices.Sort(r.Fields)
	r.Fields = r.Fields[:min(len(r.Fields), listed)]
	return r, len(r.Fields) > 0
}
