package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/e2e/internal/journal"
)

// transport notes the requests that are sent. It is below the guard. The times in Leases are those
// of the replica's clock, which is ahead of the machine's by so much: nothing else of a clock
// leaves a replica.
type transport struct {
	next  http.RoundTripper
	r     *replica
	clock time.Duration
}

func (r *replica) wrap(clock time.Duration) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return &transport{next, r, clock} }
}

// WrappedRoundTripper returns the transport below.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip sends a request.
func (t *transport) RoundTrip(q *http.Request) (*http.Response, error) {
	isWatch := q.URL.Query().Get("watch") == "true"
	t.r.note(journal.Request, journal.Entry{Text: textOf(q, isWatch)})
	if number, ok := q.Context().Value(writeKey{}).(uint64); ok {
		t.r.note(journal.Sent, journal.Entry{Number: number})
	}
	if !strings.Contains(q.URL.Path, "/leases") || q.Method != http.MethodPost && q.Method != http.MethodPut {
		return t.next.RoundTrip(q)
	}
	return t.sendLease(q)
}

// textOf returns the verb and the resource of a request.
func textOf(q *http.Request, isWatch bool) string {
	verb := q.Method
	if isWatch {
		verb = "WATCH"
	}
	for _, resource := range []string{"configmaps", "leases"} {
		if strings.Contains(q.URL.Path, "/"+resource) {
			return verb + " " + resource
		}
	}
	return verb + " other"
}

// sendLease sends a Lease, and notes it if it is a renewal.
func (t *transport) sendLease(q *http.Request) (*http.Response, error) {
	var l coordinationv1.Lease
	body, err := io.ReadAll(q.Body)
	if err == nil {
		err = json.Unmarshal(body, &l)
	}
	if err != nil {
		return nil, err
	}
	isRenewal := l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity == l.Name
	if acquired, renewed := l.Spec.AcquireTime, l.Spec.RenewTime; renewed != nil {
		if acquired != nil && acquired.Equal(renewed) {
			acquired.Time = acquired.Add(t.clock) // it is new too
		}
		renewed.Time = renewed.Add(t.clock)
	}
	if body, err = json.Marshal(&l); err != nil {
		return nil, err
	}
	q = q.Clone(q.Context())
	q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	q.GetBody = nil
	if !isRenewal {
		return t.next.RoundTrip(q)
	}
	e := journal.Entry{Member: l.Name, Number: t.r.renewals.Add(1)}
	t.r.note(journal.Renew, e)
	answer, err := t.next.RoundTrip(q)
	if err == nil && answer.StatusCode/100 == 2 {
		t.r.note(journal.Renewed, e)
	}
	return answer, err
}
