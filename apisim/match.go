package apisim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
)

// Match selects requests. The zero value selects all of them.
type Match struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection, or the HTTP
	// method for a path without a resource; "" is any verb.
	Verb string
	// Resource is the plural with its group, such as "pods" or "deployments.apps", and with its
	// subresource, such as "pods/status"; "" is any path, and "*" any resource.
	Resource string
	// Namespace and Name are those of the path; "" is any. The name of a list or a watch is the one
	// that its field selector metadata.name requires.
	Namespace, Name string
	// Host is the host of the URL, such as "127.0.0.1:6443"; "" is any. It distinguishes clients
	// with the same user agent: give each an address of [Server.Listen]. A client of
	// [Server.Config] reaches the server under any name, so give it a name in its Config.Host.
	Host string
	// UserAgent is a part of the header of that name; "" is any.
	UserAgent string
	// Query has the parameters that a request must have, with their value or with "" for any value,
	// such as {"continue": ""}; nil is any query.
	Query map[string]string
	// Page is the number of a page of a list, 1 for the first, however often it is requested; 0 is
	// any request.
	Page int

	// Skip is the number of these requests that are left out first.
	Skip int
	// Times is the number of requests that are selected after that; 0 is all.
	Times int
	// Probability is the chance of each request to be selected, determined by the server's seed and
	// the number of requests before; 0, like 1, is certain.
	Probability float64
}

// Nth returns the match of the nth of the requests alone, 1 being the first.
func (m Match) Nth(n int) Match {
	m.Skip, m.Times = n-1, 1
	return m
}

// String returns the fields that are set, as in "verb=list,resource=pods,nth=2".
func (m Match) String() string {
	nth := 0
	if m.Times == 1 {
		nth, m.Skip, m.Times = m.Skip+1, 0, 0
	}
	var parts []string
	for _, f := range []struct {
		name  string
		value any
	}{
		{"verb", m.Verb}, {"resource", m.Resource}, {"namespace", m.Namespace}, {"name", m.Name},
		{"host", m.Host}, {"user-agent", m.UserAgent}, {"page", m.Page}, {"skip", m.Skip},
		{"times", m.Times}, {"nth", nth}, {"probability", m.Probability},
	} {
		if !reflect.ValueOf(f.value).IsZero() {
			parts = append(parts, fmt.Sprint(f.name, "=", f.value))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Query)) {
		parts = append(parts, "query="+key+"="+m.Query[key])
	}
	return cmp.Or(strings.Join(parts, ","), "any request")
}

// Verbs returns the verbs of requests to resources, as matches and rules name them.
func Verbs() []string {
	return []string{
		"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
	}
}

// describes reports whether the fields of the match fit a request, regardless of the number of
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

// selectsNth reports whether the match selects the nth of the described requests, 0 being the
// first. With seed and injection, each injection has random numbers of its own.
func (m Match) selectsNth(n int, seed, injection uint64) bool {
	if n < m.Skip || m.Times > 0 && n >= m.Skip+m.Times {
		return false
	}
	if m.Probability <= 0 || m.Probability >= 1 {
		return true
	}
	return rand.New(rand.NewPCG(seed^injection<<32, uint64(n))).Float64() < m.Probability
}
