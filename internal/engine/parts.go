package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/reflector"
	"github.com/tidings-go/tidings/source"
)

// parts are the namespaces of a collection, or the one part for everything.
type parts[T any] struct {
	// changeMu is held while namespaces or the scope of the type change, which may wait for
	// a reflector. It comes before every other lock of the collection.
	changeMu Lock
	setAside []string // the default namespaces, while the type has none; guarded by changeMu

	mu          sync.Mutex      // guards the rest
	list        []*part[T]      // by namespace; not written once it stands here
	running     context.Context // that of Run; nil before
	ending      bool            // no part is started any more, nor the resync timer
	resyncs     bool            // the resync timer is needed
	resyncTimer bool            // the resync timer was started
	removed     removed
	group       sync.WaitGroup // goroutines that Run waits for; Go is called under mu
}

// removed keeps the counters of removed parts, so that no counter of the collection goes
// back.
type removed struct {
	health.Watch
	decoding source.DecodingStats
}

// part has a reflector of its own.
type part[T any] struct {
	namespace string // "" for everything
	prefix    string // of its keys, and its partition in the queue
	created   time.Time
	running   atomic.Pointer[runningPart[T]] // nil before it runs
	ctx       context.Context                // of its reflector; nil before it runs
	stop      context.CancelFunc             // ends ctx; nil before it runs
	ended     chan struct{}                  // closed when the reflector has returned
}

// runningPart is replaced when a reflector takes the place of one that panicked.
type runningPart[T any] struct {
	reflector *reflector.Reflector[T]
	decoding  decodingSource // nil if the source does not say
	received  countingSource // nil if the source does not say
	of        resourceSource // nil if the source does not say
}

// resourceSource is a source that knows which resource it reads at present.
type resourceSource interface {
	Resource() source.Resource
}

// decodingSource is a source that counts the objects that it has decoded.
type decodingSource interface {
	DecodingStats() source.DecodingStats
}

// countingSource is a source that counts the bytes that it receives.
type countingSource interface {
	BytesReceived() uint64
}

func newPart[T any](namespace string) *part[T] {
	return &part[T]{
		namespace: namespace, prefix: Prefix(namespace), created: time.Now(), ended: make(chan struct{}),
	}
}

// newParts returns the parts of namespaces, or the one for everything if there are none, and their
// prefixes.
func newParts[T any](namespaces []string) (list []*part[T], prefixes []string) {
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		p := newPart[T](namespace)
		list, prefixes = append(list, p), append(prefixes, p.prefix)
	}
	return list, prefixes
}

// Prefix returns the prefix of the keys of a namespace, "" being all.
func Prefix(namespace string) string {
	if namespace == "" {
		return ""
	}
	return namespace + "/"
}

func (p *part[T]) health() health.Watch {
	if running := p.running.Load(); running != nil {
		h := running.reflector.Health()
		if running.received != nil {
			h.Bytes = running.received.BytesReceived()
		}
		return h
	}
	return health.Watch{State: health.StatePending, Since: p.created}
}

func (p *part[T]) decoded() source.DecodingStats {
	if running := p.running.Load(); running != nil && running.decoding != nil {
		return running.decoding.DecodingStats()
	}
	return source.DecodingStats{}
}

// SuspectWatch has the part that holds a key begin its watch anew, as Reflector.SuspectWatch says.
func (c *Collection[T]) SuspectWatch(key, version, uid string) {
	for _, p := range c.parts.present() {
		if running := p.running.Load(); running != nil && strings.HasPrefix(key, p.prefix) {
			running.reflector.SuspectWatch(key, version, uid)
		}
	}
}

// CatchUp has the part that holds a key list up to a version, as Reflector.CatchUp says.
func (c *Collection[T]) CatchUp(key, version string) {
	for _, p := range c.parts.present() {
		if running := p.running.Load(); running != nil && strings.HasPrefix(key, p.prefix) {
			running.reflector.CatchUp(version)
		}
	}
}

// WatchOf describes the list and watch that brings the objects of a namespace. It is zero if none
// does.
func (c *Collection[T]) WatchOf(namespace string) (w health.Watch) {
	for _, p := range c.parts.present() {
		if p.namespace == namespace || p.namespace == "" {
			return p.health()
		}
	}
	return w
}

// present returns the parts in the order of their namespaces.
func (p *parts[T]) present() []*part[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list
}

// ReadVersion returns the version up to which the first part has read everything. The cache
// may be behind it.
func (c *Collection[T]) ReadVersion() string { return c.parts.present()[0].health().Version }

