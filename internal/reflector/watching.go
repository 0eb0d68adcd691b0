package reflector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/source"
)

var (
	// errShortWatch is a watch that ended at once and brought nothing.
	errShortWatch = errors.New("the server ended the watch at once, without anything new")
	// errBackwards is a bookmark from before the reached version or, in a watch that was
	// resumed from before that, any such event.
	errBackwards = errors.New("the server sent an event of an older version than it has sent before")
	// errOddBookmark is a bookmark of no number from a server whose versions were numbers.
	errOddBookmark = fmt.Errorf("%w: a bookmark of a version that is no number", source.ErrMalformed)
)

const (
	// mostUseless is the number of watches in a row that may be useless before the collection is
	// listed: refused, ended with an error event or within a second, or not understood, with
	// nothing new between them.
	mostUseless = 3
	// shortWatch is the time that a watch must last for the next one to begin without a wait.
	shortWatch = time.Second
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
	if (h.version == "" || h.version == "0") && !s.afterList || s.filling.needsList() {
		return s.list()
	}
	if s.isListDue() {
		// In pages: somebody waits, and the end of a streamed list may get lost.
		return &paging[T]{Reflector: s.Reflector, limit: s.o.PageSize, demanded: true}
	}
	s.takeDoubt()
	if s.mistrust.demandsList() {
		return s.wentBack(ctx, errMistrusted, nil)
	}
	if h.suspectRewind && h.failedChecks < mostChecks {
		return &checking[T]{Reflector: s.Reflector}
	}
	s.afterList = false
	stream, err := s.open(ctx, source.WatchOptions{Version: h.resume, Selects: s.selects()}, s.selection(ctx))
	if err != nil {
		return s.watchEnded(ctx, err, nil)
	}
	stream.replays = h.recent.after(h.resume)
	// It counts how long there was no contact before the watch began, and not since when
	// requests have failed.
	if time.Since(s.server.lastContact) >= longOutage || h.cut && time.Since(h.cutAt) >= mostUnchecked {
		h.suspect()
	}
	s.server.lastContact = time.Now()
	if h.suspectRewind {
		return &checking[T]{s.Reflector, stream}
	}
	return &watching[T]{Reflector: s.Reflector, stream: stream}
}

