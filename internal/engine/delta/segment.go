package delta

// spareCapacity is the number of entries up to which an array is kept for reuse: 256 KB of
// pending events, 160 KB of changes.
const spareCapacity = 4096

// entry is a pending event in a run.
type entry[T any] struct {
	Type     EventType
	applied  bool   // while the run is resolved: the event led to a change
	unusable uint32 // the place in segment.errs + 1; 0: the state can be used
	Item[T]
}

// segment is a part of the queue that becomes one batch: a run of events, one Replace, the removal
// of partitions, or that of some objects. Only the last segment of the queue is added to.
type segment[T any] struct {
	events  []entry[T]                 // of a run
	errs    []error                    // of the states that cannot be used
	spans   []span                     // of a run: the partitions of its events
	list    *list[T]                   // of a Replace
	removal []*partition               // of the removal of partitions
	leaves  func(key, uid string) bool // of the removal of objects
	marks   []Mark
	tokens  []any // resyncs that follow the events
}

// span is a part of a run that belongs to one partition.
type span struct {
	partition *partition
	end       int // index after the last event
}

// list is a pending Replace.
type list[T any] struct {
	partition  *partition
	version    string
	newHistory bool
	items      []Item[T]                  // strictly ascending by key
	stays      []Unusable                 // ascending by key
	moved      func(key, uid string) bool // nil for none
}

// open reports whether events may still be added to the segment.
func (s *segment[T]) open() bool {
	return s.list == nil && len(s.removal) == 0 && s.leaves == nil && len(s.tokens) == 0
}

// size is the number of changes that the segment counts for.
func (s *segment[T]) size() int {
	if s.list != nil {
		return len(s.list.items)
	}
	return len(s.events)
}

// unlisted counts the partitions that have their first list, or are gone without one, once the
// segment is applied.
func (s *segment[T]) unlisted() int {
	n := 0
	if s.list != nil && !s.list.partition.replaced {
		n++
	}
	for _, p := range s.removal {
		if !p.replaced {
			n++
		}
	}
	return n
}

// add appends events of a partition to a run.
func (s *segment[T]) add(p *partition, events []Event[T]) {
	for i := range events {
		e := &events[i]
		made := entry[T]{Type: e.Type, Item: e.Item}
		if e.Unusable {
			s.errs = append(s.errs, e.Err)
			made.unusable = uint32(len(s.errs))
		}
		s.events = append(s.events, made)
	}
	if n := len(s.spans); n > 0 && s.spans[n-1].partition == p {
		s.spans[n-1].end = len(s.events)
		return
	}
	s.spans = append(s.spans, span{p, len(s.events)})
}

// mark notes the version that a partition has reached with this segment.
func (s *segment[T]) mark(p *partition, version string) {
	for i := range s.marks {
		if s.marks[i].Partition == p.prefix {
			s.marks[i].Version = version
			return
		}
	}
	s.marks = append(s.marks, Mark{p.prefix, version})
}

// recycle clears the segment, and reports whether it is small enough to be kept.
func (s *segment[T]) recycle() bool {
	if cap(s.events) > spareCapacity {
		return false
	}
	*s = segment[T]{
		events: emptied(s.events), errs: emptied(s.errs), spans: emptied(s.spans),
		marks: emptied(s.marks), tokens: emptied(s.tokens),
	}
	return true
}

// emptied returns the slice without elements, its array cleared for reuse, or nil if the array
// is large.
func emptied[E any](s []E) []E {
	if cap(s) > spareCapacity {
		return nil
	}
	clear(s)
	return s[:0]
}
