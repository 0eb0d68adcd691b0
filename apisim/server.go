package apisim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Options are the choices of a [Server]. The zero value is ready.
type Options struct {
	// HistoryLimit bounds the number of past events of each resource that the server keeps; 0 means
	// 10,000. A watch from a version before them is answered with 410 Gone. A watch that falls
	// behind them ends, and its client receives 410 Gone when it resumes.
	HistoryLimit int
	// BookmarkInterval is the period of the bookmarks of a watch that allows them; 0 means a
	// minute, the minimum is a millisecond.
	BookmarkInterval time.Duration
	// Seed determines all random values: UIDs, generated names, timeouts of watches, and the
	// requests that a [Match] with a probability selects. 0 stands for a random seed, which
	// [Server.Seed] returns.
	Seed uint64
	// ShardedListAndWatch honours the shard selectors of lists and watches, as the alpha feature of
	// that name does. Without it the server ignores them.
	ShardedListAndWatch bool
	// ManagedFieldsOptOut leaves the managed fields out of every answer and event for which the
	// Accept header has the parameter drop=metadata.managedFields, as the alpha feature of that name
	// does in Kubernetes 1.38. A media type with another value of the parameter is not accepted.
	// Without the option the server ignores the parameter.
	ManagedFieldsOptOut bool
	// Middleware wraps the handler of every request, for a test that inspects requests or answers
	// them itself; nil leaves the handler unchanged.
	Middleware func(http.Handler) http.Handler
	// OnWrite is called with the resource and the resource version of each change of an object, in
	// the order of the versions; nil means no call. No other write happens during the call: it must
	// return soon, and not call the server.
	OnWrite func(gvr schema.GroupVersionResource, version string)
	// Logger receives a line per request; nil discards them.
	Logger *slog.Logger
}

const (
	defaultHistoryLimit     = 10_000
	defaultBookmarkInterval = time.Minute
	// minBookmarkInterval prevents watches that send nothing but bookmarks.
	minBookmarkInterval = time.Millisecond
)

// errClosed is the error of calls on a closed server.
var errClosed = errors.New("apisim: the server is closed")

// Server is a Kubernetes API server in memory. All its methods may be called from any goroutine.
type Server struct {
	o       Options
	handler http.Handler
	random  *random

	frontend
	serving sync.WaitGroup // the goroutines of Serve and of requests

	mu               sync.Mutex // guards the rest; held for no I/O
	resources        map[schema.GroupVersionResource]*resource
	removed          map[schema.GroupVersionResource]*resource // by RemoveResource
	version          uint64                                    // of the newest write
	advanced         chan struct{}                             // closed at the next write
	refuseStreams    bool                                      // streamed lists are refused
	refuseParameters bool                                      // media types with unknown parameters are refused
	users            map[string]User
	instances        []*Instance
	closed           bool

	requests requestLog
	faults   injections
}

// New returns a server with the namespaces of every new cluster. Clients of Config reach it at
// once; Listen makes it reachable over TCP too.
func New(o Options) (*Server, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		o: o, random: newRandom(o.Seed),
		resources: builtinResources(), removed: map[schema.GroupVersionResource]*resource{}, version: 1, advanced: make(chan struct{}),
	}
	s.handler = http.HandlerFunc(s.serve)
	if o.Middleware != nil {
		s.handler = o.Middleware(s.handler)
	}
	if err := s.ensureNamespaces(initialNamespaces...); err != nil {
		return nil, err
	}
	s.begin(s, nil)
	s.listen(s.pipe)
	return s, nil
}

func (o *Options) complete() error {
	if o.HistoryLimit < 0 {
		return fmt.Errorf("apisim: Options.HistoryLimit is %d: give a number of events, or 0 for %d",
			o.HistoryLimit, defaultHistoryLimit)
	}
	if o.BookmarkInterval != 0 && o.BookmarkInterval < minBookmarkInterval {
		return fmt.Errorf("apisim: Options.BookmarkInterval is %v: give %v or more, or 0 for %v",
			o.BookmarkInterval, minBookmarkInterval, defaultBookmarkInterval)
	}
	o.HistoryLimit = cmp.Or(o.HistoryLimit, defaultHistoryLimit)
	o.BookmarkInterval = cmp.Or(o.BookmarkInterval, defaultBookmarkInterval)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	for o.Seed == 0 {
		o.Seed = rand.Uint64()
	}
	return nil
}

// Seed returns the seed of all random values. The same seed in Options repeats a run.
func (s *Server) Seed() uint64 { return s.o.Seed }

// Close ends all watches and connections. It waits for the goroutines of listeners and requests,
// and for the writes of [ApplyLater] that have begun. It may be called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for _, r := range s.resources {
		r.wake()
	}
	s.mu.Unlock()
	var errs []error
	for _, f := range s.frontends() {
		errs = append(errs, f.http.Close())
		f.transport.CloseIdleConnections()
	}
	s.serving.Wait()
	return errors.Join(errs...)
}

// frontends returns the frontends of the server and of its instances.
func (s *Server) frontends() []*frontend {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frontendsLocked()
}

func (s *Server) frontendsLocked() []*frontend {
	all := []*frontend{&s.frontend}
	for _, r := range s.instances {
		all = append(all, &r.frontend)
	}
	return all
}

// ServeHTTP answers a request, through the middleware.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		http.Error(w, errClosed.Error(), http.StatusServiceUnavailable)
		return
	}
	defer s.serving.Done()
	c := newInflight(w, r)
	entry := s.requests.begin(c.asked)
	defer func() {
		s.requests.end(entry, c.code)
		s.o.Logger.LogAttrs(context.Background(), slog.LevelDebug, "request",
			slog.String("method", r.Method), slog.String("uri", r.URL.RequestURI()),
			slog.Int("status", c.code))
	}()
	limited, cancel, err := withTimeout(c.request, c.asked.Verb)
	if err != nil {
		writeError(c, r, err)
		return
	}
	defer cancel()
	c.request = limited
	s.serveWithFaults(c, entry)
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.serving.Add(1)
	}
	return !s.closed
}
