package terms

import (
	"errors"
	"sync"
	"time"

	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/controller/internal/caches"
)

// None is the closed term of a replica that has not led yet.
type None struct{}

// Remaining returns 0.
func (None) Remaining() time.Duration { return 0 }

// Done returns a closed channel.
func (None) Done() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}

var errNotLed = errors.New("this replica has not led yet")

// Err returns an error.
func (None) Err() error { return errNotLed }

// Shared is a term of an election that the controllers of a manager share.
type Shared struct {
	*election.Term
	versions
}

// NewShared returns a term in which a number of controllers are to run.
func NewShared(t *election.Term, controllers int) *Shared {
	left, known := t.HandOver()
	return &Shared{t, newVersions(left, known, controllers)}
}

// versions has the newest versions, by resource and selection, that controllers have written.
type versions struct {
	mu     sync.Mutex        // guards the rest
	newest map[string]string // nil if they are not known
	// idle is the number of controllers that have not run. It is 0 if the versions that they wrote
	// before are known.
	idle int
}

// newVersions returns the versions at the beginning of a term: those that the last holder has left,
// if they are known.
func newVersions(left map[string]string, known bool, controllers int) versions {
	if known {
		return versions{newest: left}
	}
	return versions{newest: map[string]string{}, idle: controllers}
}

// Begins records that a controller runs, which waits for what was written before.
func (v *versions) Begins() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.idle = max(v.idle-1, 0)
}

// Reached records the newest versions, by resource and selection, that a controller has written, or
// waited for. The next process that runs the controller waits for them. Nil means that they are not
// known: then the term leaves no versions.
func (v *versions) Reached(newest map[string]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if newest == nil || v.newest == nil {
		v.newest = nil
		return
	}
	for part, version := range newest {
		caches.Raise(v.newest, part, version)
	}
}

// Left returns the versions for the next holder, nil if they are not known.
func (v *versions) Left() map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.idle > 0 {
		return nil
	}
	return v.newest
}
