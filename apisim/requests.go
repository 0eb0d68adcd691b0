package apisim

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// requestLimit is the largest number of requests in the log.
const requestLimit = 10_000

// Request is one request to the server.
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection, or the HTTP
	// method for a path without a resource.
	Verb string
	// Resource, Subresource, Namespace and Name are those of the path. The name of a list or a
	// watch is the one that its field selector metadata.name requires.
	Resource                     schema.GroupVersionResource
	Subresource, Namespace, Name string
	// Query holds the parameters.
	Query url.Values
	// Host is the host of the URL in the client's request.
	Host string
	// UserAgent is the header of that name.
	UserAgent string
	// Status is the status of the answer. It is 0 before the answer, and for a connection that was
	// dropped without one.
	Status int
	page   int // of a list, 0 for other requests
	// Faults names the faults of the request.
	Faults []string
	// Time is the time at which the request arrived.
	Time time.Time
}

// requestOf returns the entry of a new request for a path in the log.
func requestOf(r *http.Request, p requestPath) Request {
	query := r.URL.Query()
	name := ""
	if selector, err := fields.ParseSelector(query.Get("fieldSelector")); err == nil {
		name, _ = selector.RequiresExactMatch("metadata.name")
	}
	verb := p.verb(r.Method, query)
	return Request{
		page: pageNumber(verb, query.Get("continue")), Verb: verb, Resource: p.gvr,
		Subresource: p.subresource, Namespace: p.namespace, Name: cmp.Or(p.name, name),
		Query: query, Host: r.Host, UserAgent: r.UserAgent(), Time: time.Now(),
	}
}

// resourceText returns the resource in the form of [Match] and [Rule].
func (r Request) resourceText() string {
	text := r.Resource.GroupResource().String()
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	return text
}

// String returns the request in one line, such as
// "list pods namespace=default ?limit=500 200".
func (r Request) String() string {
	text := r.Verb + " " + r.resourceText()
	if r.Namespace != "" {
		text += " namespace=" + r.Namespace
	}
	if r.Name != "" {
		text += " name=" + r.Name
	}
	if len(r.Query) > 0 {
		text += " ?" + r.Query.Encode()
	}
	text += fmt.Sprint(" ", r.Status)
	if len(r.Faults) > 0 {
		text += " faults=" + strings.Join(r.Faults, ",")
	}
	return text
}

// Requests are some requests, the oldest first.
type Requests []Request

// Of returns the requests that a match selects. Its Probability has no effect.
func (list Requests) Of(m Match) Requests {
	m.Probability = 0
	var found Requests
	n := 0
	for _, r := range list {
		if !m.describes(r) {
			continue
		}
		if m.selectsNth(n, 0, 0) {
			found = append(found, r)
		}
		n++
	}
	return found
}

// String returns a line per request.
func (list Requests) String() string {
	var text strings.Builder
	for _, r := range list {
		fmt.Fprintln(&text, r)
	}
	return text.String()
}

// Requests returns the newest requests, at most 10,000.
func (s *Server) Requests() Requests {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	return copied(s.requests.kept)
}

// ForgetRequests empties the log. Running watches remain in Watches.
func (s *Server) ForgetRequests() {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	s.requests.kept = nil
}

// Watches returns the running watches, the oldest first.
func (s *Server) Watches() Requests {
	s.requests.mu.Lock()
	defer s.requests.mu.Unlock()
	return copied(s.requests.running)
}

type requestLog struct {
	mu      sync.Mutex // guards all fields, and Status and Faults of the entries
	kept    []*Request
	running []*Request // watches
}

func (l *requestLog) begin(r Request) *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) >= requestLimit {
		l.kept = slices.Delete(l.kept, 0, requestLimit/10)
	}
	l.kept = append(l.kept, &r)
	if r.Verb == "watch" {
		l.running = append(l.running, &r)
	}
	return &r
}

func (l *requestLog) end(entry *Request, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.Status = status
	if entry.Verb == "watch" {
		l.running = without(l.running, entry)
	}
}

func (l *requestLog) addFaults(entry *Request, faults []Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range faults {
		entry.Faults = append(entry.Faults, f.name)
	}
}

func copied(entries []*Request) Requests {
	list := make(Requests, len(entries))
	for i, entry := range entries {
		list[i] = *entry
	}
	return list
}
