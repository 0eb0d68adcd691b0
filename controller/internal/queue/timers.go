package queue

import "container/heap"

// timer is a moment of an entry: the end of its wait after a failure while it is BackingOff, and
// otherwise the time at which a result has asked for another run.
type timer struct {
	due   int64
	entry uint32
}

// timers is a heap of timers. Each entry has the place of its own timer.
type timers struct {
	heap    []timer
	entries *slab[entry]
}

// Len returns the number of timers.
func (t *timers) Len() int { return len(t.heap) }

// Less reports whether a timer is due before another one.
func (t *timers) Less(i, j int) bool { return t.heap[i].due < t.heap[j].due }

// Swap swaps two timers.
func (t *timers) Swap(i, j int) {
	t.heap[i], t.heap[j] = t.heap[j], t.heap[i]
	t.entries.at(t.heap[i].entry).timer = uint32(i + 1)
	t.entries.at(t.heap[j].entry).timer = uint32(j + 1)
}

// Push appends a timer.
func (t *timers) Push(x any) {
	t.heap = append(t.heap, x.(timer))
	t.entries.at(x.(timer).entry).timer = uint32(len(t.heap))
}

// Pop removes the last timer.
func (t *timers) Pop() any {
	last := t.heap[len(t.heap)-1]
	t.heap = t.heap[:len(t.heap)-1]
	t.entries.at(last.entry).timer = 0
	if len(t.heap) == 0 {
		t.heap = nil
	}
	return last
}

// set makes the timer of an entry due at a time. It replaces an earlier one.
func (t *timers) set(i uint32, due int64) {
	t.stop(i)
	heap.Push(t, timer{due, i})
}

func (t *timers) stop(i uint32) {
	if at := t.entries.at(i).timer; at > 0 {
		heap.Remove(t, int(at)-1)
	}
}

// due returns the time at which the timer of an entry is due; false without one.
func (t *timers) due(i uint32) (int64, bool) {
	at := t.entries.at(i).timer
	if at == 0 {
		return 0, false
	}
	return t.heap[at-1].due, true
}

func (t *timers) pop(now int64) (uint32, bool) {
	if len(t.heap) == 0 || t.heap[0].due > now {
		return nobody, false
	}
	return heap.Pop(t).(timer).entry, true
}
