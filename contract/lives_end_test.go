package contract_test

import (
	"context"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
)

// close ends everything, and checks that nothing goes on.
func (l *lives) close() {
	for _, h := range l.handles {
		if h.own {
			l.release(h)
		}
	}
	want := []error{nil}
	if l.hung {
		want = append(want, tidings.ErrHandlersStuck)
	}
	err := l.factory.Shutdown(context.Background())
	l.wants("Shutdown in the end", err, want...)
	l.stuck = err != nil
	time.Sleep(2 * time.Minute) // for handlers that are slow, beyond the grace of the stop
	synctest.Wait()
	requests := len(l.server.Requests())
	for _, h := range l.handles {
		for _, f := range h.handlers {
			select {
			case <-f.registration.Done():
			default:
				l.Errorf("%s is not done in the end", f.name)
			}
		}
	}
	l.drain("Run", l.runs, nil, tidings.ErrHandlersStuck)
	l.drain("a wait", l.waits, nil, tidings.ErrNotStarted, tidings.ErrStopped, tidings.ErrReleased)
	for _, done := range l.adds {
		select {
		case err := <-done:
			l.note("Add: %v", err)
		default:
			l.Error("an Add of slots has not returned")
		}
	}
	time.Sleep(time.Hour)
	if n := len(l.server.Requests()); n != requests {
		l.Errorf("%d requests after the end", n-requests)
	}
	l.end()
}

// drain checks that all of a kind have ended, and how.
func (l *lives) drain(what string, all []chan error, want ...error) {
	for _, done := range all {
		select {
		case err := <-done:
			l.wants(what, err, want...)
		default:
			l.Errorf("%s has not ended", what)
		}
	}
}
