package apisim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// Match selects requests. The zero value selects all of them.
type Match struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection, or the
	// HTTP method for a path that names no resource; "" is any.
	Verb string
	// Resource is the plural with its group, such as "pods" or "deployments.apps", and with
	// its subresource, such as "pods/status"; "" is any path, and "*" any resource.
	Resource string
	// Namespace and Name are those of the path; "" is any. The name of a list or a watch is
	// that of the field selector metadata.name.
	Namespace, Name string
	// Host is the host of the URL, such as "127.0.0.1:6443"; "" is any. It tells clients with
	// the same user agent apart: give each an address of [Server.Listen], or, as a client of
	// [Server.Config] reaches the server under any name, a name in its Config.Host.
	Host string
	// UserAgent is a part of the header of that name; "" is any.
	UserAgent string
	// Query has parameters that a request must have, with their value or with "" for any,
	// such as {"continue": ""}; nil is any.
	Query map[string]string
	// Page is the number of a page of a list, 1 being the first, however often it is
	// requested; 0 is any request.
	Page int

	// Skip is how many of these requests are left out first.
	Skip int
	// Times is how many are selected after that; 0 is all.
	Times int
	// Probability is the chance of each to be selected, decided by the server's seed and by
	// the number of requests before; 0, like 1, is certain.
	Probability float64
}

// Nth returns the match of only one of the requests, 1 being the first.
func (m Match) Nth(n int) Match {
	m.Skip, m.Times = n-1, 1
	return m
}

// String returns the match as [ParseFault] reads it, such as "verb=list,resource=pods,nth=2",
// with its Query in addition.
func (m Match) String() string {
	var fields []string
	add := func(name, value string) {
		if value != "" && value != "0" {
			fields = append(fields, name+"="+value)
		}
	}
	add("verb", m.Verb)
	add("resource", m.Resource)
	add("namespace", m.Namespace)
	add("name", m.Name)
	add("host", m.Host)
	add("user-agent", m.UserAgent)
	for _, key := range slices.Sorted(maps.Keys(m.Query)) {
		add("query", key+"="+m.Query[key])
	}
	add("page", strconv.Itoa(m.Page))
	if m.Times == 1 {
		add("nth", strconv.Itoa(m.Skip+1))
	} else {
		add("skip", strconv.Itoa(m.Skip))
		add("times", strconv.Itoa(m.Times))
	}
	add("probability", strconv.FormatFloat(m.Probability, 'g', -1, 64))
	if fields == nil {
		return "any request"
	}
	return strings.Join(fields, ",")
}

// describes reports whether a request is of the described kind, whatever the number of
// requests before.
func (m Match) describes(r Request) bool {
	if m.Verb != "" && m.Verb != r.Verb || m.Namespace != "" && m.Namespace != r.Namespace ||
		m.Name != "" && m.Name != r.Name || m.Host != "" && m.Host != r.Host || m.Page != 0 && m.Page != r.page {
		return false
	}
	if m.Resource == "*" && r.Resource.Resource == "" ||
		m.Resource != "" && m.Resource != "*" && m.Resource != r.resourceText() {
		return false
	}
	for key, want := range m.Query {
		if values := r.Query[key]; len(values) == 0 || want != "" && values[0] != want {
			return false
		}
	}
	return strings.Contains(r.UserAgent, m.UserAgent)
}

// selectsNth reports whether the nth of the described requests, 0 being the first, is
// selected. seed and injection give each injection a chance of its own.
func (m Match) selectsNth(n int, seed, injection uint64) bool {
	if n < m.Skip || m.Times > 0 && n >= m.Skip+m.Times {
		return false
	}
	if m.Probability <= 0 || m.Probability >= 1 {
		return true
	}
	return rand.New(rand.NewPCG(seed^injection<<32, uint64(n))).Float64() < m.Probability
}
