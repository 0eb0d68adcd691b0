package reflector

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/served"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// list is a list of the collection that Run makes, streamed or in pages. Only the goroutine of Run
// uses it.
type list[T any] struct {
	*Reflector[T]
	staged staged[T]
	adds   uint64                    // additions of slots before the list began
	held   slot.Set                  // slots that were held when it began, or more
	asked  selection                 // of the list
	stays  map[string]delta.Unusable // the states that cannot be used, by key
	reused bool                      // cached objects are in the place of listed ones
	ahead  map[string]string         // the cached versions of objects that are listed in an older one
}

// beginList begins a list of the collection.
func (r *Reflector[T]) beginList(ctx context.Context) *list[T] {
	r.watch.demand.meet()
	r.count.set(0)
	r.recorder.enter(health.StateListing)
	l := &list[T]{
		Reflector: r, stays: map[string]delta.Unusable{},
		staged: staged[T]{expected: r.lastListed, isOlder: r.history.isOlder},
	}
	if r.o.Slots != nil {
		l.adds = r.o.Slots.Adds()
		l.held = r.slots.held()
	}
	// Of the slots that have come by these additions, or more.
	l.asked = r.requests.selection(ctx, r.attempts.failures > 0)
	return l
}

// isCachedUnlessRewound returns isCached, or nil if the source must decode every object: before the
// first list nothing is cached, and after a rewind the cache may be of another history.
func (l *list[T]) isCachedUnlessRewound(isCached source.IsCached) source.IsCached {
	if !l.listed || l.history.rewound {
		return nil
	}
	return isCached
}

// countEvery is the number of cached objects that are counted at once in health: a source may find
// any number of them before it yields an object.
const countEvery = 1000

// isCached stages the cached object if it is the described one, and reports whether it is. That
// object was accepted and transformed when it was cached. Objects whose versions cannot be compared
// must all be decoded: of those, the last one in the list counts.
func (l *list[T]) isCached(key, version, uid string) bool {
	if !isNumber(version) || uid == "" || !strings.HasPrefix(key, l.o.Partition) {
		return false
	}
	obj, knownVersion, knownUID, ok := l.o.Known(key)
	if !ok || knownVersion != version || knownUID != uid {
		return false
	}
	l.reused = true
	l.staged.addCached(delta.Item[T]{
		Key: l.staged.keep(key), Version: knownVersion, UID: knownUID, Object: obj,
	})
	if n := l.staged.len(); n%countEvery == 0 {
		l.count.set(n)
	}
	return true
}

// stage stages a decoded object. It reports whether the object belongs to the collection.
func (l *list[T]) stage(item source.Item[T]) (accepted bool) {
	if l.objects.ignores(&item) {
		return false
	}
	undecodable := l.objects.undecodable(&item)
	if undecodable == nil && l.objects.accept(item, false) != nil {
		return false
	}
	known, version, uid, ok := l.o.Known(item.Key)
	if ok && l.listed {
		l.compare(item.Key, item.Version, version)
	}
	// Without a UID an equal version proves nothing: fakes have one version for everything.
	sameState := ok && version != "" && version == item.Version && item.UID != "" && uid == item.UID
	switch {
	case undecodable == nil && sameState && !l.history.rewound:
		item.Object = known
		l.reused = true
	case undecodable != nil || l.objects.transform(&item) != nil:
		l.stays[item.Key] = delta.Unusable{
			Key: item.Key, Version: item.Version, UID: item.UID, Err: undecodable,
		}
		return true
	case l.o.Share != nil:
		item.Object = l.o.Share(item.Object)
	}
	l.staged.add(itemOf(item))
	return true
}

// remove forgets an object.
func (l *list[T]) remove(key string) {
	delete(l.stays, key)
	delete(l.ahead, key)
	l.staged.remove(key)
}

// compare notes an object that is older than the cached one. A stream may bring other states of it
// as well.
func (l *list[T]) compare(key, version, cached string) {
	if !l.history.isOlder(version, cached) {
		delete(l.ahead, key)
		return
	}
	if l.ahead == nil {
		l.ahead = map[string]string{}
	}
	l.ahead[key] = cached
}

