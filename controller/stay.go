package controller

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/tidings-go/tidings/internal/see/inspect"
)

// stay is the stay of a process in a group, from [Slots.Claim] to [Slots.Left]:
//
//  1. The group claims the Slots. From then on, informers go on until the group was left.
//  2. Each membership begins with a term. Runs wait for it with next, and have a run for each term.
//  3. When the context of a Run ends, or a Run fails, end closes ended. The group gives the entries
//     away. Until it has, calls go on: outlast hides the end of the context from the Run.
//  4. The group leaves: ctx ends, and each outlast returns.
type stay struct {
	changed broadcast // of term
	ended   chan struct{}
	ctx     context.Context         // ends when the group was left
	stop    context.CancelCauseFunc // of ctx

	mu      sync.Mutex // guards the rest; taken under that of Slots
	claimed bool       // a group has the Slots, or has had them
	term    Term       // of the last membership, nil before
}

func (s *stay) init() {
	s.ended = make(chan struct{})
	s.ctx, s.stop = context.WithCancelCause(context.Background())
}

// claim gives the Slots to a group.
func (s *stay) claim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claimed = true
}

// isClaimed reports whether a group has the Slots, or has had them.
func (s *stay) isClaimed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claimed
}

// begin sets the term of a membership. The caller sends changed once runs may begin.
func (s *stay) begin(t Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term = t
}

// current returns the term of the last membership, nil before the first one.
func (s *stay) current() Term {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.term
}

// next waits for a membership after the last one. It returns nil if ctx ends first.
func (s *stay) next(ctx context.Context, last Term) Term {
	var term Term
	if !s.changed.await(ctx, func() bool {
		term = s.current()
		return term != nil && term != last && term.Err() == nil && ctx.Err() == nil
	}) {
		return nil
	}
	return term
}

// prolong makes an informer go on until the group was left, if one has the Slots.
func (s *stay) prolong(f inspect.Informer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claimed {
		f.Outlast(s.ctx)
	}
}

// outlast calls f, which is a Run, with a context that ends when the group was left, or with ctx if
// no group has the Slots. It returns once the group was left.
func (s *stay) outlast(ctx context.Context, f func(lasting context.Context) error) error {
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(s.ctx, stop)()
	defer context.AfterFunc(ctx, func() {
		if !s.end() {
			stop()
		}
	})()
	err := f(lasting)
	if !s.end() {
		return err
	}
	<-s.ctx.Done()
	if cause := context.Cause(s.ctx); err == nil && cause != errLeft {
		return cause
	}
	return err
}

// end tells the group that a Run ends. It reports whether a group has the Slots.
func (s *stay) end() (claimed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ended:
	default:
		close(s.ended)
	}
	return s.claimed
}

// errLeft is the cause of the end of stay.ctx without an error.
var errLeft = errors.New("the group was left")

// leave lets each Run return, with the error of the group if it has none of its own.
func (s *stay) leave(err error) { s.stop(cmp.Or(err, errLeft)) }
