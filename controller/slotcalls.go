package controller

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/internal/slot"
)

// slotCalls counts the running calls of a controller by slot, and has the slots for which calls
// may begin. It outlives runs, as a call may. A controller that is led as a whole has one slot, with a
// number above those by which objects are divided.
type slotCalls struct {
	group   *Slots
	whole   int       // the slot of all keys; noSlot if Options.Slots divides them
	changed broadcast // a slot has become idle, or a run has started or ended

	mu      sync.Mutex // guards the rest
	open    slot.Set   // calls may begin
	opening [slot.Entries]*opening
	unknown slot.Set // the last owner has left no versions, and those of the server are not known
	running [slot.Entries]int
	made    [slot.Entries]float64 // since the last report
}

// opening is a wait for the versions that the last owners of slots have left.
type opening struct {
	slots    slot.Set
	versions map[string]string // nil: they are not known
}

// of returns the slot of an object with a UID and a namespace.
func (s *slotCalls) of(uid types.UID, namespace string) int {
	if s.whole != noSlot {
		return s.whole
	}
	return s.group.by.Of(string(uid), namespace)
}

// reset closes all slots.
func (s *slotCalls) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open, s.opening = slot.Set{}, [slot.Entries]*opening{}
	s.changed.send()
}

// expect begins the wait for slots that are closed: one for all with versions, and one for others.
func (s *slotCalls) expect(owned []slot.Owned) (waits []*opening) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, unknown := &opening{versions: map[string]string{}}, &opening{}
	for _, o := range owned {
		if s.open.Has(o.Number) || s.opening[o.Number] != nil {
			continue
		}
		w := known
		if o.Versions == nil {
			w = unknown
		}
		w.slots.Add(o.Number)
		s.opening[o.Number] = w
		for part, version := range o.Versions {
			raise(w.versions, part, version)
		}
	}
	for _, w := range []*opening{known, unknown} {
		if !w.slots.IsEmpty() {
			waits = append(waits, w)
		}
	}
	return waits
}

// noteUnknown records which slots come without versions.
func (s *slotCalls) noteUnknown(owned []slot.Owned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range owned {
		if s.unknown.Remove(o.Number); o.Versions == nil {
			s.unknown.Add(o.Number)
		}
	}
}

// opened ends a wait for some of its slots. It opens those that are still part of the wait, and returns them.
func (s *slotCalls) opened(w *opening, some slot.Set) (slots slot.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range some.Slots() {
		if s.opening[n] == w {
			s.opening[n] = nil
			slots.Add(n)
		}
	}
	s.open = s.open.Union(slots)
	return slots
}

// isOpening reports whether slots are still part of a wait.
func (s *slotCalls) isOpening(w *opening) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.opening[:], w)
}

// close prevents further calls for slots. It reports false if the versions of one of them are not
// known yet.
func (s *slotCalls) close(slots slot.Set) (known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = s.open.Minus(slots)
	for n := range slots.Slots() {
		s.opening[n] = nil
	}
	return s.unknown.Minus(slots) == s.unknown
}

// know records that the versions of slots are known now.
func (s *slotCalls) know(slots slot.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown = s.unknown.Minus(slots)
}

// isOpen reports whether calls may begin for a slot.
func (s *slotCalls) isOpen(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open.Has(n)
}

// begin begins a call for a slot. It reports false if the slot is closed.
func (s *slotCalls) begin(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open.Has(n) {
		s.running[n]++
	}
	return s.open.Has(n)
}

// count counts a call for a slot.
func (s *slotCalls) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made[n]++
}

// end ends a call for a slot.
func (s *slotCalls) end(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[n]--; s.running[n] == 0 {
		s.changed.send()
	}
}

// awaitIdle waits until no call runs for slots. It returns false if ctx ends before.
func (s *slotCalls) awaitIdle(ctx context.Context, slots slot.Set) bool {
	for {
		changed := s.changed.wait()
		if s.isIdle(slots) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (s *slotCalls) isIdle(slots slot.Set) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range slots.Slots() {
		if s.running[n] > 0 {
			return false
		}
	}
	return true
}

// takeMade adds the calls since its last call.
func (s *slotCalls) takeMade(made *[slot.Count]float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range made {
		made[n] += s.made[n]
	}
	s.made = [slot.Entries]float64{}
}

// opens returns the slots for which calls may begin.
func (s *slotCalls) opens() slot.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

// describe sets the open and the expected slots.
func (s *slotCalls) describe(h *Health) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var expected slot.Set
	for n, w := range s.opening {
		if w != nil {
			expected.Add(n)
		}
	}
	h.Slots, h.SlotsExpected = s.open.String(), expected.String()
}