// Resource returns the resource as the source of the first part knows it; ok is false if that
// does not run, or does not say.
func (c *Collection[T]) Resource() (r source.Resource, ok bool) {
	running := c.parts.present()[0].running.Load()
	if running == nil || running.of == nil {
		return r, false
	}
	return running.of.Resource(), true
}

// end waits for the reflectors, the resync timer and Options.Background.
func (p *parts[T]) end() {
	p.mu.Lock()
	p.ending = true
	p.mu.Unlock()
	p.group.Wait()
}

func (c *Collection[T]) startParts(ctx context.Context) {
	p := &c.parts
	if c.o.Resync.Period != nil {
		c.resyncPeriod = c.o.Resync.Period()
	}
	if c.o.Share != nil {
		c.late.share = c.o.Share()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = ctx
	p.resyncs = p.resyncs || c.resyncPeriod > 0
	for _, part := range p.list {
		c.startPartLocked(part)
	}
	c.startResyncTimerLocked()
	if c.late.share != nil {
		c.start(ctx, "sharing", c.shareLate)
	}
	for _, f := range c.o.Background {
		c.start(ctx, "background", f)
	}
}

// start starts a goroutine that Run waits for. Code of the user may run in it: if that calls
// runtime.Goexit, the collection ends in order. The caller holds parts.mu, or is such a goroutine.
func (c *Collection[T]) start(ctx context.Context, does string, f func(context.Context)) {
	c.parts.group.Go(func() {
		c.label(ctx, does)
		returned := false
		defer func() {
			if !returned { // a panic ends the process
				c.endByGoexit()
			}
		}()
		f(ctx)
		returned = true
	})
}

// startPartLocked runs the reflector of a part until Run ends or the part is removed.
func (c *Collection[T]) startPartLocked(p *part[T]) {
	ctx, stop := context.WithCancel(c.parts.running)
	p.ctx, p.stop = ctx, stop
	c.start(ctx, "reflector", func(ctx context.Context) {
		defer close(p.ended)
		defer stop()
		c.o.Supervise(ctx, func(ctx context.Context) {
			renewed, end := c.renew(ctx, p)
			defer end()
			if err := renewed.Run(ctx); err != nil {
				c.o.OnNotRun(err)
			}
		})
	})
}

// label sets the labels of the goroutine in profiles.
func (c *Collection[T]) label(ctx context.Context, does string) {
	labels := pprof.Labels("informer", c.Name(), "does", does)
	pprof.SetGoroutineLabels(pprof.WithLabels(ctx, labels))
}

// renew makes a new reflector for a part. end is called when it has run.
func (c *Collection[T]) renew(
	ctx context.Context, p *part[T],
) (made *reflector.Reflector[T], end func()) {
	from := c.o.Part(ctx, p.namespace, c.scopeOf(p.namespace))
	o := from.Reflector
	o.Name, o.Partition, o.Known, o.Compare = c.Name(), p.prefix, c.cached, c.o.Compare
	o.Newest = func() (key, version, uid string) { return c.newest(p.prefix) }
	o.OnChange, o.Share, o.Slots = c.progress.wake, c.late.share, c.o.Slots
	o.Transform = c.oneByOne(ctx, o.Transform)
	o.Beside, o.Resumes = c.followsScope(from.Source), p.running.Load() != nil && c.progress.listed(p.prefix)
	o.Go = func(f func()) { c.start(ctx, "slots", func(context.Context) { f() }) }
	src, end := c.record(p, from.Source, &o)
	running := &runningPart[T]{reflector: reflector.New(c.followsScope(src), c.queue, o)}
	running.decoding, _ = from.Source.(decodingSource)
	running.received, _ = from.Source.(countingSource)
	running.of, _ = from.Source.(resourceSource)
	p.running.Store(running)
	return running.reflector, end
}

// oneByOne returns a transform that is called for one object of the collection at a time: namespaces
// and slots that come have goroutines of their own.
func (c *Collection[T]) oneByOne(ctx context.Context, transform func(T) (T, error)) func(T) (T, error) {
	if transform == nil {
		return nil
	}
	return func(obj T) (T, error) {
		select {
		case c.transformMu <- struct{}{}:
		case <-ctx.Done(): // the one that runs may wait for the end of this part
			return obj, context.Cause(ctx)
		}
		defer c.transformMu.Unlock()
		c.transformed.Add(1)
		defer c.transformed.Add(1)
		return transform(obj)
	}
}

// cached returns the object of a key as changes are compared with it.
func (c *Collection[T]) cached(key string) (obj T, version, uid string, ok bool) {
	if obj, ok = c.o.Known(c.store.Snapshot()).Get(key); ok && !c.o.Untrusted() {
		version, uid = c.o.Describe(obj)
	}
	return obj, version, uid, ok
}

// newest returns the object of a partition that has changed last, "" for none. It goes through all of them.
func (c *Collection[T]) newest(partition string) (key, version, uid string) {
	if c.o.Untrusted() {
		return "", "", ""
	}
	for k, obj := range c.o.Known(c.store.Snapshot()).Prefix(partition) {
		v, u := c.o.Describe(obj)
		order, ok := c.o.Compare(v, version)
		if version == "" || ok && order > 0 {
			key, version, uid = k, v, u
		}
	}
	return strings.Clone(key), version, uid
}

// Namespaces returns those of the collection; none means all.
func (c *Collection[T]) Namespaces() []string { return namespacesOf(c.parts.present()) }

func namespacesOf[T any](parts []*part[T]) []string {
	var names []string
	for _, p := range parts {
		if p.namespace != "" {
			names = append(names, p.namespace)
		}
	}
	return names
}

// AddNamespace adds a namespace; one that is there changes nothing. Errors:
// ErrAllNamespaces, ErrClusterScoped, ErrStopped, ErrReleased.
func (c *Collection[T]) AddNamespace(namespace string) error {
	c.parts.changeMu.Lock()
	defer c.parts.changeMu.Unlock()
	present := c.parts.present()
	at, found, err := c.find(present, namespace)
	if err != nil || found {
		return err
	}
	p := newPart[T](namespace)
	c.applyMu.Lock()
	defer c.applyMu.Unlock()
	c.parts.mu.Lock()
	defer c.parts.mu.Unlock()
	if err := c.Over(); err != nil {
		return err
	}
	if err := c.queue.AddPartition(p.prefix); err != nil {
		return ofQueue(err)
	}
	c.progress.add(p.prefix)
	c.parts.list = slices.Insert(slices.Clone(present), at, p)
	if c.parts.running != nil {
		c.startPartLocked(p)
	}
	c.namespacesChangedLocked()
	return nil
}

// RemoveNamespace removes a namespace; one that is not there changes nothing. The collection is in sync
// again when its objects have left the cache. The reflector
// has ended before its partition is removed from the queue, so that the partition of a
// namespace that is added at once is another one. Errors: those of AddNamespace, and
// ErrLastNamespace.
func (c *Collection[T]) RemoveNamespace(namespace string) error {
	c.parts.changeMu.Lock()
	defer c.parts.changeMu.Unlock()
	present := c.parts.present()
	at, found, err := c.find(present, namespace)
	if err != nil || !found {
		return err
	}
	if len(present) == 1 {
		return fmt.Errorf("namespace %q: %w", namespace, ErrLastNamespace)
	}
	if err := c.dropPart(present, at); err != nil {
		return err
	}
	c.endPart(present[at])
	c.applyMu.Lock()
	c.progress.leave(present[at].prefix)
	c.applyMu.Unlock()
	return ofQueue(c.queue.RemovePartition(present[at].prefix))
}

func (c *Collection[T]) dropPart(present []*part[T], at int) error {
	c.parts.mu.Lock()
	defer c.parts.mu.Unlock()
	if err := c.Over(); err != nil {
		return err
	}
	c.parts.list = slices.Delete(slices.Clone(present), at, at+1)
	c.namespacesChangedLocked()
	return nil
}

// endPart stops a part that the collection no longer has, and keeps its counters.
func (c *Collection[T]) endPart(p *part[T]) {
	if p.stop != nil {
		p.stop()
		<-p.ended
	}
	last, decoded := p.health(), p.decoded()
	c.parts.mu.Lock()
	defer c.parts.mu.Unlock()
	c.parts.removed.AddCounters(last)
	c.parts.removed.decoding.Add(decoded)
}

// ofQueue translates the errors of a queue that Run has closed.
func ofQueue(err error) error {
	if errors.Is(err, delta.ErrClosed) {
		return ErrStopped
	}
	return err
}

// find looks for a namespace in a collection whose namespaces can be changed.
func (c *Collection[T]) find(present []*part[T], namespace string) (at int, found bool, err error) {
	switch {
	case c.scopeOf(present[0].namespace) == source.ScopeCluster:
		return 0, false, fmt.Errorf("namespace %q: %w", namespace, ErrClusterScoped)
	case len(c.o.Namespaces) == 0:
		return 0, false, fmt.Errorf("namespace %q: %w", namespace, ErrAllNamespaces)
	}
	at, found = slices.BinarySearchFunc(present, namespace, func(p *part[T], namespace string) int {
		return strings.Compare(p.namespace, namespace)
	})
	return at, found, nil
}

func (c *Collection[T]) namespacesChangedLocked() {
	if c.o.OnNamespaces != nil {
		c.o.OnNamespaces(namespacesOf(c.parts.list))
	}
}
