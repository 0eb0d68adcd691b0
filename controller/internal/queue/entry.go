package queue

import "math"

// State is the state of a key.
type State uint8

// The states of a key.
const (
	// Idle: the key waits for an Add, or for the requeue that its last result requested.
	Idle State = iota
	// Queued: the key waits for a worker.
	Queued
	// Running: the key is with a worker. An Add leads to another run.
	Running
	// Parked: the key waits for a Wake.
	Parked
	// BackingOff: the key waits after a failure.
	BackingOff
)

// String returns the name of the state.
func (s State) String() string {
	return [...]string{"Idle", "Queued", "Running", "Parked", "BackingOff"}[s]
}

// Band is the urgency of a key among the keys of its flow.
type Band uint8

// The bands, most urgent first.
const (
	// Changes is the band of keys whose objects have changed.
	Changes Band = iota
	// Requeues is the band of keys that a result or a failure has requested.
	Requeues
	// Background is the band of keys of the initial list and of resyncs.
	Background

	bands = 3
	none  = Band(bands) // no run is requested
)

// String returns the name of the band.
func (b Band) String() string {
	return [...]string{"Changes", "Requeues", "Background", "none"}[b]
}

// nobody is a number that no entry has.
const nobody = ^uint32(0)

// entry is a key that is not forgotten. It is in one list: that of a band of its flow while it is
// Queued, and that of its state otherwise.
type entry struct {
	key        string
	since      int64 // the beginning of the state; while it is Queued, of its time in the band
	flow       *flow
	prev, next uint32
	reasons    uint32 // the first reason
	timer      uint32 // the place in the heap + 1; 0 without one
	failures   count  // in a row
	untold     count  // the number of asks whose reasons were left out
	state      State
	band       Band // while it is Queued, the band; otherwise the most urgent band requested
	marks      marks
}

// marks are flags of the present state of an entry.
type marks uint8

const (
	changed marks = 1 << iota // while it is Running: a change that is no echo has come
	woken                     // while it is Running: a Wake has come
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
