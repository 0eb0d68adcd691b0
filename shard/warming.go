package shard

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/lease"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// warming has the calls of Warm of a membership. Slots that come share a call, so that they need
// one list; those that are owned already do not wait for it, and neither do controllers. Of slots
// whose call has failed, the next one has half: a slot that cannot be filled, as when the rights
// for a namespace are missing, holds up no other for long.
//
//	wanted ─▶ a call ─▶ returned, and still wanted ─▶ filled, or wanted again
//	                    └── not wanted meanwhile ────▶ dropped
type warming struct {
	wanted  Set       // entries of the map whose caches are to be filled by a call that has not begun
	drops   Set       // to be dropped, once no call has them
	comesAt time.Time // since when slots come that no call has; zero: none do
	calls   []*warm
	filling slot.Set  // entries with a call
	pageAt  time.Time // when a page of a list came last

	failedLists, filledLists int // of entries that were to come
	unfilled                 Set // entries whose last call has failed
	comes, owned             failed
	failedCalls              int // in a row
}

// failed describes the last calls of a kind that have failed.
type failed struct {
	entries Set // of the last one
	inRow   int
}

// gathers is the time for which slots that come wait for others that come, too: when a member
// leaves, several members give, one after the other, and a second list would take as long as the
// first.
const gathers = 100 * time.Millisecond

// divided is the number of failures in a row after which a member declines what comes: those of all
// slots, of one half and of a part of the other one.
const divided = 3

func (m *membership) failedOf(w *warm) *failed {
	if w.isOwned {
		return &m.owned
	}
	return &m.comes
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
func (m *membership) startWarms(now time.Time) {
	coming := &warm{}
	kinds := []*warm{{isOwned: true, isAgain: true}, {isOwned: true}, {isAgain: true}, coming}
	for i := range m.wanted.Minus(m.filling).Minus(m.drops).Slots() {
		isOwned, isAgain := m.member.Phase(i) == handover.Filling, m.unfilled.Has(i)
		if i >= slot.Count {
			m.startWarm(&warm{entries: slot.Of(i), isOwned: isOwned})
			continue
		}
		for _, k := range kinds {
			if k.isOwned == isOwned && k.isAgain == isAgain {
				k.entries.Add(i)
			}
		}
	}
	m.comesAt = handover.Since(m.comesAt, !coming.entries.IsEmpty(), now)
	for _, k := range kinds {
		if k == coming && now.Sub(m.comesAt) < gathers {
			continue
		}
		if isBusy := slices.ContainsFunc(m.calls, k.waitsFor); k.entries.IsEmpty() || isBusy {
			continue
		}
		if k.isAgain {
			k.entries = m.partOf(k.entries, *m.failedOf(k))
		}
		m.startWarm(k)
	}
}

// waitsFor reports whether a call of slots has to wait for another one: there is one list at a time
// of each kind. Owned slots do not wait for a call that has failed, or hangs.
func (w *warm) waitsFor(other *warm) bool {
	if w.isOwned != other.isOwned || w.isAgain != other.isAgain || slotsOf(other.entries).IsEmpty() {
		return false
	}
	err, _ := other.result()
	isHung := other.hasFailed && err == nil
	return !w.isOwned || w.isAgain && !isHung || !other.hasFailed
}

// partOf returns those of the slots whose call has failed that the next one is to have: others than
// the last one that has failed, if there are any, and half of them after a failure.
func (m *membership) partOf(slots Set, f failed) (part Set) {
	if others := slots.Minus(f.entries); !others.IsEmpty() {
		slots = others
	}
	if f.inRow == 0 {
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
			m.failedCalls, m.failedOf(w).inRow = 0, 0
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

// noteFailed counts a call that has failed: what this member owns, it gives away after a while.
// What is to come it declines for a while, once a list hangs or it is known that no part of the
// slots can be filled.
func (m *membership) noteFailed(w *warm) {
	f, entries := m.failedOf(w), w.entries.Minus(m.drops)
	m.failedCalls++
	f.entries, f.inRow = w.entries, f.inRow+1
	comes := false
	for i := range entries.Slots() {
		phase := m.member.Phase(i)
		comes = comes || phase == handover.Warming
		if phase == handover.Warming || phase == handover.Filling {
			m.unfilled.Add(i)
		}
	}
	if err, _ := w.result(); comes && (err == nil || entries.Len() == 1 || f.inRow >= divided) {
		m.failedLists, f.inRow = m.failedLists+1, 0
	}
}

// isUnfilled reports whether the caches of an owned entry cannot be filled.
func (m *membership) isUnfilled() bool { return !m.unfilled.And(m.ownedEntries()).IsEmpty() }

func (m *membership) cancelWarms() {
	for _, w := range m.calls {
		w.cancel()
	}
}
