package controller

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

const (
	// lateAfter is the longest wait of a key in an entry that is not late, and the longest failure of
	// an informer of an entry that is ready.
	lateAfter = caches.LateAfter
	// hungAfter is the time after which calls hang that hold up others.
	hungAfter = 10 * time.Minute
	// blockedAfter is the time after which a goroutine stands still.
	blockedAfter = time.Minute
	// idleAfter is the time after which a controller that does not run is lacking: right before the
	// group waits for it no longer.
	idleAfter = 55 * time.Second
	// surveyPeriod is the least time between two surveys, and surveyCost its least multiple of the
	// time that one takes.
	surveyPeriod, surveyCost = 5 * time.Second, 100
)

// work is what the controllers tell of their work, as it is being gathered. No lock is taken under
// which code of the user runs.
type work struct {
	slot.Work
	now   time.Time
	asked slot.Set // the entries that are served, or being warmed
	warms slot.Set // of these, the entries that are not served yet
	told  slot.Set // of these, the entries that are not ready, with a reason
	*pulse
}

// pulse remembers what is compared from one Work to the next.
type pulse struct {
	mu    sync.Mutex // guards the rest
	pages uint64
	// listed has the objects that the running lists of each informer have brought, listedBefore those
	// of the last Work.
	listed, listedBefore map[any]int
	beats                map[beat]time.Time
	idle                 map[string]time.Time // since when controllers do not run
}

// beat is a turn of a goroutine, which is under way.
type beat struct {
	of   any // the informer, or the run
	what string
	turn uint64
}

// Work describes the work of the controllers. A served entry is ready while no controller says
// otherwise: it is open and not shut in each, no informer has failed for longer than a minute, and
// all show what was written before. By namespace, the lists and watches of the namespaces in a slot
// alone are judged, where informers have several.
func (s *Slots) Work() slot.Work {
	s.pulse.mu.Lock()
	defer s.pulse.mu.Unlock()
	w := &work{now: time.Now(), pulse: &s.pulse}
	w.Reasons = map[string]slot.Set{}
	s.mu.Lock()
	members, m := slices.Clone(s.members), s.manager
	w.Controllers = slices.Clone(s.names)
	for n := range s.owned {
		w.Ready.Add(n)
	}
	w.Ready = w.Ready.Minus(s.shut)
	for n, calls := range s.warming {
		if _, served := s.owned[n]; calls > 0 && !served {
			w.warms.Add(n)
		}
	}
	w.asked = w.Ready.Union(w.warms)
	s.mu.Unlock()
	w.Started = len(members) > 0 || m != nil
	if m != nil {
		w.Started = m.isRunning()
	}
	lastBeats := s.pulse.beats
	s.pulse.beats = map[beat]time.Time{}
	s.pulse.listedBefore, s.pulse.listed = s.pulse.listed, map[any]int{}
	for _, c := range members {
		c.report(w)
	}
	for b, since := range s.pulse.beats {
		if earlier, ok := lastBeats[b]; ok {
			s.pulse.beats[b], since = earlier, earlier
		}
		if w.now.Sub(since) >= blockedAfter {
			w.blocked("%s has not turned for %v", b.what, w.now.Sub(since).Round(time.Second))
		}
	}
	w.Late = w.Late.And(w.Ready)
	for n := range w.Objects {
		if !w.Ready.Has(n) {
			w.Objects[n] = 0
		}
	}
	w.Pages = s.pulse.pages
	return w.Work
}

// because says why entries are not ready.
func (w *work) because(entries slot.Set, format string, args ...any) {
	if entries = entries.And(w.asked); !entries.IsEmpty() {
		reason := fmt.Sprintf(format, args...)
		w.Reasons[reason] = w.Reasons[reason].Union(entries)
		w.told, w.Ready = w.told.Union(entries), w.Ready.Minus(entries)
	}
}

// runs says whether a controller runs, and whether it cannot be served.
func (w *work) runs(name string, started, lacking bool) {
	w.Started = w.Started && started
	since, isIdle := w.idle[name]
	switch {
	case started:
		delete(w.idle, name)
	case !isIdle:
		w.idle[name] = w.now
	case w.now.Sub(since) >= idleAfter:
		lacking = true
	}
	if lacking {
		w.Lacks = append(w.Lacks, name)
	}
}

// blocked says that a goroutine stands still.
func (w *work) blocked(format string, args ...any) {
	w.Blocked = cmp.Or(w.Blocked, fmt.Errorf(format, args...))
}

// turns says which turn a goroutine is at. Odd ones are under way.
func (w *work) turns(of any, turn uint64, format string, name string) {
	if turn%2 == 1 {
		w.beats[beat{of, fmt.Sprintf(format, name), turn}] = w.now
	}
}

// lists counts objects that lists have brought as a page.
func (w *work) lists(of any, listed int) {
	if listed > w.listedBefore[of] {
		w.pages++
	}
	w.listed[of] = listed
}

// report adds the work of the controller.
func (m *controllerMember[T]) report(w *work) {
	r := m.c.running.Load()
	runs, isOver, failure := m.state()
	w.runs(m.Name(), runs, isOver || m.lacks())
	for _, f := range m.c.informers.All() {
		m.reportInformer(w, f)
	}
	_, opened, _ := m.Sets()
	switch {
	case isOver:
		w.because(m.All(), "controller %q runs no more: %v", m.Name(),
			cmp.Or(failure, errors.New("its context has ended")))
	case r == nil || r.isTermOver() || r.turns.Load() == 0:
		w.because(m.All().Minus(w.told), "controller %q has not started", m.Name())
	default:
		r.serving.report(w)
		w.because(m.All().And(w.warms).Minus(w.told), "its objects are being listed")
		w.because(m.All().Minus(opened).Minus(w.warms).Minus(w.told), "it waits for versions")
	}
}

// reportInformer adds the state of an informer.
func (m *controllerMember[T]) reportInformer(w *work, f *caches.Informer) {
	applied, transformed := f.Turns()
	w.turns(f.Handle, applied, "the cache of informer %q, or an index of it,", f.Name())
	w.turns(f.Handle, transformed, "the transform of informer %q", f.Name())
	listed := 0
	for _, namespace := range f.Namespaces() {
		watch := f.WatchOf(namespace)
		listed += watch.Listed
		why := fmt.Sprint(watch.State)
		if watch.Failures > 0 && watch.LastError != nil {
			why = watch.LastError.Error()
		}
		entries := m.OfNamespace(m.c.informers.NeededBy(f, namespace))
		switch {
		case f.Optional:
		case !f.Handle.HasSynced():
			w.because(entries, "informer %q is not synced: %s", f.Name(), why)
		case f.IsCutOff(namespace):
			w.because(entries, "informer %q fails in namespace %q: %s", f.Name(), namespace, why)
		case watch.SlotsToList > 0:
			w.because(entries.And(w.warms), "informer %q lists the objects of slots: %s", f.Name(), why)
		}
	}
	w.lists(f.Handle, listed)
}

// lacks reports whether a list and watch that calls need has failed for long: one for all entries,
// or all of an informer.
func (m *controllerMember[T]) lacks() bool {
	for _, f := range m.c.informers.All() {
		failing := 0
		for _, namespace := range f.Namespaces() {
			if f.Optional || !f.FailsForLong(namespace) {
				continue
			}
			if failing++; m.OfNamespace(m.c.informers.NeededBy(f, namespace)) == m.All() {
				return true
			}
		}
		if failing > 0 && failing == len(f.Namespaces()) {
			return true
		}
	}
	return false
}
