package dedup

import (
	"hash/maphash"
	"math/rand/v2"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// A Table remembers what decoders have decoded, by its bytes, so that the same
// bytes give the same value. The zero value is ready. It may be used by any
// number of decoders at once, and should be: what one of them has decoded is
// shared with the others. A Table must not be copied.
type Table struct {
	// MaxBytes bounds the memory of what the table holds: the keys of values, the
	// strings, and what it takes to find them. 0 means a sixteenth of the heap
	// that was alive when the garbage collector last looked, and at least 1 MiB.
	// It must not be changed once the table is in use.
	MaxBytes int64

	begin sync.Once
	seed  maphash.Seed

	pieces    pieces
	texts     texts
	sightings sightings
	maps      mapRuns

	mu      sync.Mutex // guards what is below, and the writers of the tables above
	shapes  map[form]*shape
	plans   map[form]*plan
	bytes   int64 // of what is held
	budget  int64
	pending int // objects decoded since the tables were last looked after
	metric  []metrics.Sample

	// full is set when something was refused, until there is some room again:
	// decoders then do not try. sparing is set while more than a quarter of the room is
	// used: what only one object has does not get any, then.
	full, sparing atomic.Bool

	// round counts how often the strings have been gone through. What remembers
	// strings and items beside the table forgets them when it changes.
	round atomic.Uint32

	counts counts

	sharers sharePlans
}

// counts are what [Stats] shows of a table.
type counts struct {
	hits, misses, kept, refused, forgotten atomic.Int64
}

const (
	// leastBudget and budgetShare are what MaxBytes describes.
	leastBudget = 1 << 20
	budgetShare = 16

	// tendEvery is the number of objects after which a decoder looks after the
	// table, and slotsPerObject how many slots of pieces it then looks at for
	// each of them: about 1 % of what it takes to decode an object.
	tendEvery      = 64
	slotsPerObject = 4

	// textSlotsPerObject is how many slots of strings it looks at for each object, and
	// textSlotsInNeed while the table is more than half full: strings of workloads that are
	// gone stay until then.
	textSlotsPerObject, textSlotsInNeed = 2, 8
)

// start makes the table ready.
func (t *Table) start() {
	t.begin.Do(func() {
		t.seed = maphash.MakeSeed()
		t.shapes = map[form]*shape{}
		t.plans = map[form]*plan{}
		t.metric = []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		t.pieces.start()
		t.texts.start()
		t.sightings.resize(leastSightings)
		t.setBudgetLocked()
	})
}

func (t *Table) setBudgetLocked() {
	t.budget = t.MaxBytes
	if t.budget > 0 {
		return
	}
	metrics.Read(t.metric)
	t.budget = leastBudget
	if v := t.metric[0].Value; v.Kind() == metrics.KindUint64 {
		t.budget = max(leastBudget, int64(v.Uint64()/budgetShare))
	}
}

// shapeLocked returns the identity of a form of a Go type.
func (t *Table) shapeLocked(of form) *shape {
	s := t.shapes[of]
	if s == nil {
		s = &shape{salt: rand.Uint64()}
		t.shapes[of] = s
	}
	return s
}

// hash returns the hash of b, read as s. It depends on a seed that no server can
// know.
func (t *Table) hash(s *shape, b []byte) uint64 {
	return max(maphash.Bytes(t.seed, b)^s.salt, firstHash)
}

// Values that slots have instead of a hash.
const (
	emptySlot = 0 // never used
	freeSlot  = 1 // used before
	firstHash = 2
)

// window is the number of neighbouring slots in which a hash may be. It bounds
// every search, whatever the bytes are.
const window = 8

// roomLocked reports whether n bytes more may be held, and counts them.
func (t *Table) roomLocked(n int) bool {
	if t.bytes+int64(n) > t.budget {
		t.counts.refused.Add(1)
		t.full.Store(true)
		return false
	}
	t.bytes += int64(n)
	t.counts.kept.Add(1)
	t.sparing.Store(t.bytes > t.budget/4)
	return true
}

// tend looks after the tables: it goes on dropping what is dead or no longer
// used. If another decoder is at it, that one is left to it.
func (t *Table) tend(objects int) {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	t.pending += objects
	t.bytes -= int64(t.pieces.sweepLocked(objects*slotsPerObject, t.bytes > t.budget, &t.counts.forgotten))
	slots := textSlotsPerObject
	if t.bytes > t.budget/2 {
		slots = textSlotsInNeed
	}
	freed, wrapped := t.texts.sweepLocked(objects*slots, &t.counts.forgotten)
	t.bytes -= int64(freed)
	if wrapped {
		t.round.Add(1)
	}
	if t.pending >= 1<<12 {
		t.pending = 0
		t.setBudgetLocked()
	}
	t.sparing.Store(t.bytes > t.budget/4)
	if t.full.Load() && t.bytes < t.budget-t.budget/8 {
		t.full.Store(false)
	}
}

// textAgain reports whether a string was seen before, in another object.
func (t *Table) textAgain(h uint64, by owner) bool { return t.sightings.again(h, by, false) }

// pieceAgain reports whether a value was seen before: in any object, even the same in an
// earlier state, which spares decoding it once more; but in another one where room is to
// be spared.
func (t *Table) pieceAgain(h uint64, by owner) bool {
	return t.sightings.again(h, by, !t.sparing.Load())
}
