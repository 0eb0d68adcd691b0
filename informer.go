package tidings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// Informer is a handle to a watched and cached collection. All handles to one
// collection share its watch and its cache; each has handlers of its own.
//
// An informer runs once. When it has stopped, or is stopping, it takes no more handlers and
// is not in sync, whatever its cache holds: AddHandler, WaitForSync and WaitFor return
// ErrStopped. Its factory returns a new one when it is asked again.
type Informer[T Object] struct {
	life     *engine.Lifecycle // has the name, and does not hold the cache
	resource schema.GroupResource
	synced   <-chan struct{}

	// collection is nil once the handle is released, so that it holds no memory then.
	collection atomic.Pointer[collection[T]]
	releasing  context.Context // ends, with the cause ErrReleased, when it is

	mu            sync.Mutex // guards the rest
	registrations map[*Registration]struct{}
	release       func() // called by Release once; nil afterwards
}

// InformerOptions are the choices of an informer without a factory. The zero value
// is ready.
type InformerOptions[T Object] struct {
	// Name names the informer in errors, logs and health; the default is the name of its Go
	// type.
	Name string
	// Resource is named by the error of a lister when an object is not found.
	Resource schema.GroupResource
	// Indexes are the first indexes; AddIndex, IndexLabels and IndexOwners add more.
	Indexes []*Index[T]
	// Transform replaces objects before they are cached; nil leaves them. It may
	// change the object that it receives if the source permits that: a source of package
	// source must then be made with ShareStrings or ShareNothing as RESTOptions.Sharing.
	Transform func(T) (T, error)
	// Slots are those of which the informer has the objects, as in Selection; nil is all objects.
	Slots *Slots
	// Transport tunes lists and watches, as far as informers do. With Sharing, the objects
	// that the source yields, or the results of a transform, are replaced by equal objects
	// that share, and not written to; with ShareNothing they are cached themselves, as Secrets
	// are in any case. A source that has the method DecodingStats, as those of package source
	// have, shares as it decodes: then Sharing is for the results of a transform alone. With a
	// nil Table, the informer shares among its own objects.
	Transport Transport
	// Logger receives warnings and errors; nil means slog.Default(). slog.DiscardHandler is for
	// silence.
	Logger *slog.Logger
}

// NewInformer returns an informer of the objects of a source, without a factory: Run runs it. A
// factory shares informers and knows how to reach a server; this is for other sources.
//
// There is nothing like Selection.Drop here, as it is the source that decodes: one of package
// source has RESTOptions.Drop, any other leaves out fields where it makes its objects.
func NewInformer[T Object](src source.Source[T], o InformerOptions[T]) (*Informer[T], error) {
	if src == nil {
		return nil, errors.New("tidings: NewInformer: the source is nil: " +
			"make one with package source or implement source.Source")
	}
	if o.Name == "" {
		var none T
		o.Name = fmt.Sprintf("%T", none)
	}
	if err := o.Transport.Check("InformerOptions.Transport"); err != nil {
		return nil, informerError(o.Name, err)
	}
	everything, err := Selection{Slots: o.Slots}.check(source.ScopeUnknown, nil)
	if err != nil {
		return nil, informerError(o.Name, err)
	}
	c, err := newCollection(collectionOptions[T]{
		name: o.Name, selection: everything,
		resource:  source.Resource{Group: o.Resource.Group, Name: o.Resource.Resource},
		source:    func(string) source.Source[T] { return src },
		transform: o.Transform, sharer: sharerOf(src, o), indexes: o.Indexes,
		transport: o.Transport, logger: o.Logger,
	})
	if err != nil {
		return nil, informerError(o.Name, err)
	}
	return newInformer(c, func() { c.End(true) }), nil
}

// newInformer returns a handle, which calls release once to give it back.
func newInformer[T Object](c *collection[T], release func()) *Informer[T] {
	named := c.o.resource
	i := &Informer[T]{
		life: c.Life(), synced: c.Synced(), registrations: make(map[*Registration]struct{}),
		resource: schema.GroupResource{Group: named.Group, Resource: cmp.Or(named.Name, named.Kind)},
	}
	var released context.CancelCauseFunc
	i.releasing, released = context.WithCancelCause(context.Background())
	i.release = func() {
		released(ErrReleased)
		release()
	}
	i.collection.Store(c)
	return i
}

