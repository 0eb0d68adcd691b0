package engine

import (
	"context"
	"errors"

	"github.com/tidings-go/tidings/source"
)

// Where only the server knows whether objects of a type have a namespace, and the
// selection names none, the collection begins with the default namespaces. When a source
// finds that the type is cluster-scoped, one part for everything takes their place. A
// definition can be installed anew with another scope: then the namespaces return.

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

// checked waits for the end of the part if the scope was wrong. That is no failure, which
// health would show and FailFast would end a wait for.
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

// replaceParts replaces the parts of the default namespaces by one for everything, or the
// other way round. The cached objects go as with RemoveNamespace.
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
	if p.goroutines.running() == nil || p.queue.ReplacePartitions(partitions...) != nil {
		return // the queue is closed
	}
	for _, one := range list {
		p.progress.add(one.prefix)
		p.startLocked(one)
	}
}
