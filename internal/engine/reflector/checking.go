package reflector

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/source"
)

const (
	// longOutage is the time without contact after which a server's version is checked. To restore
	// a backup takes longer.
	longOutage = 10 * time.Second
	// mostUnchecked is the time after which watches that are cut off again and again, before they
	// bring a bookmark, lead to a check.
	mostUnchecked = 2 * time.Minute
	// mostChecks is the number of checks that may fail in a row before watches begin without one. A
	// server may be able to serve watches and not lists: because of a permission, or of one object
	// that it cannot read. From then on one check is made when each watch has begun.
	mostChecks = 3
	// longestCheck is the longest time of a check, whose connection may be dead. While a watch
	// runs, it is also the wait after the first check that failed, and each later wait is longer by
	// it.
	longestCheck = 30 * time.Second
)

// errUnanswered is a check of the server's version without an answer.
var errUnanswered = errors.New("the server did not answer a list of one object in time")

// checking asks for the server's version, with a list of one object: the one that had changed last
// when a rewind was first suspected. If that change was a delete, it asks for the newest object too.
// Out of it lead:
//
//	an older version than the reached one → a list, which begins a new history
//	an impossible state of that object    → a list, which begins a new history
//	no such object, for the second time   → a list, which shows a new history by older states
//	any other version                     → watching, or opening if no watch has begun
//	an error, with a watch                → watching, which may lead to another check
//	an error, without a watch             → backingOff, then opening
//	the resource is missing               → backingOff, then a list
type checking[T any] struct {
	*Reflector[T]
	stream *stream[T] // nil if no watch has begun
}

func (s *checking[T]) close() { s.stream.close() }

func (s *checking[T]) step(ctx context.Context) state[T] {
	if s.stream != nil {
		s.recorder.enter(health.StateWatching)
	}
	s.history.forgetGone()
	s.history.keepLast() // a check is also made without a suspicion
	s.history.keepNewest()
	var rewind error
	for _, was := range s.history.targets() {
		page, err := s.listLast(ctx, was.key)
		if err != nil {
			return s.failed(ctx, err)
		}
		s.attempts.answered = true
		s.server.lastContact = time.Now()
		if rewind = s.rewindOf(page, was); rewind != nil {
			break
		}
	}
	s.history.checked()
	if rewind != nil {
		return s.wentBack(ctx, rewind, s.stream)
	}
	return s.goOn()
}

// rewindOf returns an error if an answer shows that the server was set back, or may have been. was
// is the change that the check looks at.
func (s *checking[T]) rewindOf(page source.Page[T], was lastChange) error {
	h := &s.history
	if h.goesBack(page.Version) {
		return h.rewindError(page.Version)
	}
	if s.history.forgetGone(); !slices.Contains(h.targets(), was) {
		return nil // its slot has gone meanwhile
	}
	before := h.absent
	h.absent = absence{}
	for _, item := range page.Items {
		if item.Key == was.key && h.contradicts(item.Version, item.UID, was) {
			return passedError(item.Key, was.version, page.Version)
		}
	}
	known := was.key != "" && !was.deleted
	if !known || len(page.Items) > 0 || page.Continue != "" || !isNumber(page.Version) {
		return nil
	}
	h.absent = absence{
		key: was.key, uid: was.uid, was: was.version, until: page.Version, since: time.Now(),
	}
	if before.key == "" { // otherwise it is the target
		return nil
	}
	h.absent.since, h.absent.watched = before.since, before.watched
	if before.watched {
		return missedError(was.key, page.Version)
	}
	return nil
}

// goOn returns the state that goes on with the watch, or begins one.
func (s *checking[T]) goOn() state[T] {
	if s.stream == nil {
		return s.resume()
	}
	return &watching[T]{Reflector: s.Reflector, stream: s.stream}
}

// failed returns the state that follows a check that failed.
func (s *checking[T]) failed(ctx context.Context, err error) state[T] {
	end := classify(err, false)
	s.history.checkFailed(end.retryAfter)
	s.report(ctx, OpenWatch, err)
	switch {
	case ctx.Err() != nil:
		return nil
	case end.missing:
		s.stream.endSpan(ctx, err, true)
		s.close()
		return s.retry(ctx, err, s.list())
	case s.stream != nil:
		s.recorder.noteError(err)
		return s.goOn()
	default:
		return s.retry(ctx, err, s.resume())
	}
}

// listLast lists the object that is looked at. A server that cannot select it is asked for any.
func (s *checking[T]) listLast(ctx context.Context, key string) (source.Page[T], error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longestCheck, errUnanswered)
	defer cancel()
	page, err := s.requests.one(ctx, source.ListOptions{Key: key})
	if key != "" && err != nil && classify(err, false).cause == undecodable {
		page, err = s.requests.one(ctx, source.ListOptions{})
	}
	if err != nil && errors.Is(context.Cause(ctx), errUnanswered) {
		err = errUnanswered
	}
	return page, err
}
