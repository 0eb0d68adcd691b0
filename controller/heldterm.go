package controller

import (
	"sync"

	"github.com/tidings-go/tidings/controller/election"
)

// heldTerm is a term of an election, as the controllers of a manager share it.
type heldTerm struct {
	*election.Term

	mu      sync.Mutex        // guards reached
	reached map[string]string // versions by resource; nil if they are not known
}

func newHeldTerm(t *election.Term) *heldTerm {
	return &heldTerm{Term: t, reached: map[string]string{}}
}

// Reached takes note of the newest versions, by resource, that a controller has written. The next
// holder of the Lease waits for them. If those of one controller are nil, they are not known, and
// nothing is left to the next holder.
func (t *heldTerm) Reached(versions map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if versions == nil || t.reached == nil {
		t.reached = nil
		return
	}
	for resource, version := range versions {
		raise(t.reached, resource, version)
	}
}
