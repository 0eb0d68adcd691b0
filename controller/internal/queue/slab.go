package queue

// chunkSize is the number of values that a slab allocates at once.
const chunkSize = 1024

// slab holds values by number. It never moves a value, and has no pointer per value.
type slab[T any] struct {
	chunks [][]T
	used   uint32   // the number of numbers that were ever given out
	free   []uint32 // the numbers that were given back
}

// obtain returns the number of a zero value.
func (s *slab[T]) obtain() uint32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free = s.free[:n-1]
		return i
	}
	if int(s.used) == len(s.chunks)*chunkSize {
		s.chunks = append(s.chunks, make([]T, chunkSize))
	}
	s.used++
	return s.used - 1
}

func (s *slab[T]) at(i uint32) *T { return &s.chunks[i/chunkSize][i%chunkSize] }

// release takes a number back. An empty slab keeps the memory of one chunk.
func (s *slab[T]) release(i uint32) {
	var zero T
	*s.at(i) = zero
	if len(s.free) < int(s.used)-1 {
		s.free = append(s.free, i)
		return
	}
	s.used, s.free = 0, s.free[:0]
	if len(s.chunks) > 1 {
		s.chunks, s.free = s.chunks[:1:1], nil
	}
}
