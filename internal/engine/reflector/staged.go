package reflector

import (
	"strings"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

// staged is the objects of a running list, in two halves. Each half is in the order in which
// the server sent it, usually the order of the keys.
//
// A stream may repeat objects without end, or remove some. Once that is seen, all objects are
// in decoded, one per key, and index has their places.
type staged[T any] struct {
	decoded  []delta.Item[T]
	cached   []delta.Item[T] // recognized by the source without being decoded
	expected int             // how many objects the last list had
	keys     strings.Builder // of cached, many in one allocation
	room     int             // the number of objects at which repeated ones are looked for
	index    map[string]int  // nil until it is needed
	isOlder  func(a, b string) bool
}

// leastRoom is the number of objects of a stream that are staged before repeated ones are looked
// for.
const leastRoom = 16 << 10

func (s *staged[T]) len() int { return len(s.decoded) + len(s.cached) }

// add stages a decoded object.
func (s *staged[T]) add(item delta.Item[T]) {
	if s.index == nil {
		s.decoded = append(s.decoded, item)
	} else {
		s.set(item)
	}
}

// addCached stages an object that was not decoded.
func (s *staged[T]) addCached(item delta.Item[T]) {
	if s.index != nil {
		s.set(item)
		return
	}
	if s.cached == nil {
		s.cached = make([]delta.Item[T], 0, s.expected+s.expected/16+1)
	}
	s.cached = append(s.cached, item)
}

// bound looks for repeated objects when a stream has brought many, and from then on keeps the
// newest state of each only.
func (s *staged[T]) bound() {
	if s.index != nil || s.len() < max(s.room, leastRoom) {
		return
	}
	s.room = 2 * s.len()
	if !ascends(s.decoded) || !ascends(s.cached) {
		s.makeIndex()
	}
}

// ascends reports whether the keys of items ascend, and none is there twice.
func ascends[T any](items []delta.Item[T]) bool {
	for i := 1; i < len(items); i++ {
		if items[i-1].Key >= items[i].Key {
			return false
		}
	}
	return true
}

// makeIndex brings all objects to decoded, one per key.
func (s *staged[T]) makeIndex() {
	all := s.take()
	s.index = make(map[string]int, len(all))
	for _, item := range all {
		s.set(item)
	}
}

// set stages an object in the place of an older state of it.
func (s *staged[T]) set(item delta.Item[T]) {
	i, found := s.index[item.Key]
	switch {
	case !found:
		s.index[item.Key] = len(s.decoded)
		s.decoded = append(s.decoded, item)
	case !s.isOlder(item.Version, s.decoded[i].Version):
		s.decoded[i] = item
	}
}

// remove forgets an object.
func (s *staged[T]) remove(key string) {
	if s.index == nil {
		s.makeIndex()
	}
	i, found := s.index[key]
	if !found {
		return
	}
	last := len(s.decoded) - 1
	s.decoded[i] = s.decoded[last]
	s.index[s.decoded[i].Key] = i
	s.decoded[last] = delta.Item[T]{}
	s.decoded = s.decoded[:last]
	delete(s.index, key)
}

// keysAtOnce is the number of bytes of keys in one allocation.
const keysAtOnce = 16 << 10

// keep copies a key that is valid during a call only.
func (s *staged[T]) keep(key string) string {
	if s.keys.Cap()-s.keys.Len() < len(key) {
		s.keys.Reset()
		s.keys.Grow(max(keysAtOnce, len(key)))
	}
	begin := s.keys.Len()
	s.keys.WriteString(key)
	return s.keys.String()[begin:]
}

// take returns all objects in one slice and leaves none. If both halves are ordered by key, so is
// the slice.
func (s *staged[T]) take() []delta.Item[T] {
	more, fewer := s.cached, s.decoded
	if len(more) < len(fewer) {
		more, fewer = fewer, more
	}
	s.decoded, s.cached = nil, nil
	i, j := len(more), len(fewer)
	more = append(more, fewer...)
	for to := len(more) - 1; j > 0; to-- { // from the back, so that no third array is needed
		if i > 0 && more[i-1].Key > fewer[j-1].Key {
			i--
			more[to] = more[i]
		} else {
			j--
			more[to] = fewer[j]
		}
	}
	return more
}
