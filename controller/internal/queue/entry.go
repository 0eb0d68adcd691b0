package queue

import "math"

// State is the state of a key.
type State uint8

// The states of a key.
const (
	// Idle waits for an Add, or for the requeue that its last result asked for.
	Idle State = iota
	// Queued waits for a worker.
	Queued
	// Running is with a worker. Adds meanwhile lead to another run.
	Running
	// Parked waits for a Wake.
	Parked
	// BackingOff waits after a failure.
	BackingOff
)

// String returns the name of the state.
func (s State) String() string {
	return [...]string{"Idle", "Queued", "Running", "Parked", "BackingOff"}[s]
}

// Band is how soon a key of a flow is due among the others of the flow.
type Band uint8

// The bands, most urgent first.
const (
	// Changes are keys whose objects have changed.
	Changes Band = iota
	// Requeues are keys that a result or a failure has asked for.
	Requeues
	// Background is keys of the initial list and of resyncs.
	Background

	bands = 3
	none  = Band(bands) // no run is asked for
)

// String returns the name of the band.
func (b Band) String() string {
	return [...]string{"Changes", "Requeues", "Background", "none"}[b]
}

// nobody is the number of no entry.
const nobody = ^uint32(0)

// entry is a key that is not forgotten. It is in one list: of a band of its flow while it is
// Queued, of the other states while it is in these.
type entry struct {
	key        string
	since      int64 // when the state began; while it is Queued, when it entered the band
	flow       *flow
	prev, next uint32
	reasons    uint32 // the first of them
	timer      uint32 // the place in the heap + 1; 0 without one
	failures   count  // in a row
	untold     count  // asks whose reasons were left out
	state      State
	band       Band // while it is Queued, the band; otherwise the most urgent one asked for
	marks      marks
}

// marks are notes on the present state of an entry.
type marks uint8

const (
	firm    marks = 1 << iota // while it is BackingOff: changes do not shorten the wait
	changed                   // while it is Running: a change that is no echo has come
	woken                     // while it is Running: so has a Wake
)

func (m marks) has(mark marks) bool { return m&mark != 0 }

// count counts up to 65,535, and stays there.
type count uint16

func (c *count) add(n int) { *c = count(min(int(*c)+n, math.MaxUint16)) }

// list is a doubly linked list of entries.
type list struct {
	first, last uint32
	length      int
}

func newList() list { return list{first: nobody, last: nobody} }

// push appends an entry.
func (l *list) push(entries *slab[entry], i uint32) {
	e := entries.at(i)
	e.prev, e.next = l.last, nobody
	if l.last == nobody {
		l.first = i
	} else {
		entries.at(l.last).next = i
	}
	l.last = i
	l.length++
}

// remove takes an entry out.
func (l *list) remove(entries *slab[entry], i uint32) {
	e := entries.at(i)
	if e.prev == nobody {
		l.first = e.next
	} else {
		entries.at(e.prev).next = e.next
	}
	if e.next == nobody {
		l.last = e.prev
	} else {
		entries.at(e.next).prev = e.prev
	}
	l.length--
}
