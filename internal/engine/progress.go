package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/tidings-go/tidings/internal/delta"
)

// progress knows which version each scope of a collection has reached, and wakes the waits
// for more.
//
// A removed scope stays until the processor has deleted its objects. If it is added again
// before that, there are two of its name. Batches then mean the first one: they come in the
// order of the scopes' lives.
type progress struct {
	mu      sync.Mutex   // guards the rest
	scopes  []scopeState // never empty; not written once it stands here
	changed chan struct{}
}

// scopeState is the version of a scope.
type scopeState struct {
	scope   string
	version string // "" until its first list is applied
	listed  bool
}

// add adds a scope, which has to be listed.
func (p *progress) add(scope string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scopes = append(slices.Clone(p.scopes), scopeState{scope: scope})
}

// after returns the scopes as they are once a batch is applied, and the version that the
// whole cache then reflects: the oldest of theirs. Only the processor calls it, and then
// reached; no scope may be added in between.
func (p *progress) after(removed []string, replaced bool, marks []delta.Mark) (scopes []scopeState, oldest string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	scopes = slices.Clone(p.scopes) // waits may be reading them
	for _, scope := range removed {
		if i := indexOf(scopes, scope); i >= 0 {
			scopes = slices.Delete(scopes, i, i+1)
		}
	}
	for n, mark := range marks {
		if i := indexOf(scopes, mark.Partition); i >= 0 {
			scopes[i].version = mark.Version
			scopes[i].listed = scopes[i].listed || replaced && n == 0
		}
	}
	return scopes, oldestOf(scopes)
}

func indexOf(scopes []scopeState, scope string) int {
	return slices.IndexFunc(scopes, func(s scopeState) bool { return s.scope == scope })
}

// reached sets the scopes that after has returned, once the cache holds the batch.
func (p *progress) reached(scopes []scopeState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scopes = scopes
}

// oldestOf returns the oldest version, "" while a scope has none.
func oldestOf(scopes []scopeState) string {
	oldest := ""
	for i, s := range scopes {
		if s.version == "" {
			return ""
		}
		if order, ok := delta.CompareDecimal(s.version, oldest); i == 0 || ok && order < 0 {
			oldest = s.version
		}
	}
	return oldest
}

// reflects reports whether every scope has reached version.
func (p *progress) reflects(version string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	order, ok := delta.CompareDecimal(oldestOf(p.scopes), version)
	return ok && order >= 0
}

// complete reports whether every scope was listed.
func (p *progress) complete() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !slices.ContainsFunc(p.scopes, func(s scopeState) bool { return !s.listed })
}

// wake wakes all waits.
func (p *progress) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// await calls done after every change until it returns true, or an error of its
// own, or ctx ends.
func (p *progress) await(ctx context.Context, done func() (bool, error)) error {
	for {
		p.mu.Lock()
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed := p.changed
		p.mu.Unlock()
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}
