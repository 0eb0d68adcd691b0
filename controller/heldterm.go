package controller

import (
	"errors"
	"sync"
	"time"

	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/controller/internal/caches"
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

// newHeldTerm returns a term in which a number of controllers are to run.
func newHeldTerm(t *election.Term, controllers int) *heldTerm {
	left, known := t.HandOver()
	return &heldTerm{Term: t, reached: newReached(left, known, controllers)}
}

// reached has the newest versions, by resource and selection, that controllers have written.
type reached struct {
	mu       sync.Mutex        // guards the rest
	versions map[string]string // nil if they are not known
	// idle is the number of controllers that have not run. It is 0 if the versions that they wrote
	// before are known.
	idle int
}

// newReached returns the versions at the beginning of a term: those that the last holder has left, if they
// are known.
func newReached(left map[string]string, known bool, controllers int) reached {
	if known {
		return reached{versions: left}
	}
	return reached{versions: map[string]string{}, idle: controllers}
}

// begins records that a controller runs, which waits for what was written before.
func (r *reached) begins() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.idle = max(r.idle-1, 0)
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
		caches.Raise(r.versions, part, version)
	}
}

// handOver returns the versions for the next holder, nil if they are not known.
func (r *reached) handOver() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.idle > 0 {
		return nil
	}
	return r.versions
}
