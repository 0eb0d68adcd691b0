package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/source"
)

// Namespaces returns the namespaces of the collection; none means all.
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

// AddNamespace adds a namespace; one that is there changes nothing. Errors: ErrAllNamespaces,
// ErrClusterScoped, ErrStopped, ErrReleased.
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

// RemoveNamespace removes a namespace; one that is not there changes nothing. The collection is in
// sync again when its objects have left the cache. The reflector has ended before its partition is
// removed from the queue, so that the partition of a namespace that is added at once is another
// one. Errors: as of AddNamespace, and ErrLastNamespace.
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

// Where only the server knows whether objects of a type have a namespace, and the selection names
// none, the collection begins with the default namespaces. When a source finds that the type is
// cluster-scoped, one part for everything takes their place. A definition can be installed anew
// with another scope: then the namespaces return.

// scopeOf returns the scope of the type as the part of a namespace knows it.
func (p *parts[T]) scopeOf(namespace string) source.Scope {
	if p.o.NamespacesByDefault && namespace == "" {
		return source.ScopeCluster
	}
	return p.o.Scope
}

// followsScope returns a source that makes the collection follow the scope of the type.
func (p *parts[T]) followsScope(src source.Source[T]) source.Source[T] {
	if !p.o.NamespacesByDefault {
		return src
	}
	return scopedSource[T]{src, p.followScope}
}

// scopedSource replaces the parts when the scope of the type turns out to be another one.
type scopedSource[T any] struct {
	source.Source[T]
	follow func(clusterScoped bool) // does not wait
}

// List lists, as of [source.Source].
func (s scopedSource[T]) List(ctx context.Context, o source.ListOptions) (source.Page[T], error) {
	page, err := s.Source.List(ctx, o)
	return page, s.checked(ctx, err)
}

// Watch watches, as of [source.Source].
func (s scopedSource[T]) Watch(
	ctx context.Context, o source.WatchOptions,
) (source.Stream[T], error) {
	stream, err := s.Source.Watch(ctx, o)
	return stream, s.checked(ctx, err)
}

// checked waits for the end of the part if the scope was wrong. That is no failure, which health
// would show and FailFast would end a wait for.
func (s scopedSource[T]) checked(ctx context.Context, err error) error {
	clusterScoped := errors.Is(err, source.ErrWrongScope)
	if !clusterScoped && !errors.Is(err, source.ErrNamespaced) {
		return err
	}
	s.follow(clusterScoped)
	<-ctx.Done()
	return err
}

// followScope starts replaceParts. It is called from a reflector, which ends then.
func (p *parts[T]) followScope(clusterScoped bool) {
	p.goroutines.start("scope", func(context.Context) { p.replaceParts(clusterScoped) })
}

// replaceParts replaces the parts of the default namespaces by one for everything, or the other way
// round. The cached objects go as with RemoveNamespace.
func (p *parts[T]) replaceParts(clusterScoped bool) {
	p.changeMu.Lock()
	defer p.changeMu.Unlock()
	old := p.present()
	if clusterScoped == (old[0].namespace == "") {
		return // another part has found it before
	}
	namespaces := p.setAside
	if clusterScoped {
		namespaces, p.setAside = nil, namespacesOf(old)
	}
	list, partitions := newParts[T](namespaces)
	p.mu.Lock()
	p.list = list
	p.mu.Unlock()
	for _, one := range old {
		p.endPart(one)
	}
	p.applyMu.Lock()
	defer p.applyMu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.goroutines.context().Err() != nil || p.queue.ReplacePartitions(partitions...) != nil {
		return // the queue is closed
	}
	for _, one := range list {
		p.progress.add(one.prefix)
		p.startLocked(one)
	}
}
