package delta

import "slices"

// spareCapacity is the number of entries up to which an array is kept for reuse: 256 KB of pending changes, 160 KB of deltas.
const spareCapacity = 4096

// entry is a pending change in a run.
type entry[T any] struct {
	Type    EventType
	fresh   bool  // from a push that cannot be a replay, so it will not be dropped as stale unless something newer is known
	applied bool  // while the run is resolved: it made a delta
	scope   int32 // index into resolver.listed
	Item[T]
}

// segment is a stretch of the queue that becomes one batch: a run of changes, one Replace, or the removal of scopes. Only the last segment
// of the queue is added to.
type segment[T any] struct {
	changes []entry[T]      // of a run
	index   map[string]last // of a run, nil until changes fold: the last change of each key
	list    *list[T]        // of a Replace
	removal []*scope        // of the removal of scopes
	marks   []Mark
	marked  []*scope // of marks, in their order
	tokens  []any    // resyncs that stand after the changes
}

// list is a pending Replace.
type list[T any] struct {
	scope      *scope
	version    string
	newHistory bool
	items      []Item[T] // strictly ascending by key
	stays      []string  // ascending: keys whose known state stays
}

// last is the last pending change of a key in a run.
type last struct {
	at     int
	update bool // an earlier change of the run established its incarnation, so this one is not an add
}

// open reports whether changes may still be added to the segment.
func (s *segment[T]) open() bool { return s.list == nil && len(s.removal) == 0 && len(s.tokens) == 0 }

// size is the number of changes that the segment counts for.
func (s *segment[T]) size() int {
	if s.list != nil {
		return len(s.list.items)
	}
	return len(s.changes)
}

// mark notes the version that a scope has reached with this segment.
func (s *segment[T]) mark(sc *scope, version string) {
	if i := slices.Index(s.marked, sc); i >= 0 {
		s.marks[i].Version = version
		return
	}
	s.marks = append(s.marks, Mark{sc.prefix, version})
	s.marked = append(s.marked, sc)
}

// indexLast notes that the change at i is the last one of its key.
func (s *segment[T]) indexLast(i int) {
	e := &s.changes[i]
	prev, ok := s.index[e.Key]
	update := false
	if ok && e.Type == Set && e.UID != "" {
		p := &s.changes[prev.at]
		update = p.Type == Set && p.UID == e.UID && (prev.update || p.fresh)
	}
	s.index[e.Key] = last{i, update}
}

// startIndex makes the table of last changes from what is already pending.
func (s *segment[T]) startIndex() {
	s.index = make(map[string]last, len(s.changes))
	for i := range s.changes {
		s.indexLast(i)
	}
}

// foldable returns the pending update that a change may replace, or nil.
func (s *segment[T]) foldable(c *Event[T]) *entry[T] {
	if c.Type != Set || c.UID == "" {
		return nil
	}
	prev, ok := s.index[c.Key]
	if !ok || !prev.update || s.changes[prev.at].UID != c.UID {
		return nil
	}
	return &s.changes[prev.at]
}

// recycle empties the segment of everything it refers to, and reports whether it is small enough to be kept.
func (s *segment[T]) recycle() bool {
	if cap(s.changes) > spareCapacity {
		return false
	}
	clear(s.changes)
	clear(s.tokens)
	clear(s.marked)
	*s = segment[T]{changes: s.changes[:0], marks: s.marks[:0], marked: s.marked[:0], tokens: s.tokens[:0]}
	return true
}
