package queue

// timerKind is what happens when a timer is due.
type timerKind uint8

const (
	requeue timerKind = iota // the key is queued again, as a result has asked
	gate                     // a wait after a failure, or of a parked key, ends
)

// timer is a moment of an entry.
type timer struct {
	due   int64
	entry uint32
	kind  timerKind
}

// timers is a binary heap of timers. Each entry knows the places of its own.
type timers struct {
	heap    []timer
	entries *slab[entry]
}

// set makes a timer due at a time, in the place of an earlier one of its entry and kind.
func (t *timers) set(i uint32, kind timerKind, due int64) {
	at := int(t.entries.at(i).timers[kind]) - 1
	if at < 0 {
		at = len(t.heap)
		t.heap = append(t.heap, timer{})
	}
	t.put(at, timer{due, i, kind})
	t.fix(at)
}

// stop removes a timer, if there is one.
func (t *timers) stop(i uint32, kind timerKind) {
	at := int(t.entries.at(i).timers[kind]) - 1
	if at < 0 {
		return
	}
	t.entries.at(i).timers[kind] = 0
	last := t.heap[len(t.heap)-1]
	t.heap = t.heap[:len(t.heap)-1]
	if at < len(t.heap) {
		t.put(at, last)
		t.fix(at)
	}
	if len(t.heap) == 0 {
		t.heap = nil
	}
}

// due returns when a timer of an entry is due; false without one.
func (t *timers) due(i uint32, kind timerKind) (int64, bool) {
	at := int(t.entries.at(i).timers[kind]) - 1
	if at < 0 {
		return 0, false
	}
	return t.heap[at].due, true
}

// pop removes the first timer that is due.
func (t *timers) pop(now int64) (timer, bool) {
	if len(t.heap) == 0 || t.heap[0].due > now {
		return timer{}, false
	}
	first := t.heap[0]
	t.stop(first.entry, first.kind)
	return first, true
}

func (t *timers) put(at int, x timer) {
	t.heap[at] = x
	t.entries.at(x.entry).timers[x.kind] = uint32(at + 1)
}

// fix moves a timer to its place.
func (t *timers) fix(at int) {
	x := t.heap[at]
	for at > 0 && x.due < t.heap[(at-1)/2].due {
		t.put(at, t.heap[(at-1)/2])
		at = (at - 1) / 2
	}
	for {
		child := 2*at + 1
		if child >= len(t.heap) {
			break
		}
		if child+1 < len(t.heap) && t.heap[child+1].due < t.heap[child].due {
			child++
		}
		if x.due <= t.heap[child].due {
			break
		}
		t.put(at, t.heap[child])
		at = child
	}
	t.put(at, x)
}
