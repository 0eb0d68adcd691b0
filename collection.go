package tidings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/dedup"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/engine"
	"github.com/tidings-go/tidings/internal/fanout"
	"github.com/tidings-go/tidings/internal/reflector"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// collection is one watched, cached and fanned-out collection: what the handles of
// an informer share.
//
// Its goroutines belong to run, which waits for all of them: a reflector per
// namespace, which also ends when the namespace is removed, the clock of the resyncs from
// the first handler on that asks for them, and the mutation detector where it is on. The
// goroutine that called run is the processor, which applies what the queue brings. The
// handlers' goroutines belong to the log, which run closes last.
type collection[T Object] struct {
	name      string
	resource  schema.GroupResource
	selection selection           // as it was asked for; the parts have the present namespaces
	log       func() *slog.Logger // made when it is needed: its handler is the user's, and may ask the factory
	stopGrace time.Duration

	scope   source.Scope
	newPart func(namespace string) *part[T]

	store     *store.Store[T]
	queue     *delta.Queue[T]
	fan       *fanout.Log[T]
	mutations *mutationDetector[T]

	life  *life
	owned bool // by a factory, which starts it

	// changing is a lock: it holds a value while namespaces or the scope of the type
	// change, which may wait for a reflector. It is a channel for bubbles of testing/synctest, which do
	// not see that a mutex is waited for. It comes before every other lock.
	changing chan struct{}
	setAside []string // the default namespaces, while the type has none; guarded by changing

	partsMu     sync.Mutex             // guards the rest of this group
	parts       []*part[T]             // by namespace; not written once it stands here
	running     context.Context        // that of run; nil before
	ending      bool                   // no part is started any more, nor the clock
	resyncs     bool                   // a handler has asked for resyncs
	clock       bool                   // the clock of the resyncs has been started
	gone        counters               // of parts that were removed
	onSelection func(selection string) // told of a change; it may take the factory's lock
	sources     sync.WaitGroup         // of what run has started; Go under partsMu

	// writing is a lock, and a channel for the reason that changing is one: index functions
	// run under it. It is held while a batch is applied and published, and while a handler
	// joins: that makes the snapshot a handler starts from the same state as the
	// end of the log. It comes before every lock but changing.
	writing      chan struct{}
	handlersMade int // guarded by writing

	synced    chan struct{} // closed when the first complete list is applied
	stopped   atomic.Bool
	progress  progress
	sharer    *dedup.Sharer // of what the transform, or the source, returns; nil for none
	indexErrs indexErrors
}

// collectionOptions is what a collection is made of.
type collectionOptions[T Object] struct {
	name      string
	resource  schema.GroupResource
	selection selection
	scope     source.Scope
	source    func(namespace string) source.Source[T]
	transform func(T) (T, error)
	sharer    *dedup.Sharer // of what transform, or source, returns; nil for none
	indexes   map[any]store.IndexFunc[T]
	reflector reflector.Options[T]
	mutations *mutationDetector[T]
	logger    *slog.Logger
	stopGrace time.Duration
	owned     bool // by a factory, which starts it
	// onSelection is told of a selection that has changed, or nil.
	onSelection func(selection string)
}

// decodes is a source that says what it has decoded.
type decodes interface {
	DecodingStats() source.DecodingStats
}

const defaultStopGrace = 10 * time.Second

func newCollection[T Object](o collectionOptions[T]) (*collection[T], error) {
	if o.logger == nil {
		o.logger = slog.New(slog.DiscardHandler)
	}
	if o.stopGrace == 0 {
		o.stopGrace = defaultStopGrace
	}
	base, name := o.logger, o.name
	c := &collection[T]{
		name: o.name, resource: o.resource, selection: o.selection,
		log: func() *slog.Logger { return base.With("informer", name) }, stopGrace: o.stopGrace,
		scope: o.scope, sharer: o.sharer, mutations: o.mutations, onSelection: o.onSelection,
		synced: make(chan struct{}), changing: make(chan struct{}, 1), writing: make(chan struct{}, 1),
		life: newLife(o.name), owned: o.owned,
	}
	namespaces := o.selection.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	c.newPart = func(namespace string) *part[T] {
		ro := o.reflector
		ro.Name = o.name
		ro.Scope = scopeOf(namespace)
		ro.Accept = acceptor[T](o.selection, namespace, c.scopeFor(namespace))
		ro.Transform, ro.AfterTransform = o.transform, afterTransform[T](o.transform != nil, o.sharer)
		ro.Optional = ro.Optional || o.selection.optional
		ro.Known, ro.Compare = c.known, delta.CompareDecimal
		ro.Logger = o.logger
		ro.OnChange = c.progress.wake
		from := o.source(namespace)
		p := &part[T]{namespace: namespace, scope: ro.Scope, reflector: reflector.New(c.scoped(from), c.queue, ro)}
		if counts, ok := from.(decodes); ok {
			p.decoding = counts
		}
		return p
	}
	var scopes []string
	for _, namespace := range namespaces {
		scopes = append(scopes, scopeOf(namespace))
		c.progress.add(scopeOf(namespace))
	}
	var err error
	if c.store, err = store.New(store.Options[T]{Indexes: o.indexes, OnIndexError: c.indexErrs.add}); err != nil {
		return nil, err
	}
	c.queue, err = delta.New(delta.Options[T]{
		Known:      func() delta.Known[T] { return c.store.Snapshot() },
		Describe:   describe[T],
		Compare:    delta.CompareDecimal,
		Partitions: scopes,
	})
	if err != nil {
		return nil, err
	}
	c.fan = fanout.New(fanout.Options[T]{UID: func(obj T) string { return string(obj.GetUID()) }, Paused: true})
	for _, namespace := range namespaces {
		c.parts = append(c.parts, c.newPart(namespace))
	}
	return c, nil
}

