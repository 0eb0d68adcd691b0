package tidings

import (
	"context"
	"slices"
	"sync"

	"github.com/tidings-go/tidings/delta"
)

// progress knows which version each scope of a collection has reached, and wakes
// who waits for more.
type progress struct {
	mu       sync.Mutex // guards the rest
	versions []string   // by scope; "" until its first list is applied
	changed  chan struct{}
}

func (p *progress) init(scopes int) { p.versions = make([]string, scopes) }

// after returns the versions of the scopes as a batch with these marks leaves them,
// and the version that the whole cache then reflects: the oldest of them. Only the
// processor calls it, and then reached.
func (p *progress) after(marks []delta.Mark, scopes []string) (versions []string, oldest string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	versions = p.versions
	if len(marks) > 0 {
		versions = slices.Clone(versions) // who waits may be reading them
	}
	for _, mark := range marks {
		versions[slices.Index(scopes, mark.Scope)] = mark.Version
	}
	return versions, oldestOf(versions)
}

// reached takes over what after has returned, once the cache holds the batch.
func (p *progress) reached(versions []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.versions = versions
}

// oldestOf returns the oldest version, "" while a scope has none.
func oldestOf(versions []string) string {
	oldest := versions[0]
	for _, version := range versions {
		if version == "" {
			return ""
		}
		if order, ok := delta.CompareDecimal(version, oldest); ok && order < 0 {
			oldest = version
		}
	}
	return oldest
}

// reflects reports whether every scope has reached version.
func (p *progress) reflects(version string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	order, ok := delta.CompareDecimal(oldestOf(p.versions), version)
	return ok && order >= 0
}

// wake wakes everyone who waits.
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
