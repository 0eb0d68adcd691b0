package apisim

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Inject makes faults meet the requests that are meant and that come from now on, and
// returns what lifts them. A request may meet the faults of several injections, the
// oldest first.
func (s *Server) Inject(m Match, faults ...Fault) *Injection {
	i := &Injection{server: s, match: m, faults: faults, lifted: make(chan struct{})}
	if slices.ContainsFunc(faults, func(f Fault) bool { return f.lags }) {
		i.replica = s.replicate(i.lifted)
	}
	s.faults.mu.Lock()
	defer s.faults.mu.Unlock()
	s.faults.injected++
	i.number = s.faults.injected
	s.faults.standing = append(s.faults.standing, i)
	return i
}

// Injection is some faults that stand until they are lifted.
type Injection struct {
	server  *Server
	match   Match
	faults  []Fault
	number  uint64   // among those of the server
	replica *replica // the state when it was injected, if a fault needs it

	lifting sync.Once
	lifted  chan struct{} // closed by Lift

	selected int // requests that the match selects; the lock of faultTable guards it
	met      int // requests that met the faults; likewise
}

// Lift ends the faults: those that wait go on, and no request meets them any more. It
// may be called more than once.
func (i *Injection) Lift() {
	i.lifting.Do(func() {
		t := &i.server.faults
		t.mu.Lock()
		defer t.mu.Unlock()
		t.standing = slices.DeleteFunc(t.standing, func(other *Injection) bool { return other == i })
		if i.met == 0 {
			t.missed = append(t.missed, miss{i.match, i.faults})
		}
		close(i.lifted)
	})
}

// Met returns how many requests have met the faults.
func (i *Injection) Met() int {
	i.server.faults.mu.Lock()
	defer i.server.faults.mu.Unlock()
	return i.met
}

// faultTable holds the injections that stand.
type faultTable struct {
	mu       sync.Mutex // guards the rest
	injected uint64
	standing []*Injection
	missed   []miss // lifted, and met by no request
}

// miss is what an injection was about that no request has met. It holds no state of the
// server.
type miss struct {
	match  Match
	faults []Fault
}

// misses returns the injections, those that stand last, that no request has met.
func (t *faultTable) misses() []miss {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.Clone(t.missed)
	for _, i := range t.standing {
		if i.met == 0 {
			all = append(all, miss{i.match, i.faults})
		}
	}
	return all
}

// meet returns the injections that a request meets.
func (t *faultTable) meet(r Request, seed uint64) []*Injection {
	t.mu.Lock()
	defer t.mu.Unlock()
	var met []*Injection
	for _, i := range t.standing {
		if !i.match.selects(r) {
			continue
		}
		if i.match.meets(i.selected, seed, i.number) {
			i.met++
			met = append(met, i)
		}
		i.selected++
	}
	return met
}

// call is a request that has met faults.
type call struct {
	server    *Server
	request   *http.Request
	path      requestPath
	out       *outlet
	injection *Injection // whose fault is being applied

	answered      bool // nothing is left to do
	stages        []stage
	lag           *replica
	refuseStreams bool
	expireTokens  bool
	// badPage changes a page of a list and returns its objects; nil leaves it.
	badPage func(page []object, from position, meta *metav1.ListMeta, token string) []object
}

type callKey struct{}

// callOf returns the call of a request, nil if it has met no fault.
func callOf(r *http.Request) *call {
	c, _ := r.Context().Value(callKey{}).(*call)
	return c
}

// withFaults lets a request meet the faults that are injected for it.
func (s *Server) withFaults(w http.ResponseWriter, r *http.Request, entry *Request) {
	met := s.faults.meet(*entry, s.o.Seed)
	if len(met) == 0 {
		s.handler.ServeHTTP(w, r)
		return
	}
	p, _ := parsePath(r.URL.Path)
	c := &call{server: s, path: p}
	c.out = &outlet{ResponseWriter: w, call: c}
	c.request = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	var names []string
	for _, i := range met {
		for _, f := range i.faults {
			names = append(names, f.name)
		}
	}
	s.requests.met(entry, names)
	for _, i := range met {
		c.injection = i
		for _, f := range i.faults {
			if f.begin == nil {
				continue // the zero value is no fault
			}
			if f.begin(c); c.answered {
				return
			}
		}
	}
	s.handler.ServeHTTP(c.out, c.request)
	c.out.finish()
}

// wait waits until a time has passed, the injection is lifted, or the client is gone,
// which is its end.
func (c *call) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.injection.lifted:
	case <-c.request.Context().Done():
		panic(http.ErrAbortHandler)
	}
}

// refuse answers with the Status of a code.
func (c *call) refuse(code int, retryAfter time.Duration) {
	status := statusOfCode(code, c.path, retryAfter)
	writeStatus(c.out, c.request, &status)
	c.answered = true
}

// errTruncated ends an answer of which a part was kept back.
var errTruncated = errors.New("apisim: the answer was cut short by a fault")