// rewind returns why a consistent list begins a new history, nil if it does not. An object that the
// list has only in states older than the cached one, although the cached state is not later than
// the version of the list, is impossible within one history.
func (l *list[T]) rewind(version string) error {
	h := &l.history
	if h.goesBack(version) {
		return h.rewindError(version)
	}
	if len(l.ahead) == 0 {
		return nil
	}
	for _, items := range [][]delta.Item[T]{l.staged.decoded, l.staged.cached} {
		for i := range items {
			if cached, ok := l.ahead[items[i].Key]; ok && !h.isOlder(items[i].Version, cached) {
				delete(l.ahead, items[i].Key)
			}
		}
	}
	for key, cached := range l.ahead {
		if _, ok := delta.CompareDecimal(version, cached); ok && !h.isOlder(version, cached) {
			return passedError(key, cached, version)
		}
	}
	return nil
}

// handOn hands on the staged objects as one Replace. The next watch starts at version.
//
// A consistent list of a version before the reached one begins a new history, in which the versions
// of the old one mean nothing. So does one that has an object in an older state than the cache has
// at a version before the list. If it has cached objects in the place of listed ones, it fails, and
// the next list has none.
func (l *list[T]) handOn(ctx context.Context, version string, consistent bool) error {
	h := &l.history
	var rewind error
	if consistent && !h.rewound { // otherwise a check has found it
		rewind = l.rewind(version)
	}
	o := delta.ReplaceOptions{
		Stays:      slices.Collect(maps.Values(l.stays)),
		NewHistory: consistent && h.rewound || rewind != nil,
	}
	if rewind != nil && l.reused {
		h.rewound = true
		return rewind
	}
	items := l.staged.take()
	to := positionAfter(h, items, version, o.NewHistory)
	l.lastListed = len(items)
	if err := l.replace(ctx, l, version, items, o); err != nil {
		if errors.Is(err, delta.ErrOlder) {
			h.overtaken, h.rewound = true, consistent
		}
		return err
	}
	if o.NewHistory {
		l.o.OnRewind()
	}
	h.position = to
	h.recent.clear()
	h.rewound = false
	h.checked()
	l.server.lastContact = time.Now()
	a := &l.attempts
	a.lists++
	a.uselessInRow, a.undecodable, a.answered, a.voided = 0, false, false, 0
	l.count.set(0)
	l.received()
	return nil
}

// replace hands on a list, without the objects of slots that have gone since it began. A nil list
// means that the server has no such resource: then there are no items.
func (r *Reflector[T]) replace(
	ctx context.Context, l *list[T], version string, items []delta.Item[T], o delta.ReplaceOptions,
) error {
	held := r.slots.held() // as they are now: Moved is called later
	if r.o.Slots != nil {
		if err := r.handingOn.acquire(ctx); err != nil {
			return err
		}
		defer r.handingOn.release()
		held = r.slots.held() // before the additions are counted
		switch {
		case l == nil || r.o.Slots.Adds() == l.adds:
		case r.listed: // the cache may have objects of slots that have come
			return errSlotsCame
		default: // these are listed beside the watch
			held = held.And(l.held)
		}
		if !o.NewHistory && r.filling.hasNewer(version) {
			return errSlotsCame
		}
		key := r.o.Slots.Key()
		o.Moved = func(objectKey, uid string) bool {
			return !key.In(held, uid, slot.NamespaceOf(objectKey))
		}
		items = slices.DeleteFunc(items, func(i delta.Item[T]) bool { return o.Moved(i.Key, i.UID) })
		o.Stays = slices.DeleteFunc(o.Stays, func(u delta.Unusable) bool { return o.Moved(u.Key, u.UID) })
	}
	if err := r.queue.Replace(ctx, r.o.Partition, version, items, o); err != nil {
		return err
	}
	r.listed, r.emptied = r.listed || l != nil, l == nil
	r.filling.listed(held, !r.emptied)
	return nil
}

// handleMissing hands on an empty collection for an optional resource that the server does not
// have: at once if nothing was listed yet, else after a minute.
func (r *Reflector[T]) handleMissing(ctx context.Context, end ending) error {
	if !r.o.Optional || !end.missing {
		r.server.absence = served.Absence{}
		return nil
	}
	if lasts := r.server.absence.Lasts(time.Now()); r.emptied || r.listed && !lasts {
		return nil
	}
	// When the definition comes back, the server may have been restored from a backup. Versions of
	// the old objects do not compare with the new ones.
	if err := r.replace(ctx, nil, "", nil, delta.ReplaceOptions{NewHistory: true}); err != nil {
		return err
	}
	r.history.position = position{}
	r.recorder.change(func(h *health.Watch) { h.Version = "" })
	return nil
}

// staged is the objects of a running list, in two halves. Each half is in the order in which the
// server sent it, usually the order of the keys.
//
// A stream may repeat objects without end, or remove some. Once that is seen, all objects are in
// decoded, one per key, and index has their places.
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
