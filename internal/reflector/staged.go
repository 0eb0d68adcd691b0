package reflector

import (
	"slices"
	"strings"

	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/source"
)

// staged is what a running list has brought. Each half is in the order in which the
// server sent it, which is usually that of the keys.
type staged[T any] struct {
	decoded []delta.Item[T]
	held    []delta.Item[T] // cached objects that were recognized without being decoded
	stays   []string        // keys of objects that the transform failed for
	keys    strings.Builder // of held, many in one allocation
	room    int             // how many there may be before a stream is looked through for what it repeats
	removed map[string]mark // where the lists stood when a key was last taken out; what is before that does not count
}

// mark is a place in each of the lists of staged.
type mark struct{ decoded, held, stays int }

// leastRoom is how many objects of a stream are staged before any is looked for that came twice.
const leastRoom = 16 << 10

// settle forgets all but the newest state of each object where a stream has staged many: a
// server may send the same ones without an end.
func (s *staged[T]) settle(older func(a, b string) bool) {
	if s.len() < max(s.room, leastRoom) {
		return
	}
	s.sweep()
	s.decoded, s.held = newestOfEach(s.decoded, older), newestOfEach(s.held, older)
	s.room = 2 * s.len()
}

// newestOfEach returns items in the same array, one of each key.
func newestOfEach[T any](items []delta.Item[T], older func(a, b string) bool) []delta.Item[T] {
	ascending := func(i int) bool { return items[i].Key < items[i+1].Key }
	sorted := 0
	for sorted < len(items)-1 && ascending(sorted) {
		sorted++
	}
	if sorted >= len(items)-1 {
		return items // as servers send them
	}
	at, n := make(map[string]int), 0
	for _, item := range items {
		i, known := at[item.Key]
		switch {
		case !known:
			at[item.Key], items[n] = n, item
			n++
		case !older(item.Version, items[i].Version):
			items[i] = item
		}
	}
	clear(items[n:])
	return items[:n]
}

func (s *staged[T]) len() int { return len(s.decoded) + len(s.held) }

// cut forgets all but the first of each half.
func (s *staged[T]) cut(decoded, held int) {
	clear(s.decoded[decoded:])
	clear(s.held[held:])
	s.decoded, s.held = s.decoded[:decoded], s.held[:held]
}

// remove takes a key out.
func (s *staged[T]) remove(key string) {
	if s.removed == nil {
		s.removed = make(map[string]mark)
	}
	s.removed[key] = mark{len(s.decoded), len(s.held), len(s.stays)}
	if len(s.removed) > max(s.len(), leastRoom) {
		s.sweep()
	}
}

// sweep takes out what was removed.
func (s *staged[T]) sweep() {
	if len(s.removed) == 0 {
		return
	}
	s.decoded = s.without(s.decoded, func(m mark) int { return m.decoded })
	s.held = s.without(s.held, func(m mark) int { return m.held })
	at := -1
	s.stays = slices.DeleteFunc(s.stays, func(key string) bool { at++; return at < s.removed[key].stays })
	clear(s.removed)
}

// without returns items without those before the place at which their key was removed.
func (s *staged[T]) without(items []delta.Item[T], place func(mark) int) []delta.Item[T] {
	at := -1
	return slices.DeleteFunc(items, func(item delta.Item[T]) bool { at++; return at < place(s.removed[item.Key]) })
}

// keysAtOnce is how many bytes of keys are one allocation.
const keysAtOnce = 16 << 10

// keep copies a key that is valid for the moment only.
func (s *staged[T]) keep(key string) string {
	if s.keys.Cap()-s.keys.Len() < len(key) {
		s.keys.Reset()
		s.keys.Grow(max(keysAtOnce, len(key)))
	}
	begin := s.keys.Len()
	s.keys.WriteString(key)
	return s.keys.String()[begin:]
}

// take returns all objects, once sweep has been called, in one slice and forgets everything. If both halves are ordered by key,
// so is the slice.
func (s *staged[T]) take() []delta.Item[T] {
	more, fewer := s.held, s.decoded
	if len(more) < len(fewer) {
		more, fewer = fewer, more
	}
	*s = staged[T]{}
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

// countEvery is how many held objects are counted at once in Health: a source may find
// any number of them before it yields anything.
const countEvery = 1000

// mayHold returns what a source is to ask of the objects of the next list. Nothing is
// held before the first list, nor after versions were found to have gone back: then
// what is cached may be of another history.
func (r *Reflector[T]) mayHold() source.IsCached {
	if !r.listed || r.rewound {
		return nil
	}
	return r.holds
}

// holds stages the cached object if it is the one that is described, and reports whether
// it is. Such an object was accepted and transformed when it was cached. Of versions that
// cannot be compared, the order in which a list has them counts, and with it every one
// must be decoded.
func (r *Reflector[T]) holds(key, version, uid string) bool {
	if !isNumber(version) || uid == "" || !strings.HasPrefix(key, r.o.Scope) {
		return false
	}
	obj, knownVersion, knownUID, ok := r.o.Known(key)
	if !ok || knownVersion != version || knownUID != uid {
		return false
	}
	s := &r.staged
	if s.held == nil {
		s.held = make([]delta.Item[T], 0, r.lastList+r.lastList/16+1)
	}
	s.held = append(s.held, delta.Item[T]{Key: s.keep(key), Version: knownVersion, UID: knownUID, Object: obj})
	r.reused = true
	if r.stream != nil {
		r.stream.heard()
		s.settle(r.isOlder)
	}
	if len(s.held)%countEvery == 0 {
		r.countListed()
	}
	return true
}
