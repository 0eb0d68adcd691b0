package tidings

import (
	"context"
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

// reached takes over the marks of a batch and returns the version that the whole
// cache reflects: the oldest of the scopes'.
func (p *progress) reached(marks []delta.Mark, scopes []string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, mark := range marks {
		for i, scope := range scopes {
			if scope == mark.Scope {
				p.versions[i] = mark.Version
			}
		}
	}
	return p.oldestLocked()
}

func (p *progress) oldestLocked() string {
	oldest := p.versions[0]
	for _, version := range p.versions[1:] {
		if order, ok := delta.CompareDecimal(version, oldest); !ok || order < 0 {
			oldest = version
		}
	}
	return oldest
}

// reflects reports whether every scope has reached version.
func (p *progress) reflects(version string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	order, ok := delta.CompareDecimal(p.oldestLocked(), version)
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
