package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/tidings-go/tidings/apiserver"
)

// replicas is the group of the users whose requests are in the audit log.
const replicas = "replicas"

// auditPolicy puts the end of each request of the group into the log, and the bodies of those for
// leases.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Request
  userGroups: [replicas]
  resources: [{group: coordination.k8s.io, resources: [leases]}]
- level: Metadata
  userGroups: [replicas]
- level: None
`

// startAudited starts a server, and returns it with a function that reads its audit log.
func startAudited(t *testing.T) (*apiserver.Server, func() auditLog) {
	t.Helper()
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	server := newServer(t, "--audit-policy-file="+policy, "--audit-log-path="+path)
	return server, func() (all auditLog) {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			var e auditv1.Event
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
		slices.SortFunc(all, func(a, b auditv1.Event) int {
			return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp.Time)
		})
		return all
	}
}

// auditLog has the requests of replicas, in the order in which the server received them.
type auditLog []auditv1.Event

// resourceOf returns the resource of a request, "" without one.
func resourceOf(e auditv1.Event) string {
	if e.ObjectRef == nil {
		return ""
	}
	return resourceName(e.ObjectRef.APIGroup, e.ObjectRef.Resource, e.ObjectRef.Subresource)
}

// resourceName returns a name as in deployments.apps/status.
func resourceName(group, resource, subresource string) string {
	return strings.TrimSuffix(strings.TrimSuffix(resource+"."+group, ".")+"/"+subresource, "/")
}

const leases = "leases.coordination.k8s.io"

// isWrite reports whether a request is one that a term is needed for. Recorders write events at any
// time.
func isWrite(e auditv1.Event) bool {
	resource := resourceOf(e)
	return slices.Contains([]string{"create", "update", "patch", "delete"}, e.Verb) &&
		resource != "" && resource != leases && resource != "events.events.k8s.io"
}

// succeeded reports whether the server has carried a request out.
func succeeded(e auditv1.Event) bool {
	return e.ResponseStatus != nil && e.ResponseStatus.Code/100 == 2
}

// heldTerm is a time in which the server has let a replica write.
type heldTerm struct {
	user, identity string
	// taken and renewed are the times at which the server received the first and the last write of
	// the Lease.
	taken, renewed time.Time
	// until is the time at which the server received the release, else the fence after renewed: no
	// renewal was sent later than it was received.
	until    time.Time
	released bool
}

// terms returns the terms of a log, and fails the test if two of them overlap or have one identity.
func (l auditLog) terms(t *testing.T) (terms []heldTerm) {
	t.Helper()
	for _, e := range l {
		if resourceOf(e) != leases || e.RequestObject == nil || !succeeded(e) ||
			strings.Contains(e.RequestURI, "dryRun") {
			continue
		}
		var lease coordinationv1.Lease
		if err := json.Unmarshal(e.RequestObject.Raw, &lease); err != nil {
			t.Fatal(err)
		}
		at, identity := e.RequestReceivedTimestamp.Time, *lease.Spec.HolderIdentity
		fence := time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second * 4 / 5
		last := len(terms) - 1
		switch {
		case identity == "":
			terms[last].until, terms[last].released = at, true
		case last >= 0 && terms[last].identity == identity:
			terms[last].renewed, terms[last].until = at, at.Add(fence)
		default:
			terms = append(terms, heldTerm{user: e.User.Username, identity: identity, taken: at,
				renewed: at, until: at.Add(fence)})
		}
	}
	for i, term := range terms {
		t.Logf("term %d of %s: %v", i, term.user, term.until.Sub(term.taken).Round(time.Millisecond))
		for _, former := range terms[:i] {
			if term.taken.Before(former.until) || term.identity == former.identity {
				t.Errorf("the term %+v overlaps %+v, or has its identity", term, former)
			}
		}
	}
	return terms
}

// late returns the writes of replicas that the server received while they had no term.
func (l auditLog) late(terms []heldTerm) (late auditLog) {
	for _, e := range l {
		at := e.RequestReceivedTimestamp.Time
		inTerm := func(term heldTerm) bool {
			return term.user == e.User.Username && !at.Before(term.taken) && !at.After(term.until)
		}
		if isWrite(e) && !slices.ContainsFunc(terms, inTerm) {
			late = append(late, e)
		}
	}
	return late
}

// checkFenced asks that replicas have written in their terms alone, and returns the terms.
func (l auditLog) checkFenced(t *testing.T) []heldTerm {
	t.Helper()
	terms := l.terms(t)
	for _, e := range l.late(terms) {
		t.Errorf("%s has sent %s of %s at %v, outside of its terms", e.User.Username, e.Verb,
			resourceOf(e), e.RequestReceivedTimestamp)
	}
	return terms
}
