package apisim

import (
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// requestLimit is how many requests the log keeps.
const requestLimit = 10_000

// Request is one request that the server was sent.
type Request struct {
	// Verb is list, watch, get, create, update or delete, or the HTTP method for
	// a path that names no resource.
	Verb string
	// Resource and Namespace are what the path names.
	Resource  schema.GroupVersionResource
	Namespace string
	// Query holds the parameters.
	Query url.Values
	// Status is the status of the answer, 0 while there is none.
	Status int
	// Time is when the request came.
	Time time.Time
}

// Requests returns the newest requests, the oldest first, at most 10,000.
func (s *Server) Requests() []Request { return s.requests.list() }

type requestLog struct {
	mu   sync.Mutex // guards list, and the Status of its elements
	kept []*Request
}

func (l *requestLog) begin(r *http.Request) *Request {
	p, _ := parsePath(r.URL.Path) // a path that is none is logged as such
	entry := &Request{Verb: p.verb(r), Resource: p.gvr, Namespace: p.namespace, Query: r.URL.Query(), Time: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) >= requestLimit {
		l.kept = slices.Delete(l.kept, 0, requestLimit/10)
	}
	l.kept = append(l.kept, entry)
	return entry
}

func (l *requestLog) end(entry *Request, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.Status = status
}

func (l *requestLog) list() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Request, len(l.kept))
	for i, entry := range l.kept {
		list[i] = *entry
	}
	return list
}
