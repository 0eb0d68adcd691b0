package fights

import (
	"slices"
	"time"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/caches"
)

// object is an object whose states are compared.
type object struct {
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
	caches.State
	at      time.Time
	manager string
	fields  []string // the paths of the fields that differ from the state before
}

// ownWrite is a write of a call that has ended.
type ownWrite struct {
	caches.ObjectID
	guard.Write
	loops bool // the call had no reasons but own writes
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

// attribute finds the writers of the states that have come. A state that no ended call has written,
// and that came before the last call began, is a change of others.
func (o *object) attribute(began time.Time) {
	for len(o.states) > 0 {
		st := o.states[0]
		i := slices.IndexFunc(o.own, func(w ownWrite) bool {
			return st.IsBy(w.Version, string(w.UID), w.Gone)
		})
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
func (o *object) changed(st state, loops bool) {
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
func (o *object) undone(st state) {
	for _, path := range st.fields {
		if f := o.fields[path]; f != nil && f.own {
			f.own, o.other, o.clear = false, st.manager, 0
			f.undone.add(st.at)
		}
	}
}

// rest ends the rows of own writes that lead to each other, unless they are loops already.
func (o *object) rest() {
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
func (o *object) hasSigns() bool {
	for _, f := range o.fields {
		if f.undone.times > 0 || f.looped.times >= clearedAfter-1 {
			return true
		}
	}
	return false
}

// notices appends the fights and loops that have begun or ended since the last time.
func (o *object) notices(all []notice, id caches.ObjectID, now time.Time) []notice {
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

func (o *object) fight(now time.Time) (Rewrite, bool) {
	r, ok := o.repeated(func(f *field) repeat { return f.undone }, fightAfter, now)
	r.Other = o.other
	return r, ok
}

func (o *object) loop(now time.Time) (Rewrite, bool) {
	return o.repeated(func(f *field) repeat { return f.looped }, loopAfter, now)
}

// repeated describes the fields that were changed often enough. ok is false without any.
func (o *object) repeated(
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
	r.Fields = r.Fields[:min(len(r.Fields), maxPaths)]
	return r, len(r.Fields) > 0
}
