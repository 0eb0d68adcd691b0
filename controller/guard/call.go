package guard

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Term is a time during which a program may write. If it has a method AfterFunc, it calls the
// function in a goroutine once the term is closed, as context.AfterFunc does for a context. A write
// under a term without AfterFunc takes a goroutine.
type Term interface {
	// Remaining returns the time for which the term stays open if it is not renewed. At 0 or less
	// the term is closed.
	Remaining() time.Duration
	// Done returns a channel that is closed when the term is.
	Done() <-chan struct{}
	// Err returns nil while the term is open, and then the reason for its end.
	Err() error
}

// Write is a write that a cache may have to show before the next call.
type Write struct {
	// Resource is the resource; a subresource counts for its parent.
	Resource schema.GroupResource
	// Namespace and Name are those of the object. Name is "" for a collection, and for a create
	// whose name is not known.
	Namespace, Name string
	// UID is "" if it is not known.
	UID types.UID
	// Version is the version in the answer, "" if it is not known. A conflict has the version and
	// UID in the request.
	Version string
	// Gone reports whether the object with the UID is gone. After Resolve, it reports whether
	// there was no object with the name at the version.
	Gone bool
	// Unknown reports whether the outcome or the version is not known. Then call Resolve, not
	// before NotBefore.
	Unknown bool
	// NotBefore is the time at which the server has certainly ended the request.
	NotBefore time.Time
	// Conflict reports whether the server refused the write, as the object has another version
	// than the request or exists already. The cache should pass the version.
	Conflict bool
	// Settled reports whether no cache can show the write: the resource is gone, or cannot be
	// read.
	Settled bool
	// Sent is the time at which the write was sent.
	Sent time.Time
}

// Call is one call of a reconciler. The guard records the writes with its context.
type Call struct {
	// Name is the name of the call in errors. Set it before the context is used.
	Name string

	term Term // may be nil

	mu       sync.Mutex // guards the rest
	ended    bool
	attempts []*attempt // in the order in which they were sent
	pending  int        // attempts without an outcome
	done     chan struct{}
}

// callKey is the key of a guard's calls in contexts.
type callKey struct{ *Guard }

// Begin begins a call. The context carries it to the clients of this guard. With a term, its
// writes are sent only while the term is open; nil is no term. Calls must be ended.
func (g *Guard) Begin(ctx context.Context, term Term) (context.Context, *Call) {
	c := &Call{term: term, done: make(chan struct{})}
	return context.WithValue(ctx, callKey{g}, c), c
}

// End ends the call, and returns its writes as Writes does. Later writes with its context are
// refused.
func (c *Call) End() []Write {
	c.mu.Lock()
	if !c.ended {
		c.ended = true
		c.checkDoneLocked()
	}
	c.mu.Unlock()
	return c.Writes()
}

// Done returns a channel that is closed when the call has ended and each of its writes has an
// outcome, which may be unknown. Each write has an outcome at its NotBefore at the latest.
func (c *Call) Done() <-chan struct{} { return c.done }

// Writes returns the known state of the writes so far: one entry for each attempt that may have
// been applied, in the order in which they were sent. An attempt that has no answer yet is
// Unknown.
func (c *Call) Writes() []Write {
	c.mu.Lock()
	defer c.mu.Unlock()
	var writes []Write
	for _, a := range c.attempts {
		if !a.void {
			writes = append(writes, a.write)
		}
	}
	return writes
}

// add records an attempt. It reports false if the call has ended.
func (c *Call) add(a *attempt) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.attempts = append(c.attempts, a)
	c.pending++
	return true
}

// name returns the name of the call, "" for nil.
func (c *Call) name() string {
	if c == nil {
		return ""
	}
	return c.Name
}

func (c *Call) hasEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

func (c *Call) checkDoneLocked() {
	if c.ended && c.pending == 0 {
		close(c.done)
	}
}
