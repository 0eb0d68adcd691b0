package tidings

import (
	"context"
	"errors"

	"github.com/tidings-go/tidings/source"
)

// Where only the server knows whether objects of a type have a namespace, and the
// selection names none, the collection begins with the namespaces of the factory. When a
// source finds that the type is cluster-scoped, one part for everything takes their
// place. It watches over the scope in turn, as a definition can be made anew with
// another one, and gives way to the namespaces then.

// scopeFor returns what is known of the scope of the type by the part of a namespace.
func (c *collection[T]) scopeFor(namespace string) source.Scope {
	if c.selection.byDefault && namespace == "" {
		return source.ScopeCluster
	}
	return c.scope
}

// scoped returns a source that has the collection follow the scope of its type.
func (c *collection[T]) scoped(src source.Source[T]) source.Source[T] {
	if !c.selection.byDefault {
		return src
	}
	return scopedSource[T]{src, c.followScope}
}

// scopedSource is a source whose part is replaced when the scope of its type turns out to
// be another one.
type scopedSource[T Object] struct {
	source.Source[T]
	follow func(clusterScoped bool) // has the parts replaced, and does not wait
}

// List lists, as of [source.Source].
func (s scopedSource[T]) List(ctx context.Context, o source.ListOptions) (source.Page[T], error) {
	page, err := s.Source.List(ctx, o)
	return page, s.checked(ctx, err)
}

// Watch watches, as of [source.Source].
func (s scopedSource[T]) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[T], error) {
	stream, err := s.Source.Watch(ctx, o)
	return stream, s.checked(ctx, err)
}

// checked waits for the end of the part if the scope was wrong: that is no failure, which
// health would show and FailFast end a wait for.
func (s scopedSource[T]) checked(ctx context.Context, err error) error {
	clusterScoped := errors.Is(err, source.ErrWrongScope)
	if !clusterScoped && !errors.Is(err, source.ErrNamespaced) {
		return err
	}
	s.follow(clusterScoped)
	<-ctx.Done()
	return err
}

// followScope has replaceParts run. It is called from a reflector, which ends then.
func (c *collection[T]) followScope(clusterScoped bool) {
	c.partsMu.Lock()
	defer c.partsMu.Unlock()
	if !c.ending {
		c.sources.Go(func() { c.replaceParts(clusterScoped) })
	}
}

// replaceParts has one part for everything take the place of those of the default
// namespaces, or the other way round. What is cached goes as with RemoveNamespace.
func (c *collection[T]) replaceParts(clusterScoped bool) {
	c.changing <- struct{}{}
	defer func() { <-c.changing }()
	old := c.present()
	if clusterScoped == (old[0].namespace == "") {
		return // another part has found it before
	}
	namespaces := c.setAside
	if clusterScoped {
		namespaces, c.setAside = []string{""}, c.namespaces()
	}
	var parts []*part[T]
	var scopes []string
	for _, namespace := range namespaces {
		parts = append(parts, c.newPart(namespace))
		scopes = append(scopes, scopeOf(namespace))
	}
	c.partsMu.Lock()
	c.parts = parts
	c.partsMu.Unlock()
	for _, p := range old {
		c.endPart(p)
	}
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	c.partsMu.Lock()
	defer c.partsMu.Unlock()
	if c.ending || c.queue.ReplacePartitions(scopes...) != nil {
		return // the queue is closed
	}
	for _, p := range parts {
		c.progress.add(p.scope)
		c.startPartLocked(c.running, p)
	}
}
