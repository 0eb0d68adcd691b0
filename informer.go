package tidings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/delta"
	"github.com/tidings-go/tidings/reflector"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/source/dedup"
)

// Informer is a handle to a watched and cached collection. All handles to one
// collection share its watch and its cache; each has handlers of its own.
type Informer[T Object] struct {
	collection *collection[T]
	release    func() // gives the handle back to its factory; nil without one

	mu            sync.Mutex // guards registrations
	registrations map[*Registration]struct{}
	released      atomic.Bool
}

// InformerOptions are the choices of an informer without a factory. The zero value
// is ready.
type InformerOptions[T Object] struct {
	// Name is what errors, logs and health call the informer; the default is the
	// name of its Go type.
	Name string
	// Resource is what a lister says is missing when an object is not found.
	Resource schema.GroupResource
	// Indexes are the index functions by name; AddIndex, IndexLabels and IndexOwners
	// add more.
	Indexes map[string]IndexFunc[T]
	// Transform replaces objects before they are cached; nil leaves them. It may change what
	// it is given as far as the source lets it: one of package source has to be made with
	// RESTOptions.Sharing of ShareStrings or ShareNothing for that.
	Transform func(T) (T, error)
	// Sharing says what cached objects have in common in memory; 0 means ShareAll. What the
	// source yields, or a transform returns, is replaced by an equal object that shares, and
	// not written to. With ShareNothing it is cached itself, as Secrets are in any case. A
	// source that has the method DecodingStats, as those of package source have, is taken to
	// share as it decodes: then this is for the results of a transform alone.
	Sharing Sharing
	// Among is the table of those that share with each other; nil means that the informer
	// shares among its own objects.
	Among *dedup.Table
	// Reflector says how to list and watch. Its Name, Scope, Accept, Transform,
	// Known, Logger and OnChange are the informer's.
	Reflector reflector.Options[T]
	// Logger receives what goes wrong; nil discards it.
	Logger *slog.Logger
}

// NewInformer returns an informer of what src yields, without a factory: Run runs
// it. A factory shares informers and knows how to reach a server; this is for
// sources of one's own.
//
// There is nothing like Selection.Drop here, as it is the source that decodes: one of package
// source has RESTOptions.Drop, any other leaves out fields where it makes its objects.
func NewInformer[T Object](src source.Source[T], o InformerOptions[T]) (*Informer[T], error) {
	if src == nil {
		return nil, errors.New("tidings: NewInformer: the source is nil: make one with package source or implement source.Source")
	}
	if o.Name == "" {
		var none T
		o.Name = fmt.Sprintf("%T", none)
	}
	if o.Sharing < ShareAll || o.Sharing > ShareNothing {
		return nil, informerError(o.Name, fmt.Errorf("InformerOptions.Sharing: there is no %d: use ShareAll, ShareStrings or ShareNothing", o.Sharing))
	}
	for name := range o.Indexes {
		if err := checkIndexName(name); err != nil {
			return nil, informerError(o.Name, err)
		}
	}
	everything, err := Selection{}.check(source.ScopeUnknown, nil)
	if err != nil {
		return nil, informerError(o.Name, err)
	}
	c, err := newCollection(collectionOptions[T]{
		name: o.Name, resource: o.Resource, selection: everything,
		source:    func(string) source.Source[T] { return src },
		transform: o.Transform, sharer: sharerOf(src, o), indexes: o.Indexes, reflector: o.Reflector, logger: o.Logger,
	})
	if err != nil {
		return nil, informerError(o.Name, err)
	}
	return newInformer(c, nil), nil
}

func newInformer[T Object](c *collection[T], release func()) *Informer[T] {
	return &Informer[T]{collection: c, release: release, registrations: make(map[*Registration]struct{})}
}

// Name returns what errors, logs and health call the informer.
func (i *Informer[T]) Name() string { return i.collection.name }

