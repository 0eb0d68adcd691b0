package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/source"
)

// Namespaces returns those of the collection; none means all.
func (p *parts[T]) Namespaces() []string { return namespacesOf(p.present()) }

func namespacesOf[T any](parts []*part[T]) []string {
	var names []string
	for _, one := range parts {
		if one.namespace != "" {
			names = append(names, one.namespace)
		}
	}
	return names
}

// AddNamespace adds a namespace; one that is there changes nothing. Errors:
// ErrAllNamespaces, ErrClusterScoped, ErrStopped, ErrReleased.
func (p *parts[T]) AddNamespace(namespace string) error {
	p.changeMu.Lock()
	defer p.changeMu.Unlock()
	present := p.present()
	at, found, err := p.find(present, namespace)
	if err != nil || found {
		return err
	}
	one := newPart[T](namespace)
	p.applyMu.Lock()
	defer p.applyMu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.Over(); err != nil {
		return err
	}
	if err := p.queue.AddPartition(one.prefix); err != nil {
		return ofQueue(err)
	}
	p.progress.add(one.prefix)
	p.list = slices.Insert(slices.Clone(present), at, one)
	if p.begun {
		p.startLocked(one)
	}
	p.namespacesChangedLocked()
	return nil
}

// RemoveNamespace removes a namespace; one that is not there changes nothing. The collection is in sync
// again when its objects have left the cache. The reflector
// has ended before its partition is removed from the queue, so that the partition of a
// namespace that is added at once is another one. Errors: those of AddNamespace, and
// ErrLastNamespace.
func (p *parts[T]) RemoveNamespace(namespace string) error {
	p.changeMu.Lock()
	defer p.changeMu.Unlock()
	present := p.present()
	at, found, err := p.find(present, namespace)
	if err != nil || !found {
		return err
	}
	if len(present) == 1 {
		return fmt.Errorf("namespace %q: %w", namespace, ErrLastNamespace)
	}
	if err := p.dropPart(present, at); err != nil {
		return err
	}
	p.endPart(present[at])
	p.applyMu.Lock()
	p.progress.leave(present[at].prefix)
	p.applyMu.Unlock()
	return ofQueue(p.queue.RemovePartition(present[at].prefix))
}

func (p *parts[T]) dropPart(present []*part[T], at int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.Over(); err != nil {
		return err
	}
	p.list = slices.Delete(slices.Clone(present), at, at+1)
	p.namespacesChangedLocked()
	return nil
}

// endPart stops a part that the collection no longer has, and keeps its counters.
func (p *parts[T]) endPart(one *part[T]) {
	if one.stop != nil {
		one.stop()
		<-one.ended
	}
	last, decoded := one.health(), one.decoded()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removed.AddCounters(last)
	p.removed.decoding.Add(decoded)
}

// ofQueue translates the errors of a queue that Run has closed.
func ofQueue(err error) error {
	if errors.Is(err, delta.ErrClosed) {
		return ErrStopped
	}
	return err
}

// find looks for a namespace in a collection whose namespaces can be changed.
func (p *parts[T]) find(present []*part[T], namespace string) (at int, found bool, err error) {
	switch {
	case p.scopeOf(present[0].namespace) == source.ScopeCluster:
		return 0, false, fmt.Errorf("namespace %q: %w", namespace, ErrClusterScoped)
	case len(p.o.Namespaces) == 0:
		return 0, false, fmt.Errorf("namespace %q: %w", namespace, ErrAllNamespaces)
	}
	at, found = slices.BinarySearchFunc(present, namespace, func(one *part[T], namespace string) int {
		return strings.Compare(one.namespace, namespace)
	})
	return at, found, nil
}

func (p *parts[T]) namespacesChangedLocked() {
	if p.o.OnNamespaces != nil {
		p.o.OnNamespaces(namespacesOf(p.list))
	}
}
