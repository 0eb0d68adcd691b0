package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/reflector"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// parts are the namespaces of a collection, or the one part for everything.
type parts[T any] struct {
	*shared[T]
	late     *lateSharing[T]
	recorder recorder[T]

	// changeMu is held while namespaces or the scope of the type change, which may wait for a
	// reflector. It comes before every other lock of the collection.
	changeMu Lock
	setAside []string // the default namespaces, while the type has none; guarded by changeMu

	transformMu Lock          // held while the transform runs; no other lock is taken under it
	transformed atomic.Uint64 // odd while the transform runs

	mu      sync.Mutex // guards the rest
	list    []*part[T] // by namespace; not written once it stands here
	begun   bool       // Run has started the parts
	removed removed
}

// removed keeps the counters of removed parts, so that no counter of the collection goes back.
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
	source    source.Source[T] // asked for what it knows, by methods that it may have
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
		if counting, ok := running.source.(interface{ BytesReceived() uint64 }); ok {
			h.Bytes = counting.BytesReceived()
		}
		return h
	}
	return health.Watch{State: health.StatePending, Since: p.created}
}

func (p *part[T]) decoded() source.DecodingStats {
	if running := p.running.Load(); running != nil {
		if counting, ok := running.source.(interface{ DecodingStats() source.DecodingStats }); ok {
			return counting.DecodingStats()
		}
	}
	return source.DecodingStats{}
}

// SuspectWatch is Reflector.SuspectWatch of the part that holds a key.
func (p *parts[T]) SuspectWatch(key, version, uid string) {
	if r := p.reflectorOf(key); r != nil {
		r.SuspectWatch(key, version, uid)
	}
}

// CatchUp is Reflector.CatchUp of the part that holds a key.
func (p *parts[T]) CatchUp(key, version string) {
	if r := p.reflectorOf(key); r != nil {
		r.CatchUp(version)
	}
}

// reflectorOf returns the reflector of the part that holds a key; nil if none runs.
func (p *parts[T]) reflectorOf(key string) *reflector.Reflector[T] {
	for _, one := range p.present() {
		if running := one.running.Load(); running != nil && strings.HasPrefix(key, one.prefix) {
			return running.reflector
		}
	}
	return nil
}