// held returns the collection, or an error if the handle was released.
func (i *Informer[T]) held() (*collection[T], error) {
	if c := i.collection.Load(); c != nil {
		return c, nil
	}
	return nil, informerError(i.Name(), ErrReleased)
}

// Name returns the name of the informer in errors, logs and health: its type and, in brackets, its
// selection with the namespaces that it has now.
func (i *Informer[T]) Name() string { return i.life.Name() }

// Run lists and watches until ctx ends. When it returns, every goroutine of the
// informer has ended, but for handlers that have not returned within ten seconds,
// which the error names. It returns ErrRanAlready, and changes nothing, when it
// was called before or when the informer belongs to a factory that was started. Shutdown
// of the factory, and the release of the last handle, end it too.
func (i *Informer[T]) Run(ctx context.Context) error {
	if ctx == nil {
		return informerError(i.Name(), errNilContext)
	}
	c, err := i.held()
	if err != nil {
		return err
	}
	if ctx, err = c.Claim(ctx); err != nil {
		return informerError(i.Name(), err)
	}
	return c.run(ctx)
}

// AddHandler calls h with an initial add for every cached object, and then with every change. It
// returns an error if the informer has stopped or is stopping, and for a nil HandlerFunc or a Funcs
// without a function.
func (i *Informer[T]) AddHandler(h Handler[T], o HandlerOptions) (*Registration, error) {
	if err := checkHandler(h); err != nil {
		return nil, informerError(i.Name(), err)
	}
	if err := o.check(); err != nil {
		return nil, informerError(i.Name(), err)
	}
	c, err := i.held()
	if err != nil {
		return nil, err
	}
	subscription, err := c.subscribe(h, o)
	if err != nil {
		return nil, err
	}
	registration := &Registration{subscription: subscription}
	registration.unlist = func() { i.unlist(registration) }
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.registrations == nil { // released meanwhile
		subscription.Remove()
		return nil, informerError(i.Name(), ErrReleased)
	}
	i.registrations[registration] = struct{}{}
	return registration, nil
}

func (i *Informer[T]) unlist(r *Registration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.registrations, r)
}

// Lister returns the reader of the cache. It may be asked before the informer
// runs, and yields nothing then. That of a released handle never yields anything.
func (i *Informer[T]) Lister() Lister[T] {
	if c := i.collection.Load(); c != nil {
		return Lister[T]{store: c.Store(), resource: i.resource}
	}
	empty, _ := store.New(store.Options[T]{}) // without indexes there is nothing to refuse
	return Lister[T]{store: empty, resource: i.resource}
}

// Synced is closed when the cache holds the first complete list. It stays closed when the
// informer stops.
func (i *Informer[T]) Synced() <-chan struct{} { return i.synced }

// HasSynced reports whether Synced is closed.
func (i *Informer[T]) HasSynced() bool {
	select {
	case <-i.synced:
		return true
	default:
		return false
	}
}

// Health describes the informer and its handlers. That of a released handle has the name and
// StateStopped alone.
func (i *Informer[T]) Health() Health {
	if c := i.collection.Load(); c != nil {
		return c.Health()
	}
	return Health{Name: i.Name(), Watch: health.Watch{State: StateStopped}}
}

// WaitForSync waits until the cache holds a complete list of every namespace, those
// included that were added meanwhile. Its error, a *NotSyncedError, has the state of the informer
// when the wait ended, and is ErrStopped for an informer that stops, even if it was synced before,
// ErrReleased for a handle that is released, and at once ErrNotStarted for an informer whose
// factory has not started it. One of NewInformer is waited for until it runs.
func (i *Informer[T]) WaitForSync(ctx context.Context) error {
	err := i.wait(ctx, func(ctx context.Context, c *collection[T]) error {
		return c.awaitSync(ctx, false)
	})
	if err != nil {
		return &NotSyncedError{Informers: []Health{i.Health()}, Cause: err}
	}
	return nil
}

