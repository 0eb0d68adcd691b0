package apisim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Inject applies faults to the later requests that a match selects, and returns the injection,
// which can be lifted. A request meets the faults of several injections, those of the oldest one
// first.
func (s *Server) Inject(m Match, faults ...Fault) *Injection {
	i := &Injection{server: s, match: m, faults: faults, lifted: make(chan struct{})}
	if slices.ContainsFunc(faults, func(f Fault) bool { return f.lags }) {
		i.laggard = &laggard{s.Snapshot(), i.lifted}
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.count++
	i.number = s.faults.count
	s.faults.active = append(s.faults.active, i)
	return i
}

// Injection is a list of faults that is active until it is lifted.
type Injection struct {
	server  *Server
	match   Match
	faults  []Fault
	number  uint64   // in the order of the server's injections
	laggard *laggard // the state when it was injected, if a fault needs it

	lifting sync.Once
	lifted  chan struct{} // closed by Lift

	described int // requests that the match describes; the lock of the injections guards it
	met       int // requests that it selects; likewise
}

// Lift ends the faults: waiting requests go on, and later requests are not affected. It may be
// called more than once.
func (i *Injection) Lift() {
	i.lifting.Do(func() {
		all := &i.server.faults
		all.mu.Lock()
		defer all.mu.Unlock()
		all.active = slices.DeleteFunc(all.active, func(other *Injection) bool { return other == i })
		if i.met == 0 {
			all.unused = append(all.unused, i)
			i.laggard = nil // the laggard refers to a state of the server
		}
		close(i.lifted)
	})
}

// Met returns the number of requests that have met the faults.
func (i *Injection) Met() int {
	i.server.faults.mu.Lock()
	defer i.server.faults.mu.Unlock()
	return i.met
}

// injections holds the injections of a server.
type injections struct {
	mu     sync.Mutex // guards the rest
	count  uint64
	active []*Injection
	unused []*Injection // lifted, met by no request
}

// allUnused returns the injections that no request has met, the active ones last.
func (all *injections) allUnused() []*Injection {
	all.mu.Lock()
	defer all.mu.Unlock()
	unused := slices.Clone(all.unused)
	for _, i := range all.active {
		if i.met == 0 {
			unused = append(unused, i)
		}
	}
	return unused
}

func (all *injections) of(r Request, seed uint64) []*Injection {
	all.mu.Lock()
	defer all.mu.Unlock()
	var met []*Injection
	for _, i := range all.active {
		if !i.match.describes(r) {
			continue
		}
		if i.match.selectsNth(i.described, seed, i.number) {
			i.met++
			met = append(met, i)
		}
		i.described++
	}
	return met
}

// inflight is a request in progress, and the writer of its answer, which passes through the stages
// of faults. Every call of Write is a frame.
type inflight struct {
	http.ResponseWriter
	request *http.Request
	asked   Request
	path    requestPath

	upcoming frameData // the event of the next frame
	frames   int
	headed   bool
	code     int  // of the answer that was sent, 0 before
	answered bool // the rest of the answer is discarded

	stages        []stage
	laggard       *laggard
	refuseStreams bool
	expireTokens  bool
	badPage       func(page *listPage, from position, token string) // nil leaves pages as they are
}

type inflightKey struct{}

func newInflight(w http.ResponseWriter, r *http.Request) *inflight {
	c := &inflight{ResponseWriter: w, path: parsePath(r.URL.Path)}
	c.asked = requestOf(r, c.path)
	c.request = r.WithContext(context.WithValue(r.Context(), inflightKey{}, c))
	return c
}

// serveWithFaults answers a request with the faults that are injected for it.
func (s *Server) serveWithFaults(c *inflight, entry *Request) {
	met := s.faults.of(c.asked, s.o.Seed)
	for _, i := range met {
		s.requests.addFaults(entry, i.faults)
	}
	for _, i := range met {
		for _, f := range i.faults {
			if f.begin != nil && !isTimedOut(c.request) { // the zero Fault has no effect
				f.begin(c, i)
			}
			if c.answered {
				return
			}
		}
	}
	s.handler.ServeHTTP(c, c.request)
	if !c.answered {
		c.through(0, frameData{n: lastFrame}) //nolint:errcheck // the answer ends in any case
	}
}

// serveLater carries a request out after a time, unless the server is closed by then, and discards
// the answer.
func (s *Server) serveLater(r *http.Request, d time.Duration) error {
	body, err := readBody(r)
	if err != nil {
		return err
	}
	later := newInflight(discarded{http.Header{}}, r.Clone(context.Background()))
	later.request.Body = io.NopCloser(bytes.NewReader(body))
	time.AfterFunc(d, func() {
		if s.enter() {
			defer s.serving.Done()
			s.handler.ServeHTTP(later, later.request)
		}
	})
	return nil
}

// discarded is a writer that discards the answer.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d discarded) WriteHeader(int)             {}

// wait waits until a time has passed, the injection is lifted, the request has run longer than its
// parameter timeout, or the client is gone. The latter ends the request.
func (c *inflight) wait(i *Injection, d time.Duration) {
	select {
	case <-time.After(d):
	case <-i.lifted:
	case <-c.request.Context().Done():
		if !isTimedOut(c.request) {
			panic(http.ErrAbortHandler)
		}
	}
}

// errTruncated is the error of writes to an answer that a fault has ended.
var errTruncated = errors.New("apisim: the answer was cut short by a fault")
