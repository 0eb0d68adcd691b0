package apisim

import (
	"fmt"
	"time"
)

// TB is the part of *testing.T, *testing.B and *testing.F that the package needs.
type TB interface {
	Helper()
	Cleanup(func())
	Failed() bool
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// leakGrace is the time for which the end of a test waits for watches to end, so that a client that
// was stopped a moment ago does not count as a leak.
const leakGrace = time.Second

// Start starts a server for a test, with the objects of the files that [Server.Load] finds. After
// the test's own cleanups it fails the test if watches still run a second later. It logs the faults
// that no request has met, and the seed of a failed test, and closes the server. It works within a
// testing/synctest bubble.
func Start(t TB, files ...string) *Server {
	t.Helper()
	return Options{}.Start(t, files...)
}

// Start starts a server with these options for a test, as the function of that name does.
func (o Options) Start(t TB, files ...string) *Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatalf("%v", err)
		return nil
	}
	t.Cleanup(func() {
		t.Helper()
		s.checkLeaks(t)
		for _, i := range s.faults.allUnused() {
			t.Logf("apisim: no request met the faults %v of %v", i.faults, i.match)
		}
		if t.Failed() {
			t.Logf("apisim: the seed of this run is %d: Options{Seed: %[1]d} repeats it", s.Seed())
		}
		if err := s.Close(); err != nil {
			t.Errorf("apisim: closing the server: %v", err)
		}
	})
	if err := s.Load(files...); err != nil {
		t.Fatalf("%v", err)
	}
	return s
}

func (s *Server) checkLeaks(t TB) {
	t.Helper()
	var running Requests
	for range 100 {
		if running = s.Watches(); len(running) == 0 {
			return
		}
		time.Sleep(leakGrace / 100)
	}
	watches := "a watch"
	if n := len(running); n > 1 {
		watches = fmt.Sprintf("%d watches", n)
	}
	t.Errorf("apisim: the test leaves %s running: stop the informer, or end its context, before the "+
		"test ends\n%v", watches, running)
}

// ExpectRequests fails a test, and prints the log, unless the match selects count requests.
func (s *Server) ExpectRequests(t TB, m Match, count int) {
	t.Helper()
	all := s.Requests()
	if got := all.Of(m); len(got) != count {
		t.Errorf("apisim: %d requests of %v, want %d; all are\n%v", len(got), m, count, all)
	}
}
