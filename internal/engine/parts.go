package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/reflector"
	"github.com/tidings-go/tidings/source"
)

// parts are the namespaces of a collection, or the one part for everything.
type parts[T any] struct {
	*shared[T]
	late     *lateSharing[T]
	recorder recorder[T]

	// changeMu is held while namespaces or the scope of the type change, which may wait for
	// a reflector. It comes before every other lock of the collection.
	changeMu Lock
	setAside []string // the default namespaces, while the type has none; guarded by changeMu

	transformMu Lock          // held while the transform of the user runs; no other lock is taken under it
	transformed atomic.Uint64 // odd while the transform of the user runs

	mu      sync.Mutex // guards the rest
	list    []*part[T] // by namespace; not written once it stands here
	begun   bool       // Run has started the parts
	removed removed
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
func (p *parts[T]) SuspectWatch(key, version, uid string) {
	for _, one := range p.present() {
		if running := one.running.Load(); running != nil && strings.HasPrefix(key, one.prefix) {
			running.reflector.SuspectWatch(key, version, uid)
		}
	}
}

// CatchUp has the part that holds a key list up to a version, as Reflector.CatchUp says.
func (p *parts[T]) CatchUp(key, version string) {
	for _, one := range p.present() {
		if running := one.running.Load(); running != nil && strings.HasPrefix(key, one.prefix) {
			running.reflector.CatchUp(version)
		}
	}
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

// ReadVersion returns the version up to which the first part has read everything. The cache
// may be behind it.
func (p *parts[T]) ReadVersion() string { return p.present()[0].health().Version }

// Resource returns the resource as the source of the first part knows it; ok is false if that
// does not run, or does not say.
func (p *parts[T]) Resource() (r source.Resource, ok bool) {
	running := p.present()[0].running.Load()
	if running == nil || running.of == nil {
		return r, false
	}
	return running.of.Resource(), true
}

// InState reports whether the list and watch of a namespace is in one of some states.
func (p *parts[T]) InState(match func(health.State) bool) bool {
	return slices.ContainsFunc(p.present(), func(one *part[T]) bool { return match(one.health().State) })
}

// counted returns the parts, and the counters of removed ones.
func (p *parts[T]) counted() ([]*part[T], removed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list, p.removed
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
	o.OnChange, o.Share, o.Slots = p.progress.wake, p.late.share, p.o.Slots
	o.Transform = p.oneByOne(ctx, o.Transform)
	o.Beside = p.followsScope(from.Source)
	o.Resumes = one.running.Load() != nil && p.progress.listed(one.prefix)
	o.Go = func(f func()) {
		p.goroutines.startAnother(ctx, "slots", func(context.Context) { f() })
	}
	src, end := p.recorder.record(one, from.Source, &o)
	running := &runningPart[T]{reflector: reflector.New(p.followsScope(src), p.queue, o)}
	running.decoding, _ = from.Source.(decodingSource)
	running.received, _ = from.Source.(countingSource)
	running.of, _ = from.Source.(resourceSource)
	one.running.Store(running)
	return running.reflector, end
}

// oneByOne returns a transform that is called for one object of the collection at a time: namespaces
// and slots that come have goroutines of their own.
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
