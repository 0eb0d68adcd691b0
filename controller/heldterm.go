package controller

import (
	"sync"

	"github.com/tidings-go/tidings/controller/election"
)

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
