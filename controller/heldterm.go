package controller

import (
	"errors"
	"sync"
	"time"

	"github.com/tidings-go/tidings/controller/election"
)

// errNoTerm is the error of the time before a replica has led.
var errNoTerm = errors.New("this replica has not led yet")

// noTerm is the closed term of a replica that has not led yet.
type noTerm struct{}

// Remaining returns 0.
func (noTerm) Remaining() time.Duration { return 0 }

// Done returns a closed channel.
func (noTerm) Done() <-chan struct{} { return closedChannel }

// Err returns errNoTerm.
func (noTerm) Err() error { return errNoTerm }

var closedChannel = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// heldTerm is a term of an election that the controllers of a manager share.
type heldTerm struct {
	*election.Term
	reached
}

func newHeldTerm(t *election.Term) *heldTerm {
	return &heldTerm{Term: t, reached: reached{versions: map[string]string{}}}
}

// reached has the newest versions, by resource and selection, that controllers have written.
type reached struct {
	mu       sync.Mutex        // guards versions
	versions map[string]string // nil if they are not known
}

// Reached records the newest versions, by resource and selection, that a controller has written, or
// waited for. The next process that runs the controller waits for them. Nil means that they are not
// known: then the term leaves no versions.
func (r *reached) Reached(versions map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if versions == nil || r.versions == nil {
		r.versions = nil
		return
	}
	for part, version := range versions {
		raise(r.versions, part, version)
	}
}