func describe[T Object](obj T) (version, uid string) {
	return obj.GetResourceVersion(), string(obj.GetUID())
}

func (c *collection[T]) known(key string) (obj T, version, uid string, ok bool) {
	if obj, ok = c.store.Get(key); ok {
		version, uid = describe(obj)
	}
	return obj, version, uid, ok
}

// lifetime returns the life of the collection.
func (c *collection[T]) lifetime() *life { return c.life }

// claim takes the one right to run the collection, until the context that it returns
// ends.
func (c *collection[T]) claim(ctx context.Context) (context.Context, error) {
	return c.life.claim(ctx)
}

// end ends the run, and closes a collection that does not run. It does not wait. released
// says that no handle is left.
func (c *collection[T]) end(released bool) {
	if c.life.end(released) {
		c.queue.Close()
		c.life.finish(c.stopHandlers(), stuckIn(c.fan))
	}
	c.progress.wake()
}

// run lists and watches until ctx ends, which claim has returned. The order of the
// stop is the contract's P9: the sources, then the processor, then the handlers.
func (c *collection[T]) run(ctx context.Context) (err error) {
	defer func() { c.life.finish(err, stuckIn(c.fan)) }()
	if c.mutations != nil {
		defer c.mutations.forget()
	}
	c.fan.Start()
	c.partsMu.Lock()
	c.running = ctx
	for _, p := range c.parts {
		c.startPartLocked(ctx, p)
	}
	c.startClockLocked()
	if c.mutations != nil {
		c.sources.Go(func() { c.mutations.run(ctx) })
	}
	c.partsMu.Unlock()
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		c.progress.wake()
		c.partsMu.Lock()
		c.ending = true
		c.partsMu.Unlock()
		c.sources.Wait()
		c.queue.Close()
	})
	c.process(ctx)
	<-ended
	return c.stopHandlers()
}

// process applies what the queue brings until it is closed.
func (c *collection[T]) process(ctx context.Context) {
	for {
		err := c.fan.AwaitRoom(ctx)
		if err == nil {
			err = c.queue.Pop(ctx, c.apply)
		}
		if err != nil {
			return
		}
	}
}

// stopHandlers drops what is pending and waits for the calls that are running.
func (c *collection[T]) stopHandlers() error {
	c.writing <- struct{}{}
	c.stopped.Store(true)
	c.fan.Close()
	<-c.writing
	c.progress.wake()
	ctx, cancel := context.WithTimeout(context.Background(), c.stopGrace)
	defer cancel()
	if err := c.fan.Wait(ctx); err != nil {
		return informerError(c.name, fmt.Errorf("%w within %v of the stop: %w", ErrHandlersStuck, c.stopGrace, err))
	}
	return nil
}

// stuckIn returns what reports whether a handler of a closed log has not returned.
func stuckIn[T any](fan *fanout.Log[T]) func() bool {
	return func() bool { return len(fan.Subscriptions()) > 0 }
}

// apply puts a batch into the cache and tells the handlers. The logger is called last,
// without a lock: it may use the informer.
func (c *collection[T]) apply(batch delta.Batch[T]) {
	c.write(batch)
	c.logIndexErrors()
	if batch.Synced {
		c.log().Debug("synced", "objects", c.store.Len(), "version", c.store.Snapshot().Version())
	}
}

