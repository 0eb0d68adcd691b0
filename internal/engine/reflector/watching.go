package reflector

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

var (
	// errBackwards is a bookmark from before the reached version or, in a watch that was resumed
	// from before that, any such event.
	errBackwards = errors.New("the server sent an event of an older version than it has sent before")
	// errOddBookmark is a bookmark of no number from a server whose versions were numbers.
	errOddBookmark = fmt.Errorf("%w: a bookmark of a version that is no number", source.ErrMalformed)
)

// opening asks for a watch from the last version. Out of it lead:
//
//	two watches were suspected        → a list
//	the watch begins                  → watching
//	it begins, and a rewind may be    → checking, with the watch
//	a rewind may be                   → checking, before the watch begins
//	there is no version to resume     → a list
//	a list of a merge was older       → a list
//	a list is demanded                → a list in pages
//	an error                          → the state that watchEnded returns
type opening[T any] struct {
	*Reflector[T]
	afterList bool // no watch has begun since the last list
}

func (s *opening[T]) step(ctx context.Context) state[T] {
	h := &s.history
	if (h.version == "" || h.version == "0") && !s.afterList || s.watch.overtaken.Load() {
		return s.list()
	}
	if s.watch.isListDue() {
		// In pages: somebody waits, and the end of a streamed list may get lost.
		return &paging[T]{Reflector: s.Reflector, limit: s.o.PageSize, demanded: true}
	}
	s.takeSuspicion()
	if s.mistrust.demandsList() {
		return s.wentBack(ctx, errMistrusted, nil)
	}
	if h.suspectRewind && h.failedChecks < mostChecks {
		return &checking[T]{Reflector: s.Reflector}
	}
	s.afterList = false
	stream, err := s.open(ctx)
	if err != nil {
		return s.watchEnded(ctx, err, nil)
	}
	// It counts how long there was no contact before the watch began, and not since when requests
	// have failed.
	if time.Since(s.server.lastContact) >= longOutage ||
		h.cut && time.Since(h.cutAt) >= mostUnchecked {
		h.suspect()
	}
	s.server.lastContact = time.Now()
	if h.suspectRewind {
		return &checking[T]{s.Reflector, stream}
	}
	return &watching[T]{Reflector: s.Reflector, stream: stream}
}

func (s *opening[T]) close() {}

// open begins a watch from the last version.
func (s *opening[T]) open(ctx context.Context) (*stream[T], error) {
	h := &s.history
	o := source.WatchOptions{Version: h.resume, Selects: s.slots.selects()}
	earlier := s.server.betweenBookmarks
	if h.absent.key != "" { // the end of the watch in order leads to the next check
		o.Timeout, earlier = leastQuietFirst+time.Second+rand.N(time.Minute), 0
	}
	asked := s.requests.selection(ctx, s.attempts.failures > 0)
	stream, err := s.requests.watch(ctx, o, asked, earlier)
	if err != nil {
		return nil, err
	}
	stream.behind = h.resume != h.version
	stream.replays = h.recent.after(h.resume)
	return stream, nil
}

// watching hands on the events of a watch. Out of it lead:
//
//	the end of the stream              → the state that watchEnded returns
//	the watch lacks the end of an object → a list, which begins a new history
//	a check that failed is due again   → checking, with the watch
type watching[T any] struct {
	*Reflector[T]
	stream  *stream[T]
	rest    []source.Event[T] // came with the end of a streamed list
	changes []delta.Event[T]  // of the events that are being handed on
}

func (s *watching[T]) step(ctx context.Context) state[T] {
	s.recorder.enter(health.StateWatching)
	s.watch.running.Store(s.stream)
	s.watch.endOutdated() // slots may have come while it began, or a list may have been demanded
	err := s.handOn(ctx, s.rest)
	h := &s.history
	for err == nil {
		switch {
		case h.lacksEnd():
			return s.wentBack(ctx, passedError(h.absent.key, h.absent.was, h.version), s.stream)
		case h.cut && !s.stream.bookmark.IsZero():
			h.suspect()
			return &checking[T]{s.Reflector, s.stream}
		case !s.stream.bookmark.IsZero() && s.takeSuspicion():
			return &checking[T]{s.Reflector, s.stream}
		case h.mustCheckAgain():
			return &checking[T]{s.Reflector, s.stream}
		}
		var events []source.Event[T]
		if events, err = s.stream.Next(); err == nil {
			s.server.lastContact = time.Now()
			err = s.handOn(ctx, events)
		}
	}
	return s.watchEnded(ctx, err, s.stream)
}

func (s *watching[T]) close() { s.stream.close() }

// handOn pushes events to the queue and moves the position.
func (s *watching[T]) handOn(ctx context.Context, events []source.Event[T]) error {
	if len(events) == 0 {
		return nil
	}
	s.history.forgetGone()
	s.changes = s.changes[:0]
	to, refused := s.read(events)
	changed := len(s.changes) > 0
	err := s.push(ctx, to.version)
	clear(s.changes)
	if err != nil {
		return err
	}
	s.handedOn(to, changed)
	if errors.Is(refused, errBackwards) {
		s.history.suspect()
	}
	return refused
}

// read sets changes to what the events change, and returns the position after them. Events whose
// version cannot follow are left out, and the last of them is refused: the watch ends after the
// others.
func (s *watching[T]) read(events []source.Event[T]) (to position, refused error) {
	to = s.history.position
	for i := range events {
		event := &events[i]
		if s.isOfOtherSlots(event, to.version) {
			s.stream.at = event.Version
			continue
		}
		if err := s.checkVersion(event, to.version); err != nil {
			refused = err
			continue
		}
		s.stream.behind = s.stream.behind && event.Version == ""
		s.moveTo(&to, event)
		s.change(event)
	}
	return to, refused
}

