package tape

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Take is the content of a ring at a time, before it is encoded.
type Take struct {
	Began, Made time.Time
	Tracks      []TakenTrack
}

// TakenTrack has the records of one writer. Base yields every cached object.
type TakenTrack struct {
	WriterOptions
	Base    Base
	Records []Record
}

// Take returns the content of the ring. Tracks are in the order of their first records, before
// those without one.
func (r *Ring) Take() Take {
	segments, writers := r.copy()
	take := Take{Began: r.began, Made: time.Now()}
	tracks := map[*Writer]int{}
	for _, s := range segments {
		for number, record := range s.records() {
			w := s.parts[number].by
			if w == nil {
				continue // it has ended
			}
			at, begun := tracks[w]
			if !begun {
				at = len(take.Tracks)
				tracks[w] = at
				track := TakenTrack{WriterOptions: w.o, Base: s.parts[number].base}
				take.Tracks = append(take.Tracks, track)
			}
			track := &take.Tracks[at]
			track.Records = append(track.Records, record)
		}
	}
	for _, w := range writers {
		if _, begun := tracks[w]; !begun {
			take.Tracks = append(take.Tracks, TakenTrack{WriterOptions: w.o, Base: w.o.Base()})
		}
	}
	return take
}

// copy returns the segments as they are. Heads and bytes are only appended, and the segments will
// not be used again.
func (r *Ring) copy() ([]segment, []*Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trim(time.Since(r.began))
	copied := make([]segment, len(r.segments))
	for i, s := range r.segments {
		s.copied = true
		copied[i] = segment{
			heads: slices.Clip(s.heads), buf: slices.Clip(s.buf),
			extras: slices.Clone(s.extras), parts: slices.Clone(s.parts),
		}
	}
	byName := func(a, b *Writer) int { return strings.Compare(a.o.Name, b.o.Name) }
	return copied, slices.SortedFunc(maps.Keys(r.writers), byName)
}