// resume returns the state that begins a watch from the last version.
func (r *Reflector[T]) resume() state[T] { return &opening[T]{Reflector: r} }

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
	s.running.Store(s.stream)
	s.endOutdatedWatch() // slots may have come while it began, or a list may have been demanded
	err := s.handOn(ctx, s.rest)
	h := &s.history
	for err == nil {
		switch {
		case s.lacksEnd():
			return s.wentBack(ctx, passedError(h.absent.key, h.absent.was, h.version), s.stream)
		case h.cut && !s.stream.bookmark.IsZero():
			h.suspect()
			return &checking[T]{s.Reflector, s.stream}
		case !s.stream.bookmark.IsZero() && s.takeDoubt():
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

// lacksEnd reports whether the watch has passed the version at which an object was found absent,
// without the end of the object. While the last event is a delete, others may follow at its version.
func (s *watching[T]) lacksEnd() bool {
	h := &s.history
	if h.absent.key == "" || !s.holds(h.absent.key, h.absent.uid) {
		return false
	}
	order, ok := delta.CompareDecimal(h.resume, h.absent.until)
	return ok && order >= 0
}

// watchEnded closes a watch that has ended, records how it ended, and returns the state that
// follows. stream is nil if the watch did not begin.
func (r *Reflector[T]) watchEnded(ctx context.Context, err error, stream *stream[T]) state[T] {
	w := endedWatch{ending: classify(err, stream != nil), err: err, begun: stream != nil}
	step, progressed := OpenWatch, false
	if w.begun {
		step, progressed = RunningWatch, stream.progressed
		w.lasted, w.moved = time.Since(stream.opened) >= shortWatch, stream.moved
		r.server.betweenBookmarks = cmp.Or(stream.longest, r.server.betweenBookmarks)
		stream.endSpan(ctx, err, true)
		stream.close()
	}
	r.mistrust.watchEnded(err)
	switch w.cause {
	case finished:
		r.server.lastContact = time.Now()
		r.history.absent.watchEnded(stream.opened)
	case outgrown: // by its reader
	default:
		r.report(ctx, step, err)
	}
	inOrder := w.cause == finished || w.cause == torn
	if w.lasted && (inOrder || w.cause == outgrown || w.cause == busy || w.cause == broken) {
		r.attempts.progress() // a server whose watches last does not fail
		r.attempts.lists = 0
	}
	switch {
	case inOrder && w.lasted && !progressed, w.cause == finished && (r.history.cut || r.history.absent.key != ""):
		r.history.suspect() // servers send a bookmark before they end a watch
	case w.cause == broken, w.cause == refused, w.cause == busy:
		r.history.cutOff()
	}
	if ctx.Err() != nil {
		return nil
	}
	return r.afterWatch(ctx, w)
}

// endedWatch describes a watch that has ended or did not begin.
type endedWatch struct {
	ending
	err    error
	begun  bool
	lasted bool // it lasted for shortWatch
	moved  bool // it brought something new
}

// afterWatch returns the state that follows a watch.
func (r *Reflector[T]) afterWatch(ctx context.Context, w endedWatch) state[T] {
	switch w.cause {
	case stopped:
		return nil
	case torn:
		r.noteError(w.err)
		r.recorder.enter(health.StateSilent)
		return r.resume()
	case outgrown:
		r.history.recent.clear() // it may have events that push has refused
		return r.resume()
	case finished:
		switch {
		case w.lasted:
			return r.resume()
		case w.moved:
			return r.pause(r.resume())
		}
		w.err = fmt.Errorf("watch %s: %w", r.o.Name, errShortWatch)
		return r.uselessWatch(ctx, w, true)
	case broken:
		if w.begun && !w.lasted && !w.moved {
			return r.uselessWatch(ctx, w, false)
		}
		r.attempts.answered = false
		return r.retry(ctx, w.err, r.resume())
	case expired:
		if r.attempts.failures > 0 {
			return r.retry(ctx, w.err, r.list())
		}
		// The server has not failed, but all its clients may find their version expired at once.
		r.attempts.failures++
		r.noteError(w.err)
		r.recorder.enter(health.StateListing)
		return r.pause(r.list())
	case lost:
		return r.retry(ctx, w.err, r.list())
	case undecodable, refused:
		return r.uselessWatch(ctx, w, w.begun)
	default: // busy
		return r.retry(ctx, w.err, r.resume())
	}
}

// uselessWatch returns the state that follows a useless watch; answered says that the server has
// begun it. The first useless watches are resumed. Then the collection is listed, if the server
// answers: a server that refuses or cuts watches is asked for its version before the last
// attempt. Otherwise a server that was away would be listed by all its clients as soon as it is
// back.
func (r *Reflector[T]) uselessWatch(ctx context.Context, w endedWatch, answered bool) state[T] {
	a := &r.attempts
	a.uselessInRow++
	again := w.cause == undecodable && a.undecodable
	a.undecodable = a.undecodable || w.cause == undecodable
	a.answered = a.answered || answered
	switch {
	case again, a.uselessListed, a.uselessInRow >= mostUseless && a.answered:
		err := fmt.Errorf("%d watches in a row brought nothing new, "+
			"so the collection is listed again: %w", a.uselessInRow, w.err)
		a.uselessListed = true
		return r.retry(ctx, err, r.list())
	case a.uselessInRow >= mostUseless-1 && !a.answered:
		return r.retry(ctx, w.err, &checking[T]{Reflector: r})
	default:
		return r.retry(ctx, w.err, r.resume())
	}
}

// handOn pushes events to the queue and moves the position.
func (s *watching[T]) handOn(ctx context.Context, events []source.Event[T]) error {
	if len(events) == 0 {
		return nil
	}
	s.forgetGone()
	to, absent := s.history.position, s.history.absent
	var bad error
	s.changes = s.changes[:0]
	for i := range events {
		event := &events[i]
		if s.isOfOtherSlots(event, to.version) {
			s.stream.at = event.Version
			continue
		}
		if err := s.checkVersion(event, to.version); err != nil {
			bad = err
			continue
		}
		s.stream.behind = s.stream.behind && event.Version == ""
		s.moveTo(&to, event)
		if event.Key == absent.key {
			absent = absence{}
		}
		switch {
		case event.Unselected, s.ignores(&event.Item), s.isReplay(event):
		case event.Type == source.Added, event.Type == source.Modified:
			s.changed(event.Item)
		case event.Type == source.Deleted:
			s.deleted(event.Item)
		}
	}
	changed := len(s.changes) > 0
	err := s.push(ctx, to.version)
	clear(s.changes)
	if err != nil {
		return err
	}
	s.history.absent = absent
	s.handedOn(to, changed)
	if errors.Is(bad, errBackwards) {
		s.history.suspect()
	}
	return bad
}

// isOfOtherSlots reports whether an event is older than the reached version because the watch that has
// reached it did not ask for the event's slot. If the slot is held now, its list has the event: it is
// not older than that version, see push.
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
	order, ok := delta.CompareDecimal(event.Version, reached) // not of objects, so it is always trusted
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
// (kubernetes/kubernetes#110210). A watch from that version would not bring those of them that
// this stream has not brought yet. So a watch resumes from the version before, until a later
// version or a bookmark closes the group. The queue drops events that come twice, or isReplay does
// where versions do not order states.
func (s *watching[T]) moveTo(to *position, event *source.Event[T]) {
	to.highest = s.history.higher(to.highest, event.Version)
	if event.Version == "" {
		return
	}
	if event.Type <= source.Deleted && event.Key != "" && s.holds(event.Key, event.UID) {
		change := lastChange{event.Key, event.Version, event.UID, event.Type == source.Deleted}
		if !s.history.isOlder(change.version, to.last.version) {
			to.last = change
		}
		for _, looked := range []*lastChange{&to.doubted, &to.alive} {
			if change.key == looked.key && !s.history.isOlder(change.version, looked.version) {
				*looked = change
			}
		}
		if older := s.suspected.Load(); older != nil && older.key == change.key {
			s.suspected.CompareAndSwap(older, nil) // it has changed or ended since
		}
		s.noteLast(change)
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
