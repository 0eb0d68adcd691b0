package apisim

import (
	"math/rand/v2"
	"net/http"
	"strings"
)

// Match says which requests are meant. The zero value means all of them.
type Match struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection,
	// or the HTTP method for a path that names no resource; "" is any.
	Verb string
	// Resource is the plural with its group, such as "pods" or "deployments.apps",
	// and with a subresource if that is meant, such as "pods/status"; "" is any, and
	// "*" is any that is one.
	Resource string
	// Namespace and Name are those of the path; "" is any. The name of a list or a
	// watch is that of the field selector metadata.name.
	Namespace, Name string
	// UserAgent is a part of the header of that name; "" is any.
	UserAgent string
	// Query has parameters that must be there, with a value that must be theirs or
	// with "" for any, such as {"continue": ""}; nil is any.
	Query map[string]string
	// Page is the number of a page of a list, 1 being the first, however often it is asked
	// for; 0 is any request.
	Page int

	// Skip is how many of these requests are left alone first.
	Skip int
	// Times is how many are met after that; 0 is all.
	Times int
	// Probability is the chance of each to be met, decided by the server's seed and
	// by how many came before; 0, like 1, is certain.
	Probability float64
}

// Nth returns the match of only one of the requests, 1 being the first.
func (m Match) Nth(n int) Match {
	m.Skip, m.Times = n-1, 1
	return m
}

// selects reports whether a request is one of those that are meant, without regard to
// how many there were.
func (m Match) selects(r Request) bool {
	if m.Verb != "" && m.Verb != r.Verb || m.Namespace != "" && m.Namespace != r.Namespace || m.Name != "" && m.Name != r.Name {
		return false
	}
	if m.Resource == "*" && r.Resource.Resource == "" || m.Resource != "" && m.Resource != "*" && m.Resource != r.resourceText() {
		return false
	}
	if m.Page != 0 && m.Page != r.page {
		return false
	}
	for key, want := range m.Query {
		if values := r.Query[key]; len(values) == 0 || want != "" && values[0] != want {
			return false
		}
	}
	return strings.Contains(r.UserAgent, m.UserAgent)
}

// meets reports whether the nth of the requests, 0 being the first, is met. seed and
// fault make the chance of each fault its own.
func (m Match) meets(n int, seed, fault uint64) bool {
	if n < m.Skip || m.Times > 0 && n >= m.Skip+m.Times {
		return false
	}
	if m.Probability <= 0 || m.Probability >= 1 {
		return true
	}
	return rand.New(rand.NewPCG(seed^fault<<32, uint64(n))).Float64() < m.Probability
}

// requestOf returns what the log says of a request that has just come.
func requestOf(r *http.Request) Request {
	p, _ := parsePath(r.URL.Path) // a path that is none is logged as such
	return Request{
		page: pageNumber(p.verb(r), r.URL.Query().Get("continue")),
		Verb: p.verb(r), Resource: p.gvr, Subresource: p.subresource, Namespace: p.namespace, Name: p.nameOf(r),
		Query: r.URL.Query(), UserAgent: r.UserAgent(),
	}
}
