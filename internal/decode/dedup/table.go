package dedup

import (
	"hash/maphash"
	"runtime/metrics"
	"sync"
	"sync/atomic"
)

// A Table has decoded strings and values by their bytes, so that the same bytes give the
// same value. The zero value is ready. Any number of decoders may use it at once, and should:
// the values that one of them has decoded are shared with the others. A Table must not be copied.
type Table struct {
	// MaxBytes bounds the memory of the table: the keys of values, the strings, and the
	// memory to find them. 0 means a tenth of the live heap after the last garbage
	// collection, and at least 1 MiB. It must not be changed once the table is in use.
	MaxBytes int64

	begin sync.Once
	seed  maphash.Seed

	values slotTable[valueEntry, *valueEntry]
	texts  slotTable[textEntry, *textEntry]
	seen   seenFilter

	mu      sync.Mutex // guards the fields up to metric, and the writers of the tables above
	bytes   int64      // that are in use
	budget  int64
	pending int // objects since the budget was last set
	metric  []metrics.Sample

	// full is set when something was refused, until there is some room again: decoders then
	// do not try. quarterFull is set while more than a quarter of the room is used: values
	// that only one object has then get none.
	full, quarterFull atomic.Bool

	// round counts how often all strings were swept. Caches beside the table forget their
	// strings and values when it changes.
	round atomic.Uint32

	counts struct{ hits, misses, kept, refused, forgotten atomic.Int64 } // see TableStats

	plans plans
	maps  workerPool[*mapWorker]
}

const (
	// leastBudget and budgetShare are described at MaxBytes.
	leastBudget = 1 << 20
	budgetShare = 10

	// maintainEvery is the number of objects after which a decoder maintains the table, and
	// valueSlotsPerObject how many slots of values it then sweeps for each of them. This
	// takes about 1 % of the time to decode an object.
	maintainEvery       = 64
	valueSlotsPerObject = 4

	// textSlotsPerObject is the number of slots of strings that are swept for each object, and
	// textSlotsInNeed while the table is more than half full.
	textSlotsPerObject, textSlotsInNeed = 2, 8

	// budgetEvery is the number of objects after which the budget is set again.
	budgetEvery = 1 << 8
)

func (t *Table) init() {
	t.begin.Do(func() {
		t.seed = maphash.MakeSeed()
		t.metric = []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		t.values.init(leastValueSlots, mostValueSlots)
		t.texts.init(leastTextSlots, mostTextSlots)
		t.seen.resize(leastMarks)
		t.plans.init()
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

// hash returns the hash of b in a key space. It depends on a seed that no server can know.
func (t *Table) hash(s *keySpace, b []byte) uint64 {
	return max(maphash.Bytes(t.seed, b)^s.salt, firstHash)
}

// keep puts an entry into one of the table's slotTables, if there is room.
func keep[E any, P entryOf[E]](t *Table, s *slotTable[E, P], h uint64, e P) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bytes+int64(e.cost()) > t.budget {
		t.counts.refused.Add(1)
		t.full.Store(true)
		return
	}
	t.bytes += int64(e.cost())
	t.counts.kept.Add(1)
	t.quarterFull.Store(t.bytes > t.budget/4)
	if s.crowded(h, e) {
		freed, dropped := s.grow()
		t.forgetLocked(freed, dropped)
		t.seen.grow(len(*s.slots.Load()))
	}
	t.bytes -= int64(s.put(*s.slots.Load(), h, e))
}

func (t *Table) forgetLocked(freed, dropped int) {
	t.bytes -= int64(freed)
	t.counts.forgotten.Add(int64(dropped))
}

// maintain goes on dropping entries that are dead or no longer used, after so many objects.
// If another decoder is at it, that one is left to it.
func (t *Table) maintain(objects int) {
	if !t.mu.TryLock() {
		return
	}
	defer t.mu.Unlock()
	freed, dropped, _ := t.values.sweep(objects*valueSlotsPerObject, t.bytes > t.budget)
	t.forgetLocked(freed, dropped)
	slots := textSlotsPerObject
	if t.bytes > t.budget/2 {
		slots = textSlotsInNeed
	}
	freed, dropped, wrapped := t.texts.sweep(objects*slots, false)
	t.forgetLocked(freed, dropped)
	if wrapped {
		t.round.Add(1)
	}
	if t.pending += objects; t.pending >= budgetEvery {
		t.pending = 0
		t.setBudgetLocked()
	}
	t.quarterFull.Store(t.bytes > t.budget/4)
	if t.full.Load() && t.bytes < t.budget-t.budget/8 {
		t.full.Store(false)
	}
}

// seenText reports whether a string was seen before, in another object.
func (t *Table) seenText(h uint64, object objectTag) bool { return t.seen.mark(h, object, false) }

// seenValue reports whether a value was seen before: in any object, even the same in an
// earlier state, because it is then not decoded again; but while the table is a quarter
// full, in another object.
func (t *Table) seenValue(h uint64, object objectTag) bool {
	return t.seen.mark(h, object, !t.quarterFull.Load())
}

// TableStats describe a table. The counts begin with the table; those of the last objects
// may be missing.
type TableStats struct {
	// Values are the messages, slices and maps that the table knows, and Strings the strings
	// that it holds.
	Values, Strings int
	// Bytes is about the memory of keys, entries and strings. Budget bounds it.
	Bytes, Budget int64
	// Hits and Misses count attempts to share.
	Hits, Misses int64
	// Kept counts the strings and values that were put into the table, Refused those that
	// were not because the budget was used up, and Forgotten those that were dropped again.
	Kept, Refused, Forgotten int64
}

// Stats returns the contents of the table and its counts.
func (t *Table) Stats() TableStats {
	t.init()
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.counts
	return TableStats{
		Values: t.values.used, Strings: t.texts.used, Bytes: t.bytes, Budget: t.budget,
		Hits: c.hits.Load(), Misses: c.misses.Load(),
		Kept: c.kept.Load(), Refused: c.refused.Load(), Forgotten: c.forgotten.Load(),
	}
}