// WatchOf describes the list and watch that brings the objects of a namespace. It is zero if none
// does.
func (p *parts[T]) WatchOf(namespace string) (w health.Watch) {
	for _, one := range p.present() {
		if one.namespace == namespace || one.namespace == "" {
			return one.health()
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

// ReadVersion returns the version up to which the first part has read everything. The cache may be
// behind it.
func (p *parts[T]) ReadVersion() string { return p.present()[0].health().Version }

// Resource returns the resource as the source of the first part knows it; ok is false if that does
// not run, or does not say.
func (p *parts[T]) Resource() (r source.Resource, ok bool) {
	if running := p.present()[0].running.Load(); running != nil {
		if named, ok := running.source.(interface{ Resource() source.Resource }); ok {
			return named.Resource(), true
		}
	}
	return r, false
}

// InState reports whether the list and watch of a namespace is in one of some states.
func (p *parts[T]) InState(match func(health.State) bool) bool {
	return slices.ContainsFunc(p.present(), func(one *part[T]) bool {
		return match(one.health().State)
	})
}

// begin starts the parts.
func (p *parts[T]) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = true
	for _, one := range p.list {
		p.startLocked(one)
	}
}

// startLocked runs the reflector of a part until Run ends or the part is removed.
func (p *parts[T]) startLocked(one *part[T]) {
	ctx, stop := context.WithCancel(p.goroutines.context())
	one.ctx, one.stop = ctx, stop
	started := p.goroutines.start("reflector", func(context.Context) {
		defer close(one.ended)
		defer stop()
		p.o.Supervise(ctx, func(ctx context.Context) {
			renewed, end := p.renew(ctx, one)
			defer end()
			if err := renewed.Run(ctx); err != nil {
				p.o.OnNotRun(err)
			}
		})
	})
	if !started {
		close(one.ended)
	}
}

// renew makes a new reflector for a part. end is called when it has run.
func (p *parts[T]) renew(
	ctx context.Context, one *part[T],
) (made *reflector.Reflector[T], end func()) {
	from := p.o.Part(ctx, one.namespace, p.scopeOf(one.namespace))
	o := from.Reflector
	o.Name, o.Partition, o.Known, o.Compare = p.Name(), one.prefix, p.cached, p.o.Compare
	o.Newest = func(holds func(key, uid string) bool) (key, version, uid string) {
		return p.newest(one.prefix, holds)
	}
	o.OnChange, o.Share, o.Slots = p.progress.wake, p.late.share, p.o.Slots
	o.Transform = p.oneByOne(ctx, o.Transform)
	o.Beside = p.followsScope(from.Source)
	o.Resumes = one.running.Load() != nil && p.progress.listed(one.prefix)
	o.Go = func(f func()) {
		p.goroutines.startAnother(ctx, "slots", func(context.Context) { f() })
	}
	src, end := p.recorder.record(one, from.Source, &o)
	made = reflector.New(p.followsScope(src), p.queue, o)
	one.running.Store(&runningPart[T]{made, from.Source})
	return made, end
}

// oneByOne returns a transform that is called for one object of the collection at a time:
// namespaces and slots that come have goroutines of their own.
func (p *parts[T]) oneByOne(ctx context.Context, transform func(T) (T, error)) func(T) (T, error) {
	if transform == nil {
		return nil
	}
	return func(obj T) (T, error) {
		select {
		case p.transformMu <- struct{}{}:
		case <-ctx.Done(): // the one that runs may wait for the end of this part
			return obj, context.Cause(ctx)
		}
		defer p.transformMu.Unlock()
		p.transformed.Add(1)
		defer p.transformed.Add(1)
		return transform(obj)
	}
}

// cached returns the object of a key as changes are compared with it.
func (p *parts[T]) cached(key string) (obj T, version, uid string, ok bool) {
	if obj, ok = p.o.Known(p.store.Snapshot()).Get(key); ok && !p.o.Untrusted() {
		version, uid = p.o.Describe(obj)
	}
	return obj, version, uid, ok
}

// newest returns the object of a partition that has changed last, of those that holds accepts, or ""
// for none. While changes wait in the queue, the cache may have objects that were deleted since.
func (p *parts[T]) newest(
	partition string, holds func(key, uid string) bool,
) (key, version, uid string) {
	if p.queue.Len() > 0 || p.o.Untrusted() {
		return "", "", ""
	}
	for k, obj := range p.o.Known(p.store.Snapshot()).Prefix(partition) {
		v, u := p.o.Describe(obj)
		order, ok := p.o.Compare(v, version)
		if (version == "" || ok && order > 0) && holds(k, u) {
			key, version, uid = k, v, u
		}
	}
	return strings.Clone(key), version, uid
}

// merged is a token of the queue. It is closed when everything before it is applied.
type merged chan struct{}

// Merge returns when the objects of slots that have come into Options.Slots are cached: each part
// that was listed lists the slots that it lacks. The first list of a part has them in any case, and
// a collection that stops meanwhile needs none. A Holding calls it.
func (p *parts[T]) Merge(ctx context.Context, slots slot.Set) error {
	running, list := p.goroutines.context(), p.present()
	if running == nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(running, func() { cancel(ErrStopped) })()
	results := make(chan error, len(list))
	for _, one := range list {
		go func() { results <- one.merge(ctx, slots) }()
	}
	var err error
	for range list {
		err = errors.Join(err, <-results)
	}
	applied := make(merged)
	if err == nil && p.queue.Resync(applied) == nil {
		select {
		case <-applied:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err == nil || running.Err() != nil {
		return nil
	}
	return fmt.Errorf("informer %s: %w", p.Name(), err)
}

// merge waits until the queue has the part's objects of slots, or the part has been removed.
func (p *part[T]) merge(ctx context.Context, slots slot.Set) error {
	for running := p.running.Load(); running != nil; {
		err := running.reflector.Merge(ctx, slots)
		if p.ctx.Err() != nil {
			return nil
		}
		now := p.running.Load()
		if err != nil || now == running {
			return err
		}
		running = now // it has taken the place of one that has panicked
	}
	return nil
}

// Leave removes the objects of slots that have gone from Options.Slots. Handlers receive deletes
// that are marked as moved. An error is the one of the context, while the queue is full. A Holding
// calls it.
func (p *parts[T]) Leave(ctx context.Context, slots slot.Set) error {
	for _, one := range p.present() {
		if running := one.running.Load(); running != nil {
			if err := running.reflector.Leave(ctx, slots); err != nil {
				return fmt.Errorf("informer %s: %w", p.Name(), err)
			}
		}
	}
	key := p.o.Slots.Key()
	p.queue.Leave(func(objectKey, uid string) bool { //nolint:errcheck // a closed queue is empty
		return slots.Has(key.Of(uid, slot.NamespaceOf(objectKey)))
	})
	return nil
}
