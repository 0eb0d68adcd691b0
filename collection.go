package tidings

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/engine"
	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/fanout"
	"github.com/tidings-go/tidings/internal/engine/reflector"
	"github.com/tidings-go/tidings/internal/see/lograte"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// collection is shared by the handles of an informer. It is a collection of the engine with
// the additions of the native API.
type collection[T Object] struct {
	*engine.Collection[T]
	o            collectionOptions[T]
	declares     []string            // the fields of a view, nil for whole objects
	log          func() *slog.Logger // makes the logger late: its handler may call the factory
	handlersMade atomic.Int64
	indexLines   lograte.Limiter // limits the lines about index functions that failed
}

// collectionOptions configure a collection.
type collectionOptions[T Object] struct {
	form      form            // of a factory, as in shareKey
	name      string          // at first: namespaces change it
	resource  source.Resource // as far as it is known
	client    *source.Client  // the factory's; nil without one
	selection selection
	source    func(namespace string) source.Source[T]
	transform func(T) (T, error)
	sharer    *dedup.Sharer // of the results of transform, or of source; nil for none
	indexes   []*Index[T]
	transport Transport
	mutations *mutationDetector[T]
	logger    *slog.Logger
	stopGrace time.Duration
	owned     bool // a factory starts it
	// onSelection is called with a selection that has changed; nil is nothing.
	onSelection func(selection string)
}

func newCollection[T Object](o collectionOptions[T]) (*collection[T], error) {
	o.logger = cmp.Or(o.logger, slog.Default())
	logger, life := o.logger, new(*engine.Lifecycle) // and no option: handlers keep log in memory
	c := &collection[T]{
		o: o, declares: declaredBy[T](),
		log: func() *slog.Logger { return logger.With("informer", (*life).Name()) },
	}
	options := engine.Options[T]{
		Name: o.name, Declares: c.declares, Describe: describe[T],
		Indexes:    make(map[any]store.IndexFunc[T], len(o.indexes)),
		Namespaces: o.selection.namespaces, NamespacesByDefault: o.selection.byDefault,
		Scope: o.resource.Scope, Slots: o.selection.slots,
		Part: c.part, StopGrace: o.stopGrace, OnNamespaces: c.namespacesChanged,
		OnSynced: c.logSynced, OnIndexErrors: c.logIndexErrors,
		Share:    sharingBy[T](o.sharer),
		OnNotRun: func(err error) { c.log().Error("a reflector did not run", "error", err) },
	}
	for _, index := range o.indexes {
		if err := index.check(); err != nil {
			return nil, fmt.Errorf("InformerOptions.Indexes: %w", err)
		}
		options.Indexes[index] = index.function()
	}
	if o.sharer != nil {
		options.AfterDecoding = o.sharer.Stats
	}
	if o.mutations != nil {
		o.mutations.informer = func() string { return (*life).Name() } // handlers keep it in memory
		options.Observe = o.mutations.observe
		options.Background = []func(context.Context){o.mutations.run}
	}
	var err error
	if c.Collection, err = engine.New(options); err == nil {
		*life = c.Life()
	}
	return c, err
}

// declaredBy returns the fields of a type of views, nil for whole objects and metadata.
func declaredBy[T Object]() []string {
	t := reflect.TypeFor[T]()
	if t.Implements(reflect.TypeFor[runtime.Object]()) || source.CheckView(t, nil) != nil {
		return nil
	}
	return source.DeclaredFields(t)
}

func describe[T Object](obj T) (version, uid string) {
	return obj.GetResourceVersion(), string(obj.GetUID())
}

// part returns the source and the options of the reflector of a namespace.
func (c *collection[T]) part(
	_ context.Context, namespace string, scope source.Scope,
) engine.Part[T] {
	o := reflector.Options[T]{
		Accept: acceptor[T](c.o.selection, namespace, scope), Transform: c.o.transform,
		Transport: c.o.transport, Optional: c.o.selection.optional, Logger: c.o.logger,
	}
	if c.o.transform != nil {
		o.AfterTransform = checkIdentity[T]
		if slots := c.o.selection.slots; slots != nil && slots.Key() == ByUID {
			o.AfterTransform = keepUID[T]
		}
	}
	return engine.Part[T]{Source: c.o.source(namespace), Reflector: o}
}