// Run lists and watches until ctx ends. When it returns, every goroutine of the
// informer has ended, but for handlers that have not returned within ten seconds,
// which the error names. It returns ErrRanAlready, and changes nothing, when it
// was called before or when the informer belongs to a factory that was started.
func (i *Informer[T]) Run(ctx context.Context) error {
	if i.released.Load() {
		return informerError(i.Name(), ErrReleased)
	}
	if err := i.collection.claim(); err != nil {
		return err
	}
	return i.collection.run(ctx)
}

// AddHandler has h told of every object that is cached, as an initial add, and of
// every change from then on. It returns an error if the informer has stopped.
func (i *Informer[T]) AddHandler(h Handler[T], o HandlerOptions) (*Registration, error) {
	if h == nil {
		return nil, informerError(i.Name(), errNilHandler)
	}
	if err := o.check(); err != nil {
		return nil, informerError(i.Name(), err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.released.Load() {
		return nil, informerError(i.Name(), ErrReleased)
	}
	subscription, err := i.collection.subscribe(h, o)
	if err != nil {
		return nil, err
	}
	registration := &Registration{subscription: subscription}
	registration.unlist = func() { i.unlist(registration) }
	i.registrations[registration] = struct{}{}
	return registration, nil
}

func (i *Informer[T]) unlist(r *Registration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.registrations, r)
}

// Lister returns the reader of the cache. It may be asked before the informer
// runs, and yields nothing then.
func (i *Informer[T]) Lister() Lister[T] {
	return Lister[T]{store: i.collection.store, resource: i.collection.resource}
}

// Synced is closed when the cache holds the first complete list.
func (i *Informer[T]) Synced() <-chan struct{} { return i.collection.synced }

// HasSynced reports whether Synced is closed.
func (i *Informer[T]) HasSynced() bool { return i.collection.hasSynced() }

// Health says how the informer and its handlers are.
func (i *Informer[T]) Health() Health { return i.collection.health() }

// WaitForSync waits until the cache holds a complete list of every namespace, those
// included that were added meanwhile. Its error, a *NotSyncedError, says what the informer was doing when ctx ended.
func (i *Informer[T]) WaitForSync(ctx context.Context) error {
	return waitForSync(ctx, []waiter{i.collection}, false)
}

// WaitFor waits until the cache reflects at least the given resource version of
// this resource, which is how to read one's own writes: pass the version that the
// write returned. Events and bookmarks move it; that the object was deleted again
// makes no difference. With several namespaces, all have to reach it. A version that
// the selection hides from the watch, or that changed an object of another namespace,
// is reached with a later event or the server's next bookmark, which may take a
// minute, and never where the server sends none. Versions are compared as decimals of
// any length; one that is none is an error.
func (i *Informer[T]) WaitFor(ctx context.Context, version string) error {
	c := i.collection
	if _, ok := delta.CompareDecimal(version, version); !ok {
		return informerError(i.Name(), fmt.Errorf("version %q cannot be waited for: pass the resourceVersion of an object that was written", version))
	}
	err := c.progress.await(ctx, func() (bool, error) {
		if c.stopped.Load() {
			return false, ErrStopped
		}
		return c.progress.reflects(version), nil
	})
	if err != nil {
		h := c.health()
		return informerError(i.Name(), fmt.Errorf("waiting for version %s, is at %q and %s: %w", version, h.Version, h.State, err))
	}
	return nil
}

// Release gives the handle back. Its handlers are removed; with the last handle of
// an informer of a factory, the watch ends and the memory is freed. It may be
// called more than once.
func (i *Informer[T]) Release() {
	if !i.released.CompareAndSwap(false, true) {
		return
	}
	i.mu.Lock()
	registrations := i.registrations
	i.registrations = make(map[*Registration]struct{})
	i.mu.Unlock()
	for registration := range registrations {
		registration.subscription.Remove()
	}
	if i.release != nil {
		i.release()
	}
}