// wait calls f with a context that also ends with the release of the handle.
func (i *Informer[T]) wait(
	ctx context.Context, f func(context.Context, *collection[T]) error,
) error {
	c := i.collection.Load()
	if c == nil {
		return ErrReleased
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(i.releasing, func() { cancel(ErrReleased) })()
	return f(ctx, c)
}

// WaitFor waits until the cache reflects at least the given resource version of
// this resource, which is how to read one's own writes: pass the version that the
// write returned. Events and bookmarks move it; that the object was deleted again
// makes no difference. With several namespaces, all have to reach it. A version that
// the selection hides from the watch, or that changed an object of another namespace or,
// where the server selects, of another slot, is reached with a later event or the
// server's next bookmark, which may take a minute, and never where the server sends none.
// Versions are compared as decimals of any length; any other text is an error. The other
// errors are those of WaitForSync.
func (i *Informer[T]) WaitFor(ctx context.Context, version string) error {
	if _, ok := delta.CompareDecimal(version, version); !ok {
		return informerError(i.Name(), fmt.Errorf("version %q cannot be waited for: "+
			"pass the resourceVersion of an object that was written", version))
	}
	err := i.wait(ctx, func(ctx context.Context, c *collection[T]) error {
		return c.await(ctx, func() (bool, error) { return c.Reflects(version), nil })
	})
	if err != nil {
		h := i.Health()
		return informerError(i.Name(), fmt.Errorf("waiting for version %s, is at %q and %s: %w",
			version, source.BoundText(h.Version), h.State, err))
	}
	return nil
}

// Release gives the handle back. Its handlers are removed, and its waits end; with the
// last handle of an informer, the watch ends. The memory is freed then, also while the
// handle and its registrations are held, but not while a Lister, a snapshot or a handler
// that has not returned is. It may be called more than once.
func (i *Informer[T]) Release() {
	i.collection.Store(nil)
	i.mu.Lock()
	registrations, release := i.registrations, i.release
	i.registrations, i.release = nil, nil
	i.mu.Unlock()
	for registration := range registrations {
		registration.subscription.Remove()
	}
	if release != nil {
		release()
	}
}

// AddNamespace adds a namespace to the informer, also while it runs. Handlers receive the
// objects there as adds without the initial mark, unless the informer is not synced yet.
// WaitForSync and WaitFor wait for the namespace; one that cannot be read does not delay
// the others and is named in Health. Adding a namespace that is there changes nothing.
//
// The informer is shared: all its handles see the change, and the factory gives another
// informer to callers that ask for the namespaces that it had. Name changes with the
// namespaces; the log lines of a list and watch keep the name that the informer had when that
// began. AddNamespace must not be called from a transform or the logger: a RemoveNamespace
// elsewhere may wait for their return.
//
// Errors: ErrAllNamespaces, ErrClusterScoped, ErrStopped, ErrReleased, and names that no
// namespace can have.
func (i *Informer[T]) AddNamespace(namespace string) error {
	return i.changeNamespaces(namespace, (*collection[T]).AddNamespace)
}

// RemoveNamespace removes a namespace from the informer, also while it runs. The watch of
// the namespace has ended when the call returns. Its objects are then deleted from the cache
// in one step, and handlers receive deletes with the mark Tombstone and the last known state.
// WaitForSync waits for that.
// Removing a namespace that is not there changes nothing.
//
// As with AddNamespace, all handles see the change, and it must not be called from a
// transform or the logger. The errors are those of AddNamespace and ErrLastNamespace.
func (i *Informer[T]) RemoveNamespace(namespace string) error {
	return i.changeNamespaces(namespace, (*collection[T]).RemoveNamespace)
}

func (i *Informer[T]) changeNamespaces(
	namespace string, change func(*collection[T], string) error,
) error {
	c, err := i.held()
	if err != nil {
		return err
	}
	if err = checkNamespaces([]string{namespace}); err == nil {
		err = change(c, namespace)
	}
	if err != nil {
		return informerError(i.Name(), err)
	}
	return nil
}

// Namespaces returns the namespaces of the informer, sorted; none means all, a type whose
// objects have no namespace, or a handle that was released.
func (i *Informer[T]) Namespaces() []string {
	if c := i.collection.Load(); c != nil {
		return c.Namespaces()
	}
	return nil
}
