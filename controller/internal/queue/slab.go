package queue

// chunkSize is the number of values that a slab allocates at once.
const chunkSize = 1024

// slab holds values by number. It never moves a value, and has no pointer per value.
type slab[T any] struct {
	chunks []*chunk[T] // nil: none of its values is in use
	open   []uint32    // the chunks that have a free value
	spare  *chunk[T]   // an empty one, for the next need
	used   int         // the number of values in use
}

// chunk holds the values of chunkSize consecutive numbers.
type chunk[T any] struct {
	values [chunkSize]T
	free   []uint16 // the values that were given back
	given  int      // the number of values that were ever given out
	used   int
}

// obtain returns the number of a zero value.
func (s *slab[T]) obtain() uint32 {
	if len(s.open) == 0 {
		s.chunks = append(s.chunks, nil)
		s.open = append(s.open, uint32(len(s.chunks)-1))
	}
	last := len(s.open) - 1
	k := s.open[last]
	c := s.chunks[k]
	if c == nil {
		if c = s.spare; c == nil {
			c = &chunk[T]{}
		}
		s.chunks[k], s.spare = c, nil
	}
	at := uint16(c.given)
	if n := len(c.free); n > 0 {
		at, c.free = c.free[n-1], c.free[:n-1]
	} else {
		c.given++
	}
	s.used++
	if c.used++; c.used == chunkSize {
		s.open = s.open[:last]
	}
	return k*chunkSize + uint32(at)
}

func (s *slab[T]) at(i uint32) *T { return &s.chunks[i/chunkSize].values[i%chunkSize] }

// has reports whether a number may be that of a value in use.
func (s *slab[T]) has(i uint32) bool {
	return int(i/chunkSize) < len(s.chunks) && s.chunks[i/chunkSize] != nil
}

// release takes a number back. A chunk without a value in use is forgotten, but for one.
func (s *slab[T]) release(i uint32) {
	k := i / chunkSize
	c := s.chunks[k]
	var zero T
	c.values[i%chunkSize] = zero
	if c.used == chunkSize {
		s.open = append(s.open, k)
	}
	s.used--
	if c.used--; c.used > 0 {
		c.free = append(c.free, uint16(i%chunkSize))
		return
	}
	c.free, c.given = nil, 0
	s.chunks[k], s.spare = nil, c
}
