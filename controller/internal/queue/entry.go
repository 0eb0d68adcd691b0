package queue

// State is what a key does.
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
	reasons    uint32    // the first of them
	timers     [2]uint32 // the place in the heap + 1, by kind of timer; 0 without one
	failures   uint32    // in a row
	untold     uint32    // asks whose reasons were left out
	state      State
	band       Band // while it is Queued, the band; otherwise the most urgent one asked for
	firm       bool // while it is BackingOff: changes do not shorten the wait
	overdue    bool // it was parked for as long as it may be
}

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
