package apisim

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// requestLimit is how many requests the log keeps.
const requestLimit = 10_000

// Request is one request that the server was sent.
type Request struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection,
	// or the HTTP method for a path that names no resource.
	Verb string
	// Resource, Subresource, Namespace and Name are what the path names. The name of
	// a list or a watch is that of its field selector metadata.name.
	Resource                     schema.GroupVersionResource
	Subresource, Namespace, Name string
	// Query holds the parameters.
	Query url.Values
	// UserAgent is the header of that name.
	UserAgent string
	// Status is the status of the answer, 0 while there is none and when the
	// connection was dropped before it.
	Status int
	page   int // of a list, 0 for other requests
	// Faults names the faults that met the request.
	Faults []string
	// Time is when the request came.
	Time time.Time
}

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
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s", r.Verb, r.resourceText())
	if r.Namespace != "" {
		fmt.Fprintf(&text, " namespace=%s", r.Namespace)
	}
	if r.Name != "" {
		fmt.Fprintf(&text, " name=%s", r.Name)
	}
	if len(r.Query) > 0 {
		fmt.Fprintf(&text, " ?%s", r.Query.Encode())
	}
	fmt.Fprintf(&text, " %d", r.Status)
	if len(r.Faults) > 0 {
		fmt.Fprintf(&text, " faults=%s", strings.Join(r.Faults, ","))
	}
	return text.String()
}

// Requests are some requests, the oldest first.
type Requests []Request

// Of returns those that are meant. Skip and Times count them; Probability is not
// used.
func (list Requests) Of(m Match) Requests {
	m.Probability = 0
	var found Requests
	n := 0
	for _, r := range list {
		if m.selects(r) {
			if m.meets(n, 0, 0) {
				found = append(found, r)
			}
			n++
		}
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
func (s *Server) Requests() Requests { return s.requests.list() }

// ForgetRequests empties the log, for what comes next to be counted by itself.
func (s *Server) ForgetRequests() { s.requests.forget() }

// Watches returns the watches that are running, in the order in which they came.
func (s *Server) Watches() Requests {
	running, _ := s.requests.watches()
	return running
}

type requestLog struct {
	mu    sync.Mutex // guards all, and what may change in the elements of kept
	kept  []*Request
	open  []*Request    // the watches that are running
	ended chan struct{} // closed when one of them ends; nil while nobody waits
}

// begin notes a request, and end the status of its answer.
func (l *requestLog) begin(r Request) *Request {
	r.Time = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.kept) >= requestLimit {
		l.kept = slices.Delete(l.kept, 0, requestLimit/10)
	}
	l.kept = append(l.kept, &r)
	if r.Verb == "watch" {
		l.open = append(l.open, &r)
	}
	return &r
}

func (l *requestLog) end(entry *Request, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.Status = status
	if entry.Verb != "watch" {
		return
	}
	l.open = slices.DeleteFunc(l.open, func(other *Request) bool { return other == entry })
	if l.ended != nil {
		close(l.ended)
		l.ended = nil
	}
}

// watches returns the watches that are running, and what is closed when one ends.
func (l *requestLog) watches() (Requests, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.ended = make(chan struct{})
	}
	return copied(l.open), l.ended
}

// met notes the faults that a request has met.
func (l *requestLog) met(entry *Request, faults []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry.Faults = faults
}

func (l *requestLog) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = nil
}

func (l *requestLog) list() Requests {
	l.mu.Lock()
	defer l.mu.Unlock()
	return copied(l.kept)
}

func copied(entries []*Request) Requests {
	list := make(Requests, len(entries))
	for i, entry := range entries {
		list[i] = *entry
	}
	return list
}
