package controller

import (
	"context"
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/entries"
	"github.com/tidings-go/tidings/controller/internal/gate"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// serving is the part of a run in a group: which entry a key is in, and the opening of entries.
type serving[T tidings.Object] struct {
	*share
	r *run[T]

	mu       sync.Mutex // guards surveyed, but for its next, which is the housekeeper's alone
	surveyed survey
}

// survey is what a run finds out about its entries from time to time.
type survey struct {
	late    slot.Set
	objects [slot.Entries]int
	hung    bool      // all workers are in long calls, while keys wait or have waited
	next    time.Time // the time of the next one
}

// entryOf returns the entry of the next call of a key. By UID, it is the entry of the object that
// earlier calls of the run were made for, or else of the cached one. ok is false without either.
func (s *serving[T]) entryOf(key string) (n int, ok bool) {
	namespace, _ := written.SplitKey(key)
	if !s.IsDivided() || s.By == ByNamespace {
		return s.Of("", namespace), true
	}
	if uid, called := s.r.incarnations.UID(key); called {
		return s.Of(uid, ""), true
	}
	_, uid, ok := s.r.c.informers.Primary().Cached(key)
	return s.Of(types.UID(uid), ""), ok
}

// isServed reports whether changes of a key lead to a call.
func (s *serving[T]) isServed(key string) bool {
	n, ok := s.entryOf(key)
	return ok && s.IsOpen(n)
}

// isIn reports whether an object is in an entry.
func (s *serving[T]) isIn(n int, object T) bool {
	return s.Of(object.GetUID(), object.GetNamespace()) == n
}

// enter begins a call of a key in its entry. If it may not begin, otherwise is what the queue does
// with the key. If c.Abort is set afterwards, the call is ended by release.
func (s *serving[T]) enter(key string, c *entries.Call) (begun bool, otherwise queue.Outcome) {
	n, ok := s.entryOf(key)
	if ok {
		var parked bool
		c.Entry, c.Began = n, time.Now()
		c.Context, c.Abort = context.WithCancelCause(s.r.callsCtx)
		if begun, parked = s.Begin(key, c); begun || parked {
			return begun, queue.Outcome{Result: queue.Park}
		}
	}
	s.r.intake.firstWrites.take(key)
	s.r.c.succeeded.send()
	return false, queue.Outcome{}
}

// open waits until the caches have reached the versions of entries, or the server says that they
// cannot, and calls each of their keys once. Caches that are behind hold up the entries that need
// them.
func (s *serving[T]) open(w *entries.Wait) {
	r := s.r
	versions, known, behind := r.gate.Reach(w.Versions, w.Versions != nil)
	if w.Versions == nil {
		behind = nil // after a crash it is not known whether anything was written
		if known {
			for n := range w.Entries.Slots() {
				r.barrier.Reached(n, versions) // the next owner has to reach them too
			}
			s.Know(w)
		}
	}
	var waits gate.Waits
	waits.Add(behind...)
	for r.ctx.Err() == nil {
		r.gate.Update(&waits)
		held := slot.Set{}
		for _, u := range waits.All() {
			if u.HoldsUp() {
				held = held.Union(s.OfNamespace(r.gate.HeldUpBy(u)))
			}
		}
		s.weigh(w.Entries.Minus(held))
		opened, others := s.Reach(w, w.Entries.Minus(held))
		s.callMoved(opened)
		if !others || !pause(r.ctx) {
			r.gate.Waits.Add(waits.All()...) // of optional informers that fail
			return
		}
	}
}

// count returns the number of cached objects by entry.
func (s *serving[T]) count() (objects [slot.Entries]int) {
	for key := range s.r.c.primary.Lister().All() {
		if n, ok := s.entryOf(key); ok {
			objects[n]++
		}
	}
	return objects
}

// weigh counts the objects of entries that are about to open, so that their weights are known as
// soon as they are open.
func (s *serving[T]) weigh(some slot.Set) {
	objects := s.count()
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range some.Slots() {
		s.surveyed.objects[n] = objects[n]
	}
}

// callMoved calls each key of entries that have been opened.
func (s *serving[T]) callMoved(opened slot.Set) {
	if opened.IsEmpty() {
		return
	}
	add := func(key string) {
		if n, ok := s.entryOf(key); ok && opened.Has(n) {
			s.r.queue.Add(key, queue.Ask[reason]{Band: queue.Background, Reason: reason{cause: Moved}})
			s.r.queue.Wake(key)
		}
	}
	for key := range s.r.c.primary.Lister().All() {
		add(key)
	}
	for _, key := range s.r.incarnations.Gone() { // of entries that are served again
		if _, _, cached := s.r.c.informers.Primary().Cached(key); !cached {
			add(key)
		}
	}
}

// survey makes a survey, if it is time for one.
func (s *serving[T]) survey() {
	began := time.Now()
	if began.Before(s.surveyed.next) {
		return
	}
	made := survey{objects: s.count()}
	for _, key := range s.r.queue.Late(lateAfter) {
		if n, ok := s.entryOf(key); ok {
			made.late.Add(n)
		}
	}
	running, stats := s.r.queue.Keys(queue.Running, math.MaxInt), s.r.queue.Stats()
	now := time.Now()
	made.next = now.Add(max(surveyPeriod, surveyCost*now.Sub(began)))
	made.hung = s.r.workers.hungFor(stats, running, s.last().hung) >= hungAfter
	s.mu.Lock()
	defer s.mu.Unlock()
	s.surveyed = made
}

// last returns the last survey; a nil serving has made none.
func (s *serving[T]) last() survey {
	if s == nil {
		return survey{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.surveyed
}

// report adds the state of the run.
func (s *serving[T]) report(w *work) {
	name := s.r.c.Name()
	w.turns(s.r, s.r.turns.Load(), "controller %q", name)
	for namespace, name := range s.r.gate.Holding() {
		w.because(s.OfNamespace(namespace),
			"informer %q is out of contact, or does not show what was written", name)
	}
	last := s.last()
	if w.Late = w.Late.Union(last.late); last.hung {
		w.Hung, w.Late = true, w.Late.Union(s.All())
	}
	for n, count := range last.objects {
		w.Objects[n] += count
	}
	s.r.handlers.report(w, name)
}