func (c *collection[T]) namespacesChanged(namespaces []string) {
	now := c.o.selection
	now.namespaces = namespaces
	c.Rename(informerName(c.o.form, c.o.resource, now))
	if c.o.onSelection != nil {
		c.o.onSelection(now.String())
	}
}

func (c *collection[T]) logSynced() {
	snapshot := c.Store().Snapshot()
	c.log().Debug("synced", "objects", snapshot.Len(), "version", snapshot.Version())
}

func (c *collection[T]) logIndexErrors(failures []store.IndexError) {
	for _, err := range failures {
		if more, ok := c.indexLines.Allow(); ok {
			c.log().Warn("an index function failed; the object has no entry in that index",
				append([]any{"index", fmt.Sprint(err.Index), "key", source.BoundText(err.Key),
					"error", err.Err}, more...)...)
		}
	}
}

// run runs a claimed collection.
func (c *collection[T]) run(ctx context.Context) error {
	if c.o.mutations != nil {
		defer c.o.mutations.forget()
	}
	if err := c.Run(ctx); err != nil {
		return informerError(c.Name(), err)
	}
	return nil
}

// subscribe adds a handler. Its initial set is the cache.
func (c *collection[T]) subscribe(h Handler[T], o HandlerOptions) (engine.Subscription, error) {
	if err := c.Over(); err != nil {
		return nil, informerError(c.Name(), err)
	}
	if o.Name == "" {
		o.Name = fmt.Sprintf("handler-%d", c.handlersMade.Add(1))
	}
	deliver := func(n change.Change[T]) { h.Handle(eventOf(n)) }
	if c.o.mutations != nil {
		deliver = c.o.mutations.watchHandler(o.Name, deliver)
	}
	subscription, err := c.Subscribe(deliver, false, fanout.SubscriptionOptions{
		Name: o.Name, Policy: o.Policy, Limit: o.Limit,
		ResyncPeriod: o.Resync, ResyncOffset: spread(o.Resync),
		IsolatePanics: o.IsolatePanics, OnPanic: logPanic(c.log),
	})
	if err != nil {
		return nil, informerError(c.Name(), err)
	}
	return subscription, nil
}

// spread returns when the first resync of a handler is due: at random in the second half of
// its period, so that handlers which start together do not resync together.
func spread(period time.Duration) time.Duration {
	if period <= 1 {
		return period
	}
	return period/2 + rand.N(period/2)
}

// logPanic returns a function that logs a panic. It is no method of the collection: the
// registration of a handler would keep the collection in memory through it.
func logPanic(log func() *slog.Logger) func(fanout.Panic) {
	lines := new(lograte.Limiter)
	return func(p fanout.Panic) {
		if more, ok := lines.Allow(); ok {
			log().Error("a handler panicked", append([]any{"handler", p.Handler,
				"key", source.BoundText(p.Key), "panic", fmt.Sprint(p.Value),
				"stack", string(p.Stack)}, more...)...)
		}
	}
}

// addIndex adds an index that may be there already.
func (c *collection[T]) addIndex(id any, f store.IndexFunc[T]) error {
	err := c.AddIndex(id, f)
	if err != nil && !errors.Is(err, store.ErrIndexExists) {
		return informerError(c.Name(), err)
	}
	return nil
}

// sharerOf returns the sharer for an informer without a factory, or nil for none. A source that
// has the method DecodingStats shares as it decodes: then only the results of a transform are
// left.
func sharerOf[T Object](src source.Source[T], o InformerOptions[T]) *dedup.Sharer {
	_, shares := src.(interface{ DecodingStats() source.DecodingStats })
	secrets := dedup.IsSecret(o.Resource.Group, o.Resource.Resource, "")
	if o.Transport.Sharing == ShareNothing || secrets || shares && o.Transform == nil {
		return nil
	}
	table := o.Transport.Table
	table = cmp.Or(table, new(source.Table))
	return dedup.NewSharer(table, dedup.SharerOptions{
		Sharing: o.Transport.Sharing, NoSecrets: o.Resource.Resource != "",
	})
}

// sharingBy returns a function for engine.Options.Share, or nil.
func sharingBy[T Object](sharer *dedup.Sharer) func() func(T) T {
	if sharer == nil {
		return nil
	}
	return func() func(T) T {
		return func(obj T) T { return sharer.Share(obj).(T) }
	}
}