// write is apply without the logger.
func (c *collection[T]) write(batch delta.Batch[T]) {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	scopes, version := c.progress.after(batch.Removed, batch.Replaced, batch.Marks)
	c.store.Update(func(b *store.Batch[T]) {
		for i := range batch.Changes {
			d := &batch.Changes[i]
			if d.Type == change.Deleted {
				b.Delete(d.Key)
			} else {
				b.Set(d.Key, d.New)
			}
		}
		b.SetVersion(version)
	})
	c.progress.reached(scopes)
	if c.mutations != nil {
		c.mutations.observe(batch.Changes)
	}
	if len(batch.Changes) > 0 {
		c.fan.Publish(batch.Changes, c.store.Len())
	}
	if batch.Synced {
		c.fan.MarkSynced()
		close(c.synced)
	}
	for _, token := range batch.Resync {
		if subscription, ok := token.(*fanout.Subscription[T]); ok {
			c.fan.Replay(subscription, c.store.Snapshot().Cursor().Next)
		}
	}
	c.progress.wake()
}

// subscribe adds a handler, whose initial set is the cache as it is.
func (c *collection[T]) subscribe(h Handler[T], o HandlerOptions) (*fanout.Subscription[T], error) {
	c.writing <- struct{}{}
	defer func() { <-c.writing }()
	if err := c.life.over(); err != nil {
		return nil, informerError(c.name, err)
	}
	name := o.Name
	if c.handlersMade++; name == "" {
		name = fmt.Sprintf("handler-%d", c.handlersMade)
	}
	deliver := func(n change.Change[T]) { h.Handle(eventOf(n)) }
	if c.mutations != nil {
		deliver = c.mutations.watchHandler(name, deliver)
	}
	subscription, err := c.fan.Subscribe(deliver, c.store.Snapshot().Cursor().Next, fanout.SubscriptionOptions{
		Name: name, Policy: o.Policy, Limit: o.Limit,
		ResyncPeriod: o.Resync, ResyncOffset: spread(o.Resync),
		IsolatePanics: o.IsolatePanics, OnPanic: logPanic(c.log),
	})
	if errors.Is(err, fanout.ErrClosed) {
		return nil, informerError(c.name, ErrStopped)
	}
	if err != nil {
		return nil, informerError(c.name, err)
	}
	if o.Resync > 0 {
		c.needClock()
	}
	return subscription, nil
}

// logPanic returns what logs a panic. It is no method of the collection, which the
// registration of a handler would hold through it.
func logPanic(log func() *slog.Logger) func(fanout.Panic) {
	return func(p fanout.Panic) {
		log().Error("a handler panicked", "handler", p.Handler, "key", source.BoundText(p.Key), "panic", fmt.Sprint(p.Value), "stack", string(p.Stack))
	}
}

// logIndexErrors logs the failures of index functions that were not logged yet.
func (c *collection[T]) logIndexErrors() {
	for _, err := range c.indexErrs.take() {
		c.log().Warn("an index function failed; the object has no entry in that index", "index", err.Index, "key", source.BoundText(err.Key), "error", err.Err)
	}
}

func (c *collection[T]) hasSynced() bool {
	select {
	case <-c.synced:
		return true
	default:
		return false
	}
}

// health describes the collection.
func (c *collection[T]) health() Health {
	h := Health{
		Name: c.name, Synced: c.hasSynced(), Objects: c.store.Len(), Version: c.store.Snapshot().Version(),
		Queued: c.queue.Len(), Stale: c.queue.Stale(), Handlers: c.handlerHealth(),
	}
	h.IndexErrors, h.LastIndexError = c.indexErrs.get()
	c.partsMu.Lock()
	parts, gone := c.parts, c.gone
	c.partsMu.Unlock()
	for _, p := range parts {
		part := p.reflector.Health()
		h.Watch.Add(part)
		h.Decoding.Add(p.decoded())
		if len(parts) > 1 {
			if h.Namespaces == nil {
				h.Namespaces = make(map[string]health.Watch)
			}
			h.Namespaces[p.namespace] = part
		}
	}
	h.AddCounters(gone.Watch)
	h.Decoding.Add(gone.decoding)
	if c.sharer != nil {
		h.Decoding.After.Add(c.sharer.Stats())
	}
	if c.stopped.Load() {
		h.State = Stopped
	}
	return h
}

// handlerHealth describes every handler that is not done.
func (c *collection[T]) handlerHealth() []HandlerHealth {
	subscriptions := c.fan.Subscriptions()
	handlers := make([]HandlerHealth, len(subscriptions))
	for i, s := range subscriptions {
		handlers[i] = engine.HandlerHealth(s)
	}
	return handlers
}
