package tidingstest

import (
	"cmp"
	"iter"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Server is the API server that informers are run against. Its faults are optional: [Run]
// leaves out the tests that need faults, all of which are nil. Lost connections, refused
// requests and expired versions need none of them: the suite makes these on the informer's
// side of the connection.
type Server struct {
	// Config is a client configuration with all permissions.
	Config *rest.Config
	// Client is the client that the tests write with; nil makes one of Config. A client
	// without a Config, such as client-go's fake clientset, is a server of its own: the
	// kinds of [FakeKinds] read from it. It must then be new for every test.
	Client kubernetes.Interface
	// Settle returns when all goroutines are blocked: it is synctest.Wait within a bubble.
	// With it, waiting takes no time, and tests that wait for many minutes are run; without
	// it they are left out, and the absence of events is shown by later ones.
	Settle func()
	// Patience is the longest wait for an expected event; 0 means a minute.
	Patience time.Duration

	// CutConnections ends all connections.
	CutConnections func() error
	// Restart ends the server and starts it again, with the same objects.
	Restart func() error
	// Compact deletes the history of all resources, so that older versions are 410 Gone.
	Compact func() error
	// Backup saves the present state. restore brings it back, with resource versions that
	// go on from there.
	Backup func() (restore func() error, err error)
}

// TB has the methods of *testing.T that the tests need.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Run runs the suite on one server for all tests, with the given kinds of informers.
// Without kinds it uses [Kinds], or [FakeKinds] if the server has no Config. Tests that
// change nothing for others run in parallel and mostly wait: a larger -parallel makes them
// faster. In a testing/synctest bubble tests cannot have tests of their own:
// use [Tests] there, with a bubble for each.
func Run(t *testing.T, s Server, kinds ...Kind) {
	t.Helper()
	if len(kinds) == 0 && s.Config == nil {
		kinds = FakeKinds()
	}
	for name, test := range all(kinds) {
		if s.lacks(test.needs) == "" {
			t.Run(name, func(t *testing.T) {
				if test.needs&needAlone == 0 {
					t.Parallel()
				}
				test.run(t, s)
			})
		}
	}
}

// Tests returns the tests by name, such as "dynamic/P04_EveryChangeInOrder", for the given
// kinds, or for [Kinds] without any. A test that needs a fault fails on a server that does
// not make it.
func Tests(kinds ...Kind) iter.Seq2[string, func(t TB, s Server)] {
	return func(yield func(string, func(t TB, s Server)) bool) {
		for name, test := range all(kinds) {
			if !yield(name, test.run) {
				return
			}
		}
	}
}

// bound is a test for one kind.
type bound struct {
	test
	kind Kind
}

// all returns the tests that make sense for some kinds.
func all(kinds []Kind) iter.Seq2[string, bound] {
	if len(kinds) == 0 {
		kinds = Kinds()
	}
	return func(yield func(string, bound) bool) {
		for _, kind := range kinds {
			for _, test := range tests() {
				if test.suits(kind) && !yield(kind.Name+"/"+test.name, bound{test, kind}) {
					return
				}
			}
		}
	}
}

// need is a requirement of a test.
type need uint

const (
	// needGate is a Config, so that the suite can put a gate into the connection.
	needGate need = 1 << iota
	// needBubble is virtual time.
	needBubble
	// needFault is a fault that the server makes.
	needFault
	// needBackup is a state that can be restored.
	needBackup
	// needNative is an informer of package tidings.
	needNative
	// needSeveral is an informer of several namespaces.
	needSeveral
	// needAlone is that no other test runs, as the server or the process is changed.
	needAlone
)

// suits reports whether a test makes sense for a kind.
func (t test) suits(k Kind) bool {
	return (t.needs&needNative == 0 || !k.DropIn) && (t.needs&needSeveral == 0 || k.Namespaces > 1) && (t.needs&^(needNative|needAlone) == 0 || !k.Fake)
}

// lacks returns the missing fields for the given needs, "" if none is missing.
func (s Server) lacks(n need) string {
	missing := func(needed need, there bool, what string) string {
		if n&needed == 0 || there {
			return ""
		}
		return what
	}
	return cmp.Or(
		missing(needGate, s.Config != nil, "Config"),
		missing(needBubble, s.Settle != nil, "Settle"),
		missing(needFault, s.CutConnections != nil || s.Restart != nil || s.Compact != nil,
			"CutConnections, Restart or Compact"),
		missing(needBackup, s.Backup != nil, "Backup"),
	)
}

// run runs the test against a server.
func (b bound) run(t TB, s Server) {
	t.Helper()
	if what := s.lacks(b.needs); what != "" {
		t.Fatalf("this test needs a server with %s", what)
	}
	r := newRig(t, s, b)
	defer r.end()
	b.test.run(r)
}
