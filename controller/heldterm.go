package controller

import (
	"sync"

	"github.com/tidings-go/tidings/controller/election"
)

// heldTerm is a term of an election, as the controllers of a manager share it.
type heldTerm struct {
	*election.Term
	reached
}

func newHeldTerm(t *election.Term) *heldTerm {
	return &heldTerm{Term: t, reached: reached{versions: map[string]string{}}}
}

// reached are the newest versions, by resource, that controllers have written.
type reached struct {
	mu       sync.Mutex        // guards versions
	versions map[string]string // nil if they are not known
}

// Reached takes note of the newest versions, by resource, that a controller has written, or waited for.
// The next process to run it waits for them. If those of one controller are nil, they are not known,
// and nothing is left.
func (r *reached) Reached(versions map[string]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if versions == nil || r.versions == nil {
		r.versions = nil
		return
	}
	for resource, version := range versions {
		raise(r.versions, resource, version)
	}
}
