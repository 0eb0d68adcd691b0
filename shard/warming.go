package shard

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// warming has the calls of Warm of a membership. Slots that come share a call, so that they need one
// list; those that are owned already do not wait for it, and neither do controllers. Of owned slots whose
// call has failed, the next one has half of them: a slot that cannot be filled, as when the rights for a
// namespace are missing, holds up no other for long.
//
//	wanted ─▶ a call ─▶ returned, and still wanted ─▶ filled, or wanted again
//	                    └── not wanted meanwhile ────▶ dropped
type warming struct {
	wanted  Set // entries of the map whose caches are to be filled by a call that has not begun
	drops   Set // to be dropped, once no call has them
	calls   []*warm
	filling slot.Set  // entries with a call
	pageAt  time.Time // when a page of a list came last

	failedLists, filledLists int // of entries that were to come
	unfilled                 Set // owned entries whose last call has failed
	failed                   Set // those of the last such call
	failedCalls              int // in a row
}

// warm is a call of Warm.
type warm struct {
	entries   Set // of the map
	began     time.Time
	isOwned   bool // they had this owner at the beginning
	isAgain   bool // an earlier call for them has failed
	hasFailed bool // it has failed, or had no page for a minute
	cancel    context.CancelFunc

	mu   sync.Mutex // guards the rest
	err  error
	over bool // it has returned, and if it failed, it is time for another call
}

func (w *warm) result() (err error, isOver bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err, w.over
}

func (m *membership) want(i int) { m.wanted.Add(i); m.held.Add(i) }

// unwant drops an entry, once no call of Warm has it.
func (m *membership) unwant(i int) {
	m.wanted.Remove(i)
	m.unfilled.Remove(i)
	m.drops.Add(i)
	for _, w := range m.calls {
		if w.entries.Minus(m.drops).IsEmpty() {
			w.cancel()
		}
	}
}

// dropNow drops what no call of Warm has.
func (m *membership) dropNow() {
	now := m.drops.Minus(m.filling)
	if now.IsEmpty() {
		return
	}
	m.drops, m.held = m.drops.Minus(now), m.held.Minus(now.Minus(m.wanted))
	m.group.handler.Drop(m.toHandler(now))
}

// startWarms begins calls of Warm for what is wanted.
func (m *membership) startWarms() {
	var owned, again, comes Set
	for i := range m.wanted.Minus(m.filling).Minus(m.drops).Slots() {
		isOwned := m.member.Phase(i) == handover.Filling
		switch {
		case i >= slot.Count:
			m.startWarm(&warm{entries: slot.Of(i), isOwned: isOwned})
		case isOwned && m.unfilled.Has(i):
			again.Add(i)
		case isOwned:
			owned.Add(i)
		default:
			comes.Add(i)
		}
	}
	for _, w := range m.calls { // one list at a time of each kind
		err, _ := w.result()
		switch isHung := w.hasFailed && err == nil; {
		case slotsOf(w.entries).IsEmpty():
		case w.isAgain && !isHung:
			again = Set{}
		case w.isOwned && !w.hasFailed:
			owned = Set{}
		case !w.isOwned:
			comes = Set{}
		}
	}
	if !again.IsEmpty() {
		m.startWarm(&warm{entries: m.partOf(again), isOwned: true, isAgain: true})
	}
	if !owned.IsEmpty() {
		m.startWarm(&warm{entries: owned, isOwned: true})
	}
	if !comes.IsEmpty() {
		m.startWarm(&warm{entries: comes})
	}
}

// partOf returns those of the slots whose call has failed that the next one is to have: others than the last
// one that has failed, if there are any, and half of them after a failure.
func (m *membership) partOf(slots Set) (part Set) {
	if others := slots.Minus(m.failed); !others.IsEmpty() {
		slots = others
	}
	if m.failedCalls == 0 {
		return slots
	}
	numbers := slices.Collect(slots.Slots())
	for _, n := range rand.Perm(len(numbers))[:(len(numbers)+1)/2] {
		part.Add(numbers[n])
	}
	return part
}

func (m *membership) startWarm(w *warm) {
	ctx, cancel := context.WithCancel(m.term.Context())
	w.cancel, w.began = cancel, m.group.now()
	m.calls = append(m.calls, w)
	m.wanted, m.filling = m.wanted.Minus(w.entries), m.filling.Union(w.entries)
	own, names, failures := m.toHandler(w.entries), namesOf(m.seen, w.entries), m.failedCalls
	m.running.Go(func() {
		defer cancel()
		err := m.group.handler.Warm(m.group.label(ctx, "warmer"), own)
		m.end(ctx, w, names, failures, err)
	})
}

// end takes the result of a call of Warm. After a failure, another call is made later.
func (m *membership) end(ctx context.Context, w *warm, names string, failures int, err error) {
	g := m.group
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		g.log.Warn("the caches of entries cannot be filled", "entries", names, "error", err)
		notify(g.changed)
		lease.Sleep(ctx, g.times.LongDelay(failures+1, err))
	}
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	notify(g.changed)
}

// noteWarmed takes the results of the calls of Warm.
func (m *membership) noteWarmed(now time.Time) {
	m.calls = slices.DeleteFunc(m.calls, func(w *warm) bool {
		err, isOver := w.result()
		last := w.began
		if m.pageAt.After(last) {
			last = m.pageAt
		}
		if !w.hasFailed && (err != nil || !isOver && now.Sub(last) >= standsStill) {
			w.hasFailed = true
			m.noteFailed(w)
		}
		if !isOver {
			return false
		}
		m.filling = m.filling.Minus(w.entries)
		if err == nil {
			m.failedCalls = 0
			m.filledLists++
		}
		for i := range w.entries.Minus(m.drops).Slots() {
			if err != nil {
				m.member.Failed(i)
				continue
			}
			m.member.Filled(i)
			m.unfilled.Remove(i)
		}
		return true
	})
}

// noteFailed counts a call that has failed: for what is to come, this member declines for a while;
// what it owns, it gives away after a while.
func (m *membership) noteFailed(w *warm) {
	m.failedCalls++
	comes := false
	for i := range w.entries.Minus(m.drops).Slots() {
		switch m.member.Phase(i) {
		case handover.Warming:
			comes = true
		case handover.Filling:
			m.unfilled.Add(i)
		}
	}
	if w.isOwned {
		m.failed = w.entries
	}
	if comes {
		m.failedLists++
	}
}

// isUnfilled reports whether the caches of an owned entry cannot be filled.
func (m *membership) isUnfilled() bool { return !m.unfilled.And(m.ownedEntries()).IsEmpty() }

func (m *membership) cancelWarms() {
	for _, w := range m.calls {
		w.cancel()
	}
}
