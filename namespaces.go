package tidings

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/reflector"
	"github.com/tidings-go/tidings/source"
)

// part is one namespace of a collection, or all of it: what has a reflector of its
// own.
type part[T Object] struct {
	namespace string // "" for all
	scope     string
	reflector *reflector.Reflector[T]
	decoding  decodes            // what its source says, nil if it says nothing
	stop      context.CancelFunc // nil until it runs
	ended     chan struct{}      // closed when the reflector has returned; nil until it runs
}

// decoded returns what the part's source has decoded.
func (p *part[T]) decoded() source.DecodingStats {
	if p.decoding == nil {
		return source.DecodingStats{}
	}
	return p.decoding.DecodingStats()
}

func comparePart[T Object](p *part[T], namespace string) int {
	return strings.Compare(p.namespace, namespace)
}

// startPartLocked runs the reflector of a part until ctx ends.
func (c *collection[T]) startPartLocked(ctx context.Context, p *part[T]) {
	ctx, p.stop = context.WithCancel(ctx)
	p.ended = make(chan struct{})
	c.sources.Go(func() {
		defer close(p.ended)
		defer p.stop()
		if err := p.reflector.Run(ctx); err != nil {
			c.log().Error("a reflector did not run", "error", err)
		}
	})
}

// present returns the parts in the order of their namespaces.
func (c *collection[T]) present() []*part[T] {
	c.partsMu.Lock()
	defer c.partsMu.Unlock()
	return c.parts
}

// namespaces returns those that the collection holds, none for all.
func (c *collection[T]) namespaces() []string {
	var names []string
	for _, p := range c.present() {
		if p.namespace != "" {
			names = append(names, p.namespace)
		}
	}
	return names
}

// addNamespace has the collection hold another namespace.
func (c *collection[T]) addNamespace(namespace string) error {
	c.changing <- struct{}{}
	defer func() { <-c.changing }()
	if err := c.canChange(namespace); err != nil {
		return err
	}
	parts := c.present()
	at, found := slices.BinarySearchFunc(parts, namespace, comparePart)
	if found {
		return nil
	}
	p := c.newPart(namespace)
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	c.partsMu.Lock()
	defer c.partsMu.Unlock()
	if err := c.life.over(); err != nil {
		return err
	}
	if err := c.queue.AddPartition(p.scope); err != nil {
		return ofQueue(err)
	}
	c.progress.add(p.scope)
	c.parts = slices.Insert(slices.Clone(parts), at, p)
	if c.running != nil {
		c.startPartLocked(c.running, p)
	}
	c.selectionChangedLocked()
	return nil
}

// removeNamespace has the collection let go of a namespace. The reflector has ended
// before its scope is removed, so that one which comes back at once finds no other.
func (c *collection[T]) removeNamespace(namespace string) error {
	c.changing <- struct{}{}
	defer func() { <-c.changing }()
	if err := c.canChange(namespace); err != nil {
		return err
	}
	parts := c.present()
	at, found := slices.BinarySearchFunc(parts, namespace, comparePart)
	if !found {
		return nil
	}
	if len(parts) == 1 {
		return fmt.Errorf("namespace %q: %w", namespace, ErrLastNamespace)
	}
	p := parts[at]
	c.partsMu.Lock()
	if err := c.life.over(); err != nil {
		c.partsMu.Unlock()
		return err
	}
	c.parts = slices.Delete(slices.Clone(parts), at, at+1)
	c.selectionChangedLocked()
	c.partsMu.Unlock()
	c.endPart(p)
	return ofQueue(c.queue.RemovePartition(p.scope))
}

// endPart stops a part that is no part of the collection any more, and keeps its counts.
func (c *collection[T]) endPart(p *part[T]) {
	if p.stop != nil {
		p.stop()
		<-p.ended
	}
	last, decoded := p.reflector.Health(), p.decoded()
	c.partsMu.Lock()
	defer c.partsMu.Unlock()
	c.gone.AddCounters(last)
	c.gone.decoding.Add(decoded)
}

// ofQueue translates what a queue says that run has closed.
func ofQueue(err error) error {
	if errors.Is(err, delta.ErrClosed) {
		return ErrStopped
	}
	return err
}

// canChange says why namespaces cannot be added to the collection or removed.
func (c *collection[T]) canChange(namespace string) error {
	switch {
	case c.scopeFor(c.present()[0].namespace) == source.ScopeCluster:
		return fmt.Errorf("namespace %q: %w", namespace, ErrClusterScoped)
	case len(c.selection.namespaces) == 0:
		return fmt.Errorf("namespace %q: %w", namespace, ErrAllNamespaces)
	}
	return checkNamespaces([]string{namespace})
}

// selectionChangedLocked tells the factory under which selection the collection is to
// be found from now on.
func (c *collection[T]) selectionChangedLocked() {
	now := c.selection
	now.namespaces = nil
	for _, p := range c.parts {
		now.namespaces = append(now.namespaces, p.namespace)
	}
	if c.onSelection != nil {
		c.onSelection(now.String())
	}
}

// counters are those of removed namespaces, so that no count of the informer goes back.
type counters struct {
	health.Watch
	decoding source.DecodingStats
}

// AddNamespace has the informer hold another namespace, also while it runs. What it
// finds there is told as adds without the initial mark, unless the informer is not
// synced yet. WaitForSync waits for the namespace, and WaitFor too; one that cannot
// be read holds up no other and is named in Health. Adding a namespace that is there
// changes nothing.
//
// The informer is shared: all who hold a handle see the change, and whoever asks the
// factory for the namespaces that it had gets another informer. Name keeps what was
// asked for at first. It must not be called from a transform or the logger, whose return
// a RemoveNamespace elsewhere may be waiting for.
//
// Errors: ErrAllNamespaces, ErrClusterScoped, ErrStopped, ErrReleased, and a name that
// cannot be one of a namespace.
func (i *Informer[T]) AddNamespace(namespace string) error {
	return i.changeNamespaces(namespace, (*collection[T]).addNamespace)
}

// RemoveNamespace has the informer let go of a namespace, also while it runs. Its
// watch has ended when the call returns. Its objects are then deleted from the cache
// as one step, and told as deletes with the mark Tombstone and their last known
// state. Removing a namespace that is not there changes nothing.
//
// As with AddNamespace, all who hold a handle see the change, and it must not be called
// from a transform or the logger. The errors are those of AddNamespace and ErrLastNamespace.
func (i *Informer[T]) RemoveNamespace(namespace string) error {
	return i.changeNamespaces(namespace, (*collection[T]).removeNamespace)
}

func (i *Informer[T]) changeNamespaces(namespace string, change func(*collection[T], string) error) error {
	c, err := i.held()
	if err != nil {
		return err
	}
	if err := change(c, namespace); err != nil {
		return informerError(i.Name(), err)
	}
	return nil
}

// Namespaces returns the namespaces that the informer holds, sorted; none means all,
// a type whose objects have no namespace, or a handle that was released.
func (i *Informer[T]) Namespaces() []string {
	if c := i.collection.Load(); c != nil {
		return c.namespaces()
	}
	return nil
}
