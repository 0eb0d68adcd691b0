package cache_test

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/engine/delta"
)

// lastRequest is the last request of an informer.
type lastRequest struct {
	query string
	at    time.Time
}

// clientPause is the pause of client-go's REST client before it repeats a request by itself, up
// to ten times, after a lost connection.
const clientPause = time.Second

// latency is the least time that an answer of a script takes: even requests without a pause
// between them advance virtual time.
const latency = 100 * time.Millisecond

// wireServer is an API server that answers by a script until it turns honest. Each informer
// receives the answers of the whole script.
type wireServer struct {
	api    *apisim.Server
	script wireScript
	honest chan struct{} // closed when it turns honest
	over   chan struct{} // closed when the informers have ended

	mu      sync.Mutex // guards the rest
	hostile bool       // the script has begun
	clients map[string]*wireClient
	leases  map[string]string // versions of deletes, and the ones that the server sends
	changed int               // objects created by answers
	log     []string
}

// wireClient is the server's knowledge of an informer, by its user agent.
type wireClient struct {
	asked   map[step]int // requests since the script has begun
	ordered int          // answers of wireScript.order that it has received
	last    lastRequest
	spared  int  // requests that the client made by itself
	checked int  // versions that the server never had; each leads to a check (P16)
	hanging int  // lists that are never answered
	expired bool // it was told, since the server is honest, that the version of its watch is gone
}

func newWireServer(t *testing.T, script wireScript) *wireServer {
	s := &wireServer{
		script: script, honest: make(chan struct{}), over: make(chan struct{}),
		hostile: script.later == atOnce,
		clients: map[string]*wireClient{}, leases: map[string]string{},
	}
	var err error
	s.api, err = apisim.New(apisim.Options{Seed: script.seed, Middleware: s.middleware})
	must(t, err)
	t.Cleanup(func() {
		close(s.over)
		must(t, s.api.Close())
	})
	return s
}

// begin begins the script, unless it has begun at once.
func (s *wireServer) begin() {
	s.mu.Lock()
	s.hostile = true
	s.mu.Unlock()
	if s.script.later == afterCompaction {
		s.api.Compact()
	}
	s.api.CutConnections()
}

func (s *wireServer) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := stepOf(r)
		x := &exchange{s, &leaseWriter{w, s}, r, next}
		a := s.next(r, at)
		q := r.URL.Query()
		if s.script.paged && (at == listStep || at == pageStep) && q.Get("limit") != "1" {
			q.Set("limit", "3")
			q.Del("resourceVersion")
			q.Del("resourceVersionMatch")
			r.URL.RawQuery = q.Encode()
		}
		if a == nil {
			next.ServeHTTP(x.w, r)
			return
		}
		x.wait(latency)
		a.give(x)
	})
}

// clientLocked returns the knowledge of an informer.
func (s *wireServer) clientLocked(name string) *wireClient {
	if s.clients[name] == nil {
		s.clients[name] = &wireClient{asked: map[step]int{}}
	}
	return s.clients[name]
}

// next counts a request and returns its answer.
func (s *wireServer) next(r *http.Request, at step) (a *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clientLocked(r.UserAgent())
	n, now := c.asked[at], time.Now()
	if c.last.query == r.URL.RawQuery && now.Sub(c.last.at) == clientPause+latency {
		c.spared++
	}
	c.last = lastRequest{r.URL.RawQuery, now}
	if s.hostile {
		c.asked[at]++
	}
	switch first := s.script.first[at]; {
	case s.isHonest():
		// Only a list takes the states out of a cache that no server had. Versions that no server
		// had are apisim's to refuse.
		if at == watchStep && !c.expired && s.script.lies() == ofStates && s.hadVersion(r) {
			c.expired, a = true, refused(http.StatusGone, "")
		}
	case !s.hostile:
	case n < len(first):
		a = first[n]
	case s.script.rest[at] != nil:
		a = s.script.rest[at]
	case c.ordered < len(s.script.order):
		a = s.script.order[c.ordered]
		c.ordered++
	}
	if a != nil && a.lies == ofVersions {
		c.checked++
	}
	q := r.URL.Query()
	s.log = append(s.log, fmt.Sprintf("%s %s %s from %q continue %q limit %s: %s",
		now.Format("15:04:05.000"), r.UserAgent(), at, q.Get("resourceVersion"),
		q.Get("continue"), q.Get("limit"), a))
	return a
}

// hadVersion reports whether a watch begins at a version that the server had.
func (s *wireServer) hadVersion(r *http.Request) bool {
	_, newest, err := s.api.List(r.Context(), configMaps, "")
	order, ok := delta.CompareDecimal(r.URL.Query().Get("resourceVersion"), newest)
	return err == nil && ok && order <= 0
}

func (s *wireServer) isHonest() bool {
	select {
	case <-s.honest:
		return true
	default:
		return false
	}
}

// hangs counts the lists of an informer that are never answered.
func (s *wireServer) hangs(r *http.Request, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := stepOf(r); at == listStep || at == pageStep {
		s.clientLocked(r.UserAgent()).hanging += more
	}
}

// requests returns the number of requests that an informer made since the script has begun,
// without those that its client repeated by itself, and without checks.
func (s *wireServer) requests(of string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clientLocked(of)
	for _, asked := range c.asked {
		n += asked
	}
	return n - c.spared - c.checked
}

// change creates an object.
func (s *wireServer) change(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed++
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = "a", fmt.Sprint("changed-", s.changed)
	if _, err := s.api.Create(x.r.Context(), m); err != nil {
		s.log = append(s.log, err.Error())
	}
}

// leaseWriter sends several deletes under one version.
type leaseWriter struct {
	http.ResponseWriter
	server *wireServer
}

func (w *leaseWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Write passes on a frame. apisim writes one at a time.
func (w *leaseWriter) Write(data []byte) (int, error) {
	if bytes.Contains(data, []byte("DELETED")) {
		w.server.mu.Lock()
		for from, to := range w.server.leases {
			data = bytes.ReplaceAll(data, []byte(`"resourceVersion":"`+from+`"`),
				[]byte(`"resourceVersion":"`+to+`"`))
			tag := string([]byte{0x32, byte(len(from))}) // ObjectMeta.resourceVersion in protobuf
			data = bytes.ReplaceAll(data, []byte(tag+from), []byte(tag+to))
		}
		w.server.mu.Unlock()
	}
	return w.ResponseWriter.Write(data)
}

// write makes a random change. One in six is the end of a lease, with which two objects are
// deleted.
func (s *wireServer) write(w *writer) {
	objects := w.list()
	if len(objects) < 2 || w.random.IntN(6) > 0 {
		w.write()
		return
	}
	s.mu.Lock() // before the watches send the deletes
	defer s.mu.Unlock()
	first := w.remove(objects[0])
	s.leases[first] = w.remove(objects[1])
	w.note("these two deletes have one version")
}