// change adds the change of an event, if it is one of the collection.
func (s *watching[T]) change(event *source.Event[T]) {
	if event.Unselected || s.objects.ignores(&event.Item) || s.isReplay(event) {
		return
	}
	var e delta.Event[T]
	ok := false
	switch event.Type {
	case source.Added, source.Modified:
		e, ok = s.objects.changed(event.Item)
	case source.Deleted:
		e, ok = s.objects.deleted(event.Item)
	}
	if ok {
		s.changes = append(s.changes, e)
	}
}

// push hands on the changes of a watch, without the objects of slots that have gone since they were
// decoded, and its version. Once slots have come that the watch does not select, it fails: the
// version of their list is not below the one that was reached then.
func (s *watching[T]) push(ctx context.Context, version string) error {
	changes := s.changes
	if s.o.Slots != nil {
		if err := s.handingOn.acquire(ctx); err != nil {
			return err
		}
		defer s.handingOn.release()
		if !s.stream.asked.covers(s.slots.held()) {
			return errSlotsCame
		}
		changes = slices.DeleteFunc(changes, func(e delta.Event[T]) bool {
			return !s.slots.has(e.Key, e.UID)
		})
		changes = s.filling.note(changes, version)
	}
	if len(changes) == 0 {
		return s.queue.Bookmark(ctx, s.o.Partition, version)
	}
	return s.queue.Push(ctx, s.o.Partition, version, changes)
}

// isOfOtherSlots reports whether an event is older than the reached version because the watch that
// has reached it did not ask for the event's slot. If the slot is held now, its list has the event:
// it is not older than that version, see push.
func (s *watching[T]) isOfOtherSlots(event *source.Event[T], reached string) bool {
	asked := s.history.asked.slots
	if s.o.Slots == nil || asked == slot.All() || !s.stream.behind || event.Type > source.Deleted ||
		!s.history.isOlder(event.Version, reached) {
		return false
	}
	return event.Unselected || !s.o.Slots.Key().In(asked, event.UID, slot.NamespaceOf(event.Key))
}

// checkVersion returns an error for an event whose version cannot follow the reached one.
func (s *watching[T]) checkVersion(event *source.Event[T], reached string) error {
	isBookmark := event.Type == source.Bookmark || event.Type == source.InitialEventsEnd
	order, ok := delta.CompareDecimal(event.Version, reached) // of the collection: always trusted
	switch {
	case isBookmark && ok && order < 0, s.stream.behind && s.history.isOlder(event.Version, reached):
		return fmt.Errorf("%w: %s, from %s", errBackwards, event.Version, reached)
	case isBookmark && event.Version != "" && isNumber(reached) && !isNumber(event.Version):
		return fmt.Errorf("%w: %.40q, from %s", errOddBookmark, event.Version, reached)
	}
	return nil
}

// moveTo moves a position to the version of an event.
//
// A server may delete several objects at one version, such as events whose lease ends
// (kubernetes/kubernetes#110210). A watch from that version would not bring the ones that this
// stream has not brought yet. So a watch resumes from the version before, until a later version or
// a bookmark closes the group. The queue drops events that come twice, or isReplay does where
// versions do not order states.
func (s *watching[T]) moveTo(to *position, event *source.Event[T]) {
	if event.Key == to.absent.key {
		to.absent = absence{}
	}
	to.highest = s.history.higher(to.highest, event.Version)
	if event.Version == "" {
		return
	}
	if event.Type <= source.Deleted && event.Key != "" && s.slots.has(event.Key, event.UID) {
		change := lastChange{event.Key, event.Version, event.UID, event.Type == source.Deleted}
		if !s.history.isOlder(change.version, to.last.version) {
			to.last = change
		}
		for _, asked := range []*lastChange{&to.toCheck, &to.alive} {
			if change.key == asked.key && !s.history.isOlder(change.version, asked.version) {
				*asked = change
			}
		}
		s.watch.noteChange(change.key)
		s.history.noteLast(change)
	}
	before := s.stream.at
	s.stream.at = event.Version
	to.version = event.Version
	// Also where versions are not trusted to order states (Options.Compare): a watch from an
	// earlier version brings more.
	order, ok := delta.CompareDecimal(before, event.Version)
	switch {
	case event.Type == source.Deleted && event.Version == before: // resume stays
	case event.Type == source.Deleted && ok && order < 0:
		to.resume = before
	default:
		to.resume = event.Version
	}
}

// isReplay reports whether an event was handed on before this watch began, and records it
// otherwise.
func (s *watching[T]) isReplay(event *source.Event[T]) bool {
	if s.history.recent.off || event.Type > source.Deleted {
		return false
	}
	e := recentEvent{event.Key, event.Version, event.Type == source.Deleted}
	if s.stream.replays[e] {
		return true
	}
	s.history.recent.add(e)
	return false
}

// handedOn records that everything up to a position was handed on. A version below the highest
// comes from events in another order, or from a server that was set back.
func (s *watching[T]) handedOn(to position, changed bool) {
	h := &s.history
	news := changed // a version that is no number may be another one each time
	if isNumber(to.version) {
		news = to.version != h.version || to.resume != h.resume
	}
	// Later events are no sign of this history if a check was due before they came: the server may
	// have passed the reached version since it was set back.
	if h.isOlder(h.highest, to.highest) && h.failedChecks == 0 {
		h.suspectRewind = false
	}
	to.asked = s.stream.asked
	h.position = to
	if h.isOlder(to.version, to.highest) {
		h.suspect()
	}
	s.stream.progressed = true
	s.received()
	if news {
		s.stream.moved, s.attempts.undecodable = true, false
		s.attempts.progress()
	}
}
